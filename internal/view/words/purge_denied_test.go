package words_test

import (
	"errors"
	"fmt"
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

// A purge during which files of the words can neither be read nor removed erases nothing of the log, for
// they have yet to read there what was deleted. Once the cause is gone a purge leaves nothing.
func TestPurgeDenied(t *testing.T) {
	t.Parallel()
	top := filepath.Dir(folder)
	for name, denied := range map[string]func(path string) bool{
		"folder":     func(path string) bool { return strings.HasPrefix(path, folder) },
		"all":        func(path string) bool { return path == top },
		".gitignore": func(path string) bool { return path == filepath.Join(top, ".gitignore") },
		"another":    func(path string) bool { return strings.HasPrefix(path, filepath.Join(top, "aaa")) },
		"not known":  nil,
	} {
		for _, why := range []syscall.Errno{syscall.EACCES, syscall.EIO} {
			for _, between := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %v, a flush between %v", name, why, between), func(t *testing.T) {
					t.Parallel()
					dir, on := t.TempDir(), new(atomic.Bool)
					st, err := varve.Open(t.Context(), dir,
						storetest.In(&varve.Options{NoBackground: true},
							storetest.Environment{System: vfs.System{FS: fault.New(vfs.OS(), func(op *wrap.Op) error {
								if rel, err := filepath.Rel(dir, op.Path); on.Load() && err == nil && denied != nil && denied(rel) {
									return why
								}
								return nil
							})}}))
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = st.Close() })
					put(t, st, 0, 130)
					flush(t, st)
					if err := os.Mkdir(filepath.Join(dir, top, "aaa"), 0o755); err != nil {
						t.Fatal(err)
					}
					ignore := filepath.Join(dir, top, ".gitignore")
					text, err := os.ReadFile(ignore)
					if err == nil && denied == nil {
						err = os.Remove(ignore)
					}
					if err != nil {
						t.Fatal(err)
					}
					there := func() []string { return naming(t, dir, "m0017") }
					on.Store(true)
					if _, err := st.Admin().Purge(t.Context(), "m0017"); err == nil && len(there()) > 0 {
						t.Errorf("it is called done, and %q have it", there())
					}
					on.Store(false)
					if denied == nil {
						if err := os.WriteFile(ignore, text, 0o600); err != nil {
							t.Fatal(err)
						}
					}
					if between {
						put(t, st, 200, 201)
						flush(t, st)
					}
					if _, err := st.Admin().Purge(t.Context(), "m0017"); err != nil && !errors.Is(err, varve.ErrNotFound) {
						t.Error(err)
					}
					if list := there(); len(list) > 0 {
						t.Errorf("%q still have it", list)
					}
					clean(t, st)
				})
			}
		}
	}
}
