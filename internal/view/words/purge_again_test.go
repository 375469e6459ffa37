package words_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// A purge that finds the files of another language makes all of them again. Those of before are not left to a
// later round where they cannot be removed: it says so.
func TestPurgeInAnotherLanguage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var stays atomic.Bool
	o := storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: fault.New(vfs.OS(), func(op *wrap.Op) error {
			if stays.Load() && op.Kind == wrap.Remove && strings.HasPrefix(op.Path, filepath.Join(dir, folder)) &&
				filepath.Ext(op.Path) == ".seg" {
				return syscall.EBUSY
			}
			return nil
		})}})
	st, err := varve.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	put(t, st, 0, 130)
	flush(t, st)
	if err := st.Admin().UpdateConfig(t.Context(),
		func(c *varve.Config) error { c.TextLanguage = "none"; return nil }); err != nil {
		t.Fatal(err)
	}
	there := func() []string { return naming(t, dir, "m0017") }
	if list := there(); len(list) == 0 {
		t.Fatal("no file names it")
	}
	stays.Store(true)
	rep, err := st.Admin().Purge(t.Context(), "m0017")
	if list := there(); len(list) > 0 && (err == nil || len(rep.Left) == 0) {
		t.Errorf("%q still have it: %v, %+v", list, err, rep)
	}
	stays.Store(false)
	// there is nothing else of it
	if _, err := st.Admin().Purge(t.Context(), "m0017"); err != nil && !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
	if list := there(); len(list) > 0 {
		t.Errorf("%q still have it", list)
	}
	clean(t, st)
}

// A purge says so where the folder of the views is not known to be the store's, so that nothing in it is removed.
func TestPurgeInAFolderOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := open(t, dir)
	put(t, st, 0, 130)
	flush(t, st)
	if err := os.Remove(filepath.Join(dir, filepath.Dir(folder), ".gitignore")); err != nil {
		t.Fatal(err)
	}
	rep, err := st.Admin().Purge(t.Context(), "m0017")
	if list := naming(t, dir, "m0017"); err == nil && len(list) > 0 {
		t.Errorf("%q still have it: %+v", list, rep)
	}
}

// naming are the files of the words that have an id, or cannot be read.
func naming(t *testing.T, dir, id string) (all []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if b, err := os.ReadFile(name); err != nil || bytes.Contains(b, []byte(id)) {
			all = append(all, filepath.Base(name))
		}
	}
	return all
}
