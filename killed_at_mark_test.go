package varve_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/repair"
)

// killedAtMark returns the file system of a process that fails when it would write the checkpoint, once it is killed.
func killedAtMark(killed *atomic.Bool) vfs.FS {
	return fault.New(vfs.OS(), func(op *fault.Op) error {
		if killed.Load() && op.Kind == wrap.Write && filepath.Base(op.Path) == "checkpoint" {
			return errors.New("killed")
		}
		return nil
	})
}

// TestFilesBehindAnIndex verifies that the next process does not write the files again that an index in place covers,
// if the first process was killed before its mark: if it were killed too, with a power failure before the folder is
// synced, it would leave a file that the index calls correct.
func TestFilesBehindAnIndex(t *testing.T) {
	t.Parallel()
	// a base of 0.9 MB is not rewritten
	for name, before := range map[string]int{"a base": 0, "the first delta": 3000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var killed atomic.Bool
			var again atomic.Int64
			dir := t.TempDir()
			other := fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true},
				storetest.Environment{System: vfs.System{FS: killedAtMark(&killed)}}))
			put := func(n int, name string) {
				t.Helper()
				_, err := other.PutAll(t.Context(), func(yield func(varve.Memory) bool) {
					for i := range n {
						if !yield(varve.Memory{ID: fmt.Sprint(name, i), Content: "some words, so that its line has a length"}) {
							return
						}
					}
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			put(before, "before")
			if err := other.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			st := fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true},
				storetest.Environment{System: vfs.System{FS: fault.New(vfs.OS(), func(op *fault.Op) error {
					if killed.Load() && (op.Kind == wrap.Exchange || op.Kind == wrap.RenameNew) &&
						strings.Contains(op.Path+op.To, "memories") {
						again.Add(1)
					}
					return nil
				})}}))
			put(2, "last")
			killed.Store(true)
			if err := other.Flush(t.Context()); err == nil {
				t.Fatal("the mark was made")
			}
			if err := st.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := again.Load(); n != 0 {
				t.Errorf("%d renames in memories: files were put there again", n)
			}
			killed.Store(false)
			for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
				t.Error(f, err)
			}
		})
	}
}

// TestIndexOfACopy verifies that the index of a diverged copy of the store is not treated as a newer index of this
// store: this store's files do not have what it covers.
func TestIndexOfACopy(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"beyond the log": 0, "within it": 60} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, fork := t.TempDir(), filepath.Join(t.TempDir(), "fork")
			st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
			put := func(st *varve.Store, id string) {
				t.Helper()
				if _, err := st.Put(t.Context(), varve.Memory{ID: id}); err != nil {
					t.Fatal(err)
				}
			}
			put(st, "zero")
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			fixture.CopyDir(t, dir, fork)
			other := fixture.Open(t, fork, &varve.Options{NoBackground: true})
			for i := range 20 {
				put(other, fmt.Sprint("fork", i))
			}
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			st = fixture.Open(t, dir, &varve.Options{NoBackground: true})
			put(st, "mine")
			for i := range n {
				put(st, fmt.Sprint("more", i))
			}
			if err := os.Rename(filepath.Join(fork, "memory_index.json"), filepath.Join(dir, "memory_index.json")); err != nil {
				t.Fatal(err)
			}
			if err := st.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "memories", "mine.json")); err != nil {
				t.Error(err)
			}
			if err := st.Admin().RebuildIndex(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := st.Get(t.Context(), "mine"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestIndexAtTheEndOfASegment verifies that an index whose position is the end of a segment, where the log has no
// entry, belongs to this log.
func TestIndexAtTheEndOfASegment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := fixture.Open(t, dir, &varve.Options{NoBackground: true, SegmentSize: 64 << 10})
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	put := func(id string) {
		t.Helper()
		if _, err := other.Put(t.Context(), varve.Memory{ID: id, Content: fixture.RandomText(5000)}); err != nil {
			t.Fatal(err)
		}
	}
	first := storetest.Inner(other).Engine.Log().Durable() / (64 << 10)
	for i := 0; storetest.Inner(other).Engine.Log().Durable()/(64<<10) < first+12; i++ {
		put(fmt.Sprint("m", i))
		if err := other.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		put(fmt.Sprint("behind", i))
		if err := storetest.Inner(st).Engine.Log().CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := storetest.Inner(st).Engine.KeepUp(nil); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBackupBehindAnIndex makes a backup while another process has put an index in place, and was killed before its
// mark or has not reached it: the index covers more than the backup begins with.
func TestBackupBehindAnIndex(t *testing.T) {
	t.Parallel()
	embed := func(_ context.Context, texts []string) ([][]float32, error) {
		return slices.Repeat([][]float32{{1, 2}}, len(texts)), nil
	}
	for name, changed := range map[string]bool{"no change of the model": false, "a change of the model": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var killed atomic.Bool
			dir, o := t.TempDir(), &varve.Options{NoBackground: true}
			if changed {
				o.Embed, o.EmbedModel = embed, "m"
			}
			other := fixture.Open(t, dir, storetest.In(o, storetest.Environment{System: vfs.System{FS: killedAtMark(&killed)}}))
			st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
			put := func(id, content string) {
				t.Helper()
				if _, err := other.Put(t.Context(), varve.Memory{ID: id, Content: content}); err != nil {
					t.Fatal(err)
				}
			}
			put("before", "")
			source, err := storetest.Inner(st).Copied(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			source.Config = func() []byte { return nil }
			if !changed {
				source.Flush = nil // as if nothing may be written
			}
			put("behind", "")
			if err := other.Flush(t.Context()); err != nil { // so that the backup maps the index of this moment
				t.Fatal(err)
			}
			put("last", "with the first vector")
			killed.Store(true)
			if err := other.Flush(t.Context()); err == nil {
				t.Fatal("the mark was made")
			}
			killed.Store(false)
			to := filepath.Join(t.TempDir(), "backup")
			if _, err := backup.Backup(t.Context(), source, to, repair.BackupOptions{}); err != nil {
				t.Error(err)
			}
			if _, err := varve.CheckBackup(t.Context(), to); err != nil {
				t.Error(err)
			}
		})
	}
}
