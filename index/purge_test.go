package index

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/vfs"
)

// memoryFile returns the path of a memory's file in a store.
func memoryFile(id string) string { return "memories/" + jsondoc.FileName(id) }

// A backup that must be removed is, under its other name of a moment ago, the base in which a reader
// still looks up keys: the reader continues to read the old content, and the purge reports that the file
// was not overwritten.
func TestBackupsThatGoWhileTheyAreMapped(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("who has a file mapped is known on Linux only")
	}
	for name, damaged := range map[string]bool{"no room to write it again": false, "damaged": true} {
		for _, mapped := range []bool{true, false} {
			dir := t.TempDir()
			fsys := vfs.OS()
			m := newModel()
			m.put(Memories, "x", "s", t0)
			reader := write(t, fsys, dir, m, Empty(8), WriteBase)
			before, err := os.ReadFile(filepath.Join(dir, BaseName))
			if err != nil {
				t.Fatal(err)
			}
			m.put(Memories, "y", "", time.Time{})
			if _, err := WriteBase(reader, target(fsys, dir, m.lsn), m.take()); err != nil {
				t.Fatal(err)
			}
			list, err := Backups(fsys, dir)
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			if !mapped {
				_ = reader.Release()
			}
			var gone, unlinked []string
			if damaged {
				path := filepath.Join(dir, list[0].Name)
				f, err := os.OpenFile(path, os.O_RDWR, 0)
				if err == nil {
					_, err = f.WriteAt([]byte("}"), int64(len(before)-3)) // its last line
					err = errors.Join(err, f.Close())
				}
				if err == nil {
					before, err = os.ReadFile(path)
				}
				if err != nil {
					t.Fatal(err)
				}
				to := target(fsys, filepath.Join(dir, "purge"), 0)
				to.Temp = filepath.Join(dir, "purge", "temp")
				if err := os.Mkdir(to.Dir, 0o700); err != nil {
					t.Fatal(err)
				}
				var r PurgedBackups
				r, err = PurgeBackups(dir, to, Memories, []string{"x"}, memoryFile)
				gone, unlinked = r.Removed, r.Unlinked
				if err != nil {
					t.Fatal(err)
				}
			} else if gone, unlinked, err = DropBackups(fsys, dir, store, Memories, []string{"x"}); err != nil {
				t.Fatal(err)
			}
			if len(gone) != 1 || (len(unlinked) == 1) != mapped {
				t.Errorf("%s, mapped %v: %v went, %v not overwritten", name, mapped, gone, unlinked)
			}
			if !mapped {
				continue
			}
			err = reader.Base().View(func(b []byte) error {
				if !bytes.Equal(b, before) {
					return errors.New("it reads something else now")
				}
				return nil
			})
			if err := errors.Join(err, reader.Release()); err != nil {
				t.Errorf("%s: who has it mapped: %v", name, err)
			}
		}
	}
}
