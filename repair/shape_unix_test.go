//go:build linux || darwin

package repair_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/repair"
)

// inPlaceOf replaces one of the store's own files or folders.
var inPlaceOf = map[string]func(t *testing.T, path string){
	"fifo": func(t *testing.T, path string) {
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	},
	"link": func(t *testing.T, path string) {
		if err := os.Symlink(t.TempDir(), path); err != nil {
			t.Fatal(err)
		}
	},
	"wrong": func(t *testing.T, path string) { // a folder for a file, a file for a folder
		file := os.Mkdir(path, 0o700)
		if name := filepath.Base(path); !strings.Contains(name, ".") && name != "checkpoint" && name != "shared" && name != "owner" {
			file = errors.Join(os.Remove(path), os.WriteFile(path, []byte("x"), 0o600))
		}
		if file != nil {
			t.Fatal(file)
		}
	},
}

// soon fails a test that hangs.
func soon(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(50 * time.Second):
		t.Fatalf("%s does not end", what)
	}
}

// Whatever is in the place of a store's own files and folders is reported and moved into quarantine/
// without being opened, and the store is whole afterwards, with all data that had a copy.
func TestWrongKind(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	places := []string{
		"config.json", "checkpoint", "memory_index.json", "vector_index", "vector_index/mapping.json", "vector_index/memory_vectors.faiss",
		"wal/open.lock", "wal/flush.lock", "wal/shared", "wal/owner", "wal/archive", "tmp", "tmp/parked", "backups", "quarantine", "moved.json", "wal/moved.json", "migrate.json",
	}
	for i, place := range places {
		for kind, put := range inPlaceOf {
			if kind != "fifo" && i%3 != 1 || i%proofs.Every(5) != 0 {
				continue
			}
			t.Run(strings.ReplaceAll(place, "/", "_")+"/"+kind, func(t *testing.T) {
				t.Parallel()
				dir := closedStore(t)
				before := memories(t, dir)
				path := filepath.Join(dir, place)
				if err := errors.Join(os.RemoveAll(path), os.MkdirAll(filepath.Dir(path), 0o700)); err != nil {
					t.Fatal(err)
				}
				put(t, path)
				soon(t, place, func() {
					named := false
					for f, err := range varve.VerifyFolder(t.Context(), dir, options(), varve.VerifyOptions{}) {
						if err != nil {
							t.Error(err)
						}
						named = named || (f.Kind == repair.WrongKind || f.Kind == repair.NotFolder) && f.Path == place && f.Severity == repair.Healable
					}
					if !named {
						t.Errorf("verify does not name %s", place)
					}
					r := apply(t, planOf(t, dir))
					if len(r.Done) == 0 || r.Done[0].Do != repair.MoveOut && r.Done[0].Do != repair.MakeRoom || !strings.HasPrefix(r.Done[0].Where, "quarantine") {
						t.Fatalf("done: %+v", r.Done)
					}
					if _, err := os.Lstat(filepath.Join(dir, r.Done[0].Where)); err != nil {
						t.Error(err)
					}
					if _, err := os.Stat(filepath.Join(dir, r.Done[0].Where+".note.json")); err != nil && r.Done[0].Do == repair.MoveOut {
						t.Error(err)
					}
					compare(t, before, memories(t, dir))
					if again := planOf(t, dir); len(again.Actions) > 0 {
						t.Errorf("there is more to do: %s", again.Actions)
					}
				})
			})
		}
	}
}

// Something that is not a folder, in the place of memories/, is moved out of the way, and the documents
// are restored from log and archive; no document is recorded as lost in the same repair, since a link
// may lead to them.
func TestWrongKindOfDocuments(t *testing.T) {
	proofs.OneGoroutine(t)
	t.Parallel()
	dir := closedStore(t)
	before := memories(t, dir)
	for i := range settled { // their files are their only copy
		delete(before, id(i))
	}
	path := filepath.Join(dir, "memories")
	away := filepath.Join(t.TempDir(), "memories")
	if err := os.Rename(path, away); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(away, path); err != nil {
		t.Fatal(err)
	}
	if p := planOf(t, dir); len(p.Actions) != 1 || p.Actions[0].Do != repair.MakeRoom || p.Actions[0].Loses != "" {
		t.Errorf("%v, %v", p.Actions, p.Left)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	inPlaceOf["fifo"](t, path)
	soon(t, "repair", func() {
		p := planOf(t, dir)
		if len(p.Actions) != 1 || p.Actions[0].Do != repair.MakeRoom {
			t.Fatalf("%v", p.Actions)
		}
		apply(t, p)
		got := memories(t, dir)
		for id, text := range before {
			if got[id] != text {
				t.Errorf("%s is lost", id)
			}
		}
	})
}

// A sparse file in the place of a file of the store makes neither verify nor repair hang.
func TestSparse(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for i, place := range []string{
		"config.json", "checkpoint", "memory_index.json", "vector_index/mapping.json", "vector_index/memory_vectors.faiss", "moved.json", "migrate.json",
		"memories/" + id(0) + ".json", "tmp/7", "tmp/parked/x", "backups/memory_index.1.json", "quarantine/x", "wal/archive/00000099.zst", "vector_index/reembed",
	} {
		if i%proofs.Every(1) != 0 {
			continue
		}
		t.Run(strings.ReplaceAll(place, "/", "_"), func(t *testing.T) {
			t.Parallel()
			dir := closedStore(t)
			before := memories(t, dir)
			path := filepath.Join(dir, place)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			size := int64(8 << 40)
			if filepath.Base(place) == "reembed" {
				size = 1 << 30 // if it is copied, the copy must not fill the disk
			}
			if err := os.Truncate(path, size); err != nil {
				t.Skipf("no files of 8 TiB here: %v", err)
			}
			soon(t, place, func() {
				apply(t, planOf(t, dir))
				after := memories(t, dir)
				if strings.HasPrefix(place, "memories/") {
					before[id(0)] = after[id(0)]
				}
				compare(t, before, after)
				st := openStore(t, dir, options())
				backup := filepath.Join(t.TempDir(), "b")
				if _, err := st.Backup(t.Context(), backup, varve.BackupOptions{}); err != nil {
					t.Error(err)
				}
				if info, err := os.Stat(filepath.Join(backup, "vector_index/reembed")); err == nil && info.Size() > 0 {
					t.Errorf("the backup has %d bytes of nothing", info.Size())
				}
			})
		})
	}
}
