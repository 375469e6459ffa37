package purges

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// The previous index, and backups that are rewritten, are overwritten once their names are removed,
// unless a process has them mapped: it continues to read their content.
func TestPurgeOverwritesTheIndex(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("who has a file mapped is known on Linux only")
	}
	ctx := context.Background()
	for _, mapped := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "s")
		var mu sync.Mutex
		zeroed := map[string]bool{}
		fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if rel, _ := filepath.Rel(dir, op.Path); op.Kind == wrap.Write && strings.Contains(rel,
				"memory_index") && !strings.HasPrefix(rel, "tmp") {
				zeroed[filepath.ToSlash(rel)] = true
			}
			return nil
		})
		st := fixture.Open(t, dir, storetest.In(&varve.Options{SegmentSize: 64 << 10, NoBackground: true},
			storetest.Environment{System: vfs.System{FS: fsys}}))
		secretive(t, st, 3)
		c, rarely := st.Admin().Config(), 3600 // else the base of before is a backup
		c.BackupInterval = &rarely
		if err := errors.Join(st.Admin().SetConfig(c), st.Flush(ctx)); err != nil {
			t.Fatal(err)
		}
		var reader *index.Set
		if mapped {
			var err error
			if reader, err = index.OpenBase(vfs.OS(), dir, st.Admin().Stats().UUID); err != nil {
				t.Fatal(err)
			}
		}
		before, err := os.ReadFile(filepath.Join(dir, index.BaseName))
		if err != nil {
			t.Fatal(err)
		}
		clear(zeroed)
		r, err := st.Admin().Purge(ctx, "forget-me:Ünique", "forgotten-before")
		if err != nil {
			t.Fatal(err)
		}
		if r.Backups == 0 {
			t.Fatal("the case is too weak: no backup had it")
		}
		if !mapped {
			if len(r.Unlinked) > 0 || !zeroed["memory_index.json"] || len(zeroed) < 1+r.Backups {
				t.Errorf("overwritten: %v, not: %v", zeroed, r.Unlinked)
			}
			continue
		}
		if strings.Join(r.Unlinked, " ") != "memory_index.json" || zeroed["memory_index.json"] {
			t.Errorf("overwritten: %v, not: %v", zeroed, r.Unlinked)
		}
		err = reader.Base().View(func(b []byte) error {
			if string(b) != string(before) {
				return errors.New("it reads something else now")
			}
			return nil
		})
		if err := errors.Join(err, reader.Release()); err != nil {
			t.Errorf("who has the old index mapped: %v", err)
		}
	}
}

// A backup of the index that cannot be read is removed, and is named if no line of the memory is found
// in it. A backup of another store without such a line is left alone.
func TestPurgeAndBackupsThatAreNone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, other := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "other")
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	for _, id := range []string{"journal", "b"} {
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: id}); err != nil {
			t.Fatal(err)
		}
	}
	another, err := varve.Open(ctx, other, nil)
	if err == nil {
		_, err = another.Put(ctx, varve.Memory{ID: "a", Content: "x"})
		err = errors.Join(err, another.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := os.ReadFile(filepath.Join(other, index.BaseName))
	if err == nil {
		err = errors.Join(st.Flush(ctx), os.MkdirAll(filepath.Join(dir, "backups"), 0o700))
	}
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.ReadFile(filepath.Join(dir, index.BaseName))
	if err != nil {
		t.Fatal(err)
	}
	c, many := st.Admin().Config(), 9
	c.IndexBackupCount = &many
	if err := st.Admin().SetConfig(c); err != nil {
		t.Fatal(err)
	}
	put := func(name string, b []byte) string {
		t.Helper()
		path := filepath.Join(dir, "backups", name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	has := put("memory_index.77.json", base[:len(base)/2])
	mayHave := put("memory_index.78.json", []byte(strings.ReplaceAll(string(base), "journal", "jour\x00al")))
	theirs := put("memory_index.79.json", foreign)
	if !strings.Contains(string(base[:len(base)/2]), "\n\"journal\":") { // what is cut off is its end
		t.Fatal("the case is too weak")
	}
	r, err := st.Admin().Purge(ctx, "journal")
	if err != nil || len(r.Left) > 0 || r.Dropped != 2 || len(r.Lost) != 1 ||
		!strings.HasPrefix(r.Lost[0].Error(), "removed backups/memory_index.78.json,") {
		t.Errorf("%+v, %v", r, err)
	}
	for _, path := range []string{has, mayHave} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("one that has it, or may have it: %v", err)
		}
	}
	if _, err := os.Stat(theirs); err != nil {
		t.Error(err)
	}
	if _, err := st.Admin().Purge(ctx, "journal"); !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("once more: %v", err)
	}
}
