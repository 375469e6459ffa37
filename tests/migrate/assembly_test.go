package migrate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// groupedAndMovable is movable with an assembly whose only copy is its file.
func groupedAndMovable(t *testing.T, dir string) {
	t.Helper()
	ctx := context.Background()
	movable(t, dir)
	st, err := varve.Open(ctx, dir, nil)
	if err == nil {
		_, err = st.Assemblies().Put(ctx, varve.Assembly{ID: "g", Name: "those", MemoryIDs: []string{"a"}})
		err = errors.Join(err, st.Close())
	}
	if err == nil {
		err = errors.Join(os.RemoveAll(filepath.Join(dir, "wal")), os.RemoveAll(filepath.Join(dir, "backups")))
	}
	if err == nil {
		if st, err = varve.Open(ctx, dir, nil); err == nil {
			err = st.Close()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An assembly rots in the old place after it was copied: the copy is the only intact one, and is not
// overwritten.
func TestMigrateRotOfAnAssembly(t *testing.T) {
	ctx := context.Background()
	dir, to := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "t")
	groupedAndMovable(t, dir)
	source, target := filepath.Join(dir, "assemblies", "g.json"), filepath.Join(to, "assemblies", "g.json")
	good, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	flips := 0
	o := storetest.In(&varve.Options{}, storetest.Environment{System: vfs.System{FS: fault.New(vfs.OS(),
		func(op *fault.Op) error {
			if b,
				_ := os.ReadFile(target); op.Kind == wrap.Open && op.Path == source && string(b) == string(good) && flips == 0 {
				flips++
				storetest.Rewrite(t, source, func(b []byte) []byte { b[len(b)/2] ^= 4; return b })
			}
			return nil
		})}})
	r, err := varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Switch: true, Options: o})
	if !errors.Is(err, varve.ErrCorrupt) || r.Switched || flips != 1 || !strings.Contains(err.Error(), target) {
		t.Errorf("%d flips, %+v, %v", flips, r, err)
	}
	for _, when := range []string{"", ", once more"} {
		if b, err := os.ReadFile(target); err != nil || string(b) != string(good) {
			t.Errorf("the only good copy%s: %q, %v", when, b, err)
		}
		if r, err = varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Switch: true}); !errors.Is(err,
			varve.ErrCorrupt) || len(r.Damaged) != 1 {
			t.Errorf("once more: %+v, %v", r, err)
		}
	}
	// In the opposite case the next run detects it, and writes the copy again.
	if err := os.WriteFile(source, good, 0o600); err != nil {
		t.Fatal(err)
	}
	storetest.Rewrite(t, target, func(b []byte) []byte { b[len(b)/2] ^= 4; return b })
	st, err := os.Stat(target)
	if err == nil {
		err = os.Chtimes(source, st.ModTime(), st.ModTime())
	}
	if err != nil {
		t.Fatal(err)
	}
	if r, err = varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Switch: true}); err != nil || !r.Switched {
		t.Errorf("a copy that has rotted: %+v, %v", r, err)
	}
}

// A file name that leaves no room for a suffix is copied unchanged, in whatever folder it is.
func TestMigrateLongNames(t *testing.T) {
	ctx := context.Background()
	dir, to := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "t")
	movable(t, dir)
	var names []string
	for _, folder := range []string{"memories", "assemblies", "quarantine"} {
		names = append(names, filepath.Join(folder, strings.Repeat("n", 255)))
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, folder), 0o700),
			os.WriteFile(filepath.Join(dir, names[len(names)-1]), []byte(folder), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Switch: true}); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(to, name)); err != nil {
			t.Error(err)
		}
	}
}
