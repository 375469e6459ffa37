package repairs

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// If the system refuses an operation, verify, repair and restore name the path, and what helps.
func TestRefusedRepair(t *testing.T) {
	t.Parallel()
	ctx, top := t.Context(), t.TempDir()
	dir, backup := filepath.Join(top, "s"), filepath.Join(top, "b")
	st, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = st.Backup(ctx, backup, varve.BackupOptions{})
	if err := errors.Join(err, st.Close()); err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func(*varve.Options) error{
		"verify": func(o *varve.Options) error {
			for _, err := range varve.VerifyFolder(ctx, dir, o, varve.VerifyOptions{}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"repair": func(o *varve.Options) error {
			_, err := varve.PlanRepair(ctx, dir, o, varve.VerifyOptions{})
			return err
		},
		"restore": func(o *varve.Options) error {
			_, err := varve.Restore(ctx, backup, dir+"2", &varve.RestoreOptions{Options: o})
			return err
		},
	} {
		o := storetest.In(&varve.Options{}, storetest.Environment{System: vfs.System{FS: wrap.New(vfs.OS(),
			func(op *wrap.Op, call func() error) error {
				if strings.HasSuffix(op.Path, "archive") && op.Kind == wrap.ReadDir || filepath.Base(op.Path) == "backup.json" {
					return &fs.PathError{Op: "open", Path: op.Path, Err: syscall.EACCES}
				}
				return call()
			})}})
		if err := do(o); !errors.Is(err, varve.ErrPermission) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
