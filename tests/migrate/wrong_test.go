package migrate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

func movable(t *testing.T, dir string) {
	t.Helper()
	st, err := varve.Open(context.Background(), dir, nil)
	if err == nil {
		_, err = st.Put(context.Background(), varve.Memory{ID: "a", Content: "x"})
		err = errors.Join(err, st.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An older copy of the folder is not moved over the new place, which is the store although no process
// has opened it since the switch.
func TestMigrateOfAnOlderCopy(t *testing.T) {
	ctx := context.Background()
	dir, older, to := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "t")
	movable(t, dir)
	if err := os.CopyFS(older, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	movable(t, dir) // goes on
	stop := errors.New("killed")
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if op.Kind == wrap.Remove && filepath.Base(op.Path) == "migrate.json" {
			return stop
		}
		return nil
	})
	if _, err := varve.Migrate(ctx, dir, to,
		&varve.MigrateOptions{Switch: true, Options: storetest.In(&varve.Options{},
			storetest.Environment{System: vfs.System{FS: fsys}})}); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if _, err := varve.Migrate(ctx, older, to, nil); !errors.Is(err, varve.ErrInvalid) {
		t.Fatalf("over the store: %v", err)
	}
	st, err := varve.Open(ctx, to, &varve.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// A note of another store is not overwritten; and if the new place does not exist, the switch is not
// reported as done.
func TestMigrateSaysWhatIs(t *testing.T) {
	ctx := context.Background()
	one, two, to := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two"), filepath.Join(t.TempDir(), "t")
	movable(t, one)
	movable(t, two)
	if _, err := varve.Migrate(ctx, one, to, &varve.MigrateOptions{Switch: true, RemoveSource: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := varve.Migrate(ctx, two, one, nil); !errors.Is(err, varve.ErrInvalid) {
		t.Errorf("where another store was: %v", err)
	}
	if _, err := varve.Open(ctx, one, nil); !errors.Is(err, varve.ErrMoved) {
		t.Errorf("the note: %v", err)
	}
	if err := os.Rename(to, to+".away"); err != nil {
		t.Fatal(err)
	}
	if r, err := varve.Migrate(ctx, one, to, &varve.MigrateOptions{Switch: true}); !errors.Is(err,
		varve.ErrNoStore) || r.Switched {
		t.Errorf("to a place that is gone: %+v, %v", r, err)
	}
}
