package docfile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const huge = 8 << 40

// sparse creates a file of 8 TiB that occupies no disk space.
func (b *bed) sparse(path string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Truncate(path, huge); err != nil {
		b.t.Skipf("no files of 8 TiB here: %v", err)
	}
}

// ends fails a test that hangs because terabytes are read.
func ends(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s does not end", what)
	}
}

// noted fails the test unless the file is in quarantine, with a note that says why it has no hash.
func (b *bed) noted() {
	b.t.Helper()
	names, err := os.ReadDir(b.path("quarantine"))
	if err != nil {
		b.t.Fatal(err)
	}
	found := 0
	for _, n := range names {
		info, err := n.Info()
		if err != nil || info.Size() != huge {
			continue
		}
		found++
		text, err := os.ReadFile(b.path("quarantine", n.Name()+noteSuffix))
		if err != nil {
			b.t.Fatal(err)
		}
		var note Note
		if err := json.Unmarshal(text, &note); err != nil || note.Size != huge || note.Hash != "" ||
			!strings.Contains(note.NotHashed, "not hashed: the file has 8796093022208 bytes") {
			b.t.Errorf("%+v, %v", note, err)
		}
		if info, err := os.Stat(b.path("quarantine", n.Name())); err != nil || info.Size() != huge {
			b.t.Errorf("%v %v", info, err)
		}
	}
	if found != 1 {
		b.t.Errorf("%d files of 8 TiB in quarantine: %v", found, names)
	}
}

// A file of 8 TiB is set aside by its name alone, wherever it is found.
func TestHugeFileIsNotHashed(t *testing.T) {
	for name, do := range map[string]func(b *bed){
		"in the place of a document": func(b *bed) {
			b.put(b.change("a.json", 0, 1))
			b.sparse(b.folder.Path("a.json"))
			if r := b.round(b.change("a.json", 1, 2)); len(r.Edits) != 1 {
				b.t.Errorf("%+v", r)
			}
			b.want("a.json", 2)
		},
		"in the place of a deleted one": func(b *bed) {
			b.put(b.change("a.json", 0, 1))
			b.sparse(b.folder.Path("a.json"))
			b.round(b.change("a.json", 1, 0))
		},
		"in tmp": func(b *bed) {
			b.sparse(b.path("tmp", "other", "0", "1"))
			if _, err := b.fl.EmptyTemp(nil); err != nil {
				b.t.Error(err)
			}
		},
		"directly in tmp": func(b *bed) {
			b.sparse(b.path("tmp", "7"))
			if _, err := b.fl.EmptyTemp(nil); err != nil {
				b.t.Error(err)
			}
		},
		"parked": func(b *bed) {
			b.sparse(b.path("tmp", "parked", "memories@a.json@10@0@0@x-1"))
			b.round()
		},
		"by File": func(b *bed) {
			b.sparse(b.folder.Path("a.json"))
			if _, err := b.fl.quarantine.File(b.folder.Path("a.json"), Note{Why: "x"}); err != nil {
				b.t.Error(err)
			}
		},
		"by Keep": func(b *bed) {
			b.sparse(b.folder.Path("a.json"))
			if _, err := b.fl.quarantine.Keep(b.folder.Path("a.json"), Note{Why: "x"}); err != nil {
				b.t.Error(err)
			}
		},
		"by Keep, of the index": func(b *bed) {
			b.sparse(b.path("memory_index.json"))
			if _, err := b.fl.quarantine.Keep(b.path("memory_index.json"), Note{Why: "x"}); err != nil {
				b.t.Error(err)
			}
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			b := newBed(t, nil)
			ends(t, name, func() { do(b) })
			b.noted()
		})
	}
}

// A file in quarantine under the hash of other bytes is recognized by its size.
func TestHugeFileClaimsAHash(t *testing.T) {
	b := newBed(t, nil)
	text := "by hand"
	sum := sha256.Sum256([]byte(text))
	b.sparse(b.path("quarantine", hex.EncodeToString(sum[:])[:16]+"-a.json"))
	ends(t, "Bytes", func() {
		if where, err := b.fl.quarantine.Bytes("a.json", []byte(text), Note{Why: "x"}); err != nil || !strings.HasSuffix(where, "-a.json.2") {
			t.Error(where, err)
		}
	})
	b.write(b.folder.Path("a.json"), text)
	ends(t, "Keep", func() {
		if _, err := b.fl.quarantine.Keep(b.folder.Path("a.json"), Note{Why: "x"}); err != nil {
			t.Error(err)
		}
	})
}

// Where hard links are not supported, a file of 8 TiB is not copied.
func TestHugeFileIsNotCopied(t *testing.T) {
	b := newBed(t, nil)
	b.fs.on = func(op, _ string) error {
		if op == "link" {
			return errors.ErrUnsupported
		}
		return nil
	}
	b.sparse(b.folder.Path("a.json"))
	ends(t, "Keep", func() {
		if _, err := b.fl.quarantine.Keep(b.folder.Path("a.json"), Note{Why: "x"}); err == nil {
			t.Error("it was copied")
		}
	})
	ends(t, "File", func() {
		if _, err := b.fl.quarantine.File(b.folder.Path("a.json"), Note{Why: "x"}); err != nil {
			t.Error(err)
		}
	})
	b.noted()
}
