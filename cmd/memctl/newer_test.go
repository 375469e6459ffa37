package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/segment"
)

// storeless are the commands that open no store that exists.
var storeless = []string{
	"doctor", // its report has what is wrong
	"serve token", "serve token add", "serve token list", "serve token remove",
	"init", "restore", "demo", "manual", "version", "help", "completion", "completion bash", "completion fish",
	"completion powershell", "completion zsh",
	"service", "service install", "service uninstall",
	"project join", "project move", "clone", "remote", "remote take",
	"assembly", "note", "project", "quarantine", "sessions", // which name their commands
	"working", "working checkpoint", "working scratchpad",
}

// A store of which any part is of a newer format ends every command with exit code 12
// and says which file it is, what it has and what this program reads; nothing is changed.
func TestNewerFormats(t *testing.T) {
	t.Parallel()
	made := newCLI(t)
	stood := filepath.Join(made.dir, "storage")
	killed := filepath.Join(made.dir, "killed")
	makeNewest(t, stood, killed)
	for _, part := range []struct {
		name, file string // relative to the store
		of         string
		raise      func(t *testing.T, b []byte) []byte
	}{
		{"config", "config.json", stood, func(_ *testing.T, b []byte) []byte {
			return bytes.Replace(b, []byte(`"varve": 1`), []byte(`"varve": 2`), 1)
		}},
		{"checkpoint", "checkpoint", stood, func(_ *testing.T, b []byte) []byte {
			for slot := b; len(slot) >= 4096; slot = slot[4096:] {
				if string(slot[:8]) == "VARVECHK" {
					binary.LittleEndian.PutUint32(slot[8:], 3)
					binary.LittleEndian.PutUint64(slot[136:], xxhash.Sum64(slot[:136]))
				}
			}
			return b
		}},
		{"segment", "wal/00000001.wal", stood, func(t *testing.T, b []byte) []byte {
			s, h, err := segment.ParseStart(b)
			if err != nil {
				t.Fatal(err)
			}
			p := bytes.Clone(b[segment.HeaderSize:segment.StartSize])
			binary.LittleEndian.PutUint32(p[8:], segment.Version+1)
			return append(s.AppendFrame(nil, &h, "", p), b[segment.StartSize:]...)
		}},
		{"entry", "wal/00000001.wal", killed, newerEntry},
		{"index", "memory_index.json", stood, newerTable},
		{"vectors", "vector_index/mapping.json", stood, newerTable},
	} {
		t.Run(part.name, func(t *testing.T) {
			c := &inProcess{t, t.TempDir()}
			if err := os.CopyFS(c.store(), os.DirFS(part.of)); err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(c.store(), filepath.FromSlash(part.file))
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			raised := part.raise(t, bytes.Clone(b))
			if bytes.Equal(raised, b) {
				t.Fatal("nothing was changed")
			}
			if err := os.WriteFile(name, raised, 0o600); err != nil {
				t.Fatal(err)
			}
			before := contents(t, c.store())
			writeFile(t, filepath.Join(c.dir, "lines.jsonl"), "{}\n")
			writeFile(t, filepath.Join(c.dir, "folder", "imported.md"), "x")
			eachCommand(t, c.dir, strings.NewReplacer("FIRST", "1", "CHECKPOINT", "1", "NOTE", "1"), storeless,
				"storeless",
				func(_ string, _ commandCase, args []string) {
					code, out, errOut := c.run("", append(args, "--store", c.store())...)
					if code != cli.CodeNewer {
						t.Errorf("%v: exit code %d: %s%s", args, code, errOut, out)
						return
					}
					format := "the format is 2, but this program reads only formats up to 1"
					if part.name == "checkpoint" {
						format = "the format is 3, but this program reads only formats up to 2"
					}
					for _, say := range []string{filepath.Base(part.file), format, "newer version", "newest memctl"} {
						if part.name == "entry" && say == filepath.Base(part.file) {
							say = "wal"
						}
						if !strings.Contains(errOut, say) {
							t.Errorf("%v does not say %q: %s", args, say, errOut)
						}
					}
				})
			var d struct {
				Error struct{ Kind, Path string }
			}
			if code, out, _ := c.run("", "get", "a", "--json"); code != cli.CodeNewer || json.Unmarshal([]byte(out),
				&d) != nil || d.Error.Kind != "newer format" || !strings.Contains(part.file, d.Error.Path) || d.Error.Path == "" {
				t.Errorf("--json: %d, %s", code, out)
			}
			if after := contents(t, c.store()); !maps.Equal(before, after) {
				for _, name := range slices.Sorted(maps.Keys(after)) {
					if before[name] != after[name] {
						t.Errorf("%s was changed or made", name)
					}
				}
				for name := range before {
					if _, ok := after[name]; !ok {
						t.Errorf("%s is gone", name)
					}
				}
			}
			for _, made := range []string{"backup", "moved"} {
				if list, err := os.ReadDir(filepath.Join(c.dir, made)); err == nil && len(list) > 0 {
					t.Errorf("%s was made: %v", made, list)
				}
			}
		})
	}
}

// makeNewest makes a store that was closed, and a copy of it as it was in use.
func makeNewest(t *testing.T, dir, killed string) {
	t.Helper()
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	put := func(id string) {
		if _, err := st.Put(t.Context(), varve.Memory{ID: id, Content: "words", Embedding: []float32{1, 2, 3}}); err != nil {
			t.Fatal(err)
		}
	}
	put("a")
	if err := st.Admin().Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	put("b")
	err = os.CopyFS(killed, os.DirFS(dir))
	for errors.Is(err, fs.ErrNotExist) { // the next segment got its name meanwhile
		if err := os.RemoveAll(killed); err != nil {
			t.Fatal(err)
		}
		err = os.CopyFS(killed, os.DirFS(dir))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// contents are the files of a folder, but for locks and what says who is there.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".lock") ||
			strings.HasSuffix(path, filepath.Join("wal", "shared")) || strings.HasSuffix(path, filepath.Join("wal", "owner")) {
			return err
		}
		b, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func newerTable(t *testing.T, b []byte) []byte {
	at := bytes.LastIndex(b, []byte(`,"metadata": {"version":"1"`))
	if at < 0 {
		t.Fatal("no table")
	}
	end := at + bytes.IndexByte(b[at:], '\n') + 1
	old := fmt.Sprintf("%016x", xxhash.Sum64(b[at:end]))
	b[at+len(`,"metadata": {"version":"`)]++
	return bytes.Replace(b, []byte(old), fmt.Appendf(nil, "%016x", xxhash.Sum64(b[at:end])), 1)
}

// newerEntry raises the version of the newest entry.
func newerEntry(t *testing.T, b []byte) []byte {
	s, h, err := segment.ParseStart(b)
	if err != nil {
		t.Fatal(err)
	}
	g := s.Geometry
	for {
		next, err := g.ParseHeader(b[g.Offset(h.End()):], h.End())
		if err != nil || next.Previous != h.Sum {
			break
		}
		h = next
	}
	frame := b[g.Offset(h.LSN):]
	key, value, err := h.Check(frame[segment.HeaderSize:][:h.Length])
	if err != nil || len(value) == 0 {
		t.Fatal(err)
	}
	value = bytes.Clone(value)
	value[0]++
	copy(frame, g.AppendFrame(nil, &h, string(key), value))
	return b
}
