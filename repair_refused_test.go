package varve

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// Where the system refuses, looking, repairing and restoring say of what, and what helps.
func TestRefusedRepair(t *testing.T) {
	t.Parallel()
	ctx, top := t.Context(), t.TempDir()
	dir, backup := filepath.Join(top, "s"), filepath.Join(top, "b")
	st, err := Open(ctx, dir, &Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = st.Backup(ctx, backup, BackupOptions{})
	if err := errors.Join(err, st.Close()); err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func(*Options) error{
		"verify": func(o *Options) error {
			for _, err := range VerifyFolder(ctx, dir, o, VerifyOptions{}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"repair": func(o *Options) error { _, err := PlanRepair(ctx, dir, o, VerifyOptions{}); return err },
		"restore": func(o *Options) error {
			_, err := Restore(ctx, backup, dir+"2", &RestoreOptions{Options: o})
			return err
		},
	} {
		o := storetest.In(&Options{}, storetest.Environment{System: vfs.System{FS: wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
			if strings.HasSuffix(op.Path, "archive") && op.Kind == wrap.ReadDir || filepath.Base(op.Path) == "backup.json" {
				return &fs.PathError{Op: "open", Path: op.Path, Err: syscall.EACCES}
			}
			return call()
		})}})
		if err := do(o); !errors.Is(err, ErrPermission) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
