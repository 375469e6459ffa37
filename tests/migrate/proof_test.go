package migrate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// A file that comes into the old place after the switch with the time of an older file (by mv, cp -p,
// tar or git) was not moved, and stays; so does a file that was changed and given its old time and size
// again. A file that has changed only in the new place is removed.
func TestMigrateRemovesOnlyWhatIsProven(t *testing.T) {
	ctx := context.Background()
	for _, full := range []bool{false, true} { // no room in the old place for the list of what was moved
		dir, to := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "t")
		st, err := varve.Open(ctx, dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"a", "b", "c"} {
			if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		o := storetest.In(&varve.Options{}, storetest.Environment{System: vfs.System{FS: fault.New(vfs.OS(),
			func(op *fault.Op) error {
				if full && op.Kind == wrap.Rename && strings.Contains(op.Path, "moved.json.files") {
					return syscall.ENOSPC
				}
				return nil
			})}})
		if _, err := varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Switch: true, Options: o}); err != nil {
			t.Fatal(err)
		}
		if st, err = varve.Open(ctx, to, nil); err == nil {
			_, err = st.Put(ctx, varve.Memory{ID: "a", Content: "changed where it is now"})
			err = errors.Join(err, st.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-48 * time.Hour)
		put := filepath.Join(dir, "memories", "put.json")
		if err := errors.Join(os.WriteFile(put, []byte("mine"), 0o600), os.Chtimes(put, old, old)); err != nil {
			t.Fatal(err)
		}
		changed := filepath.Join(dir, "memories", "b.json")
		storetest.Rewrite(t, changed, func(b []byte) []byte { return []byte(strings.Replace(string(b), `"x"`, `"y"`, 1)) })
		r, err := varve.Migrate(ctx, dir, to, &varve.MigrateOptions{RemoveSource: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{put, changed} {
			if _, err := os.Stat(path); err != nil {
				t.Errorf("what nobody has moved: %v", err)
			}
		}
		want := "memories/b.json memories/put.json"
		if full { // it is the version of before
			want = "memories/a.json " + want
		}
		if left := strings.Join(r.Left, " "); left != want && !full || !strings.Contains(left, want) {
			t.Errorf("left: %s", left)
		}
		if _, err := os.Stat(filepath.Join(dir, "memories", "c.json")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("what was moved: %v", err)
		}
		if _, err := os.Stat(filepath.Join(dir, "moved.json.files")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the list: %v", err)
		}
	}
}

// A memory rots in the old place between the comparison and the switch: its copy is the only intact one,
// and is not overwritten.
func TestMigrateRotBeforeTheSwitch(t *testing.T) {
	ctx := context.Background()
	dir, to := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "t")
	movable(t, dir)
	if err := os.RemoveAll(filepath.Join(dir, "wal")); err != nil { // with what heals it
		t.Fatal(err)
	}
	st, err := varve.Open(ctx, dir, nil)
	if err == nil {
		err = st.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	source, target := filepath.Join(dir, "memories", "a.json"), filepath.Join(to, "memories", "a.json")
	good, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	flips := 0
	o := storetest.In(&varve.Options{}, storetest.Environment{System: vfs.System{FS: fault.New(vfs.OS(),
		func(op *fault.Op) error {
			// The copy is complete, and no process has the store open anymore.
			if b,
				_ := os.ReadFile(target); op.Kind == wrap.OpenLock && filepath.Base(op.Path) == "attach.lock" &&
				string(b) == string(good) && flips == 0 {
				flips++
				storetest.Rewrite(t, source, func(b []byte) []byte { b[len(b)/2] ^= 4; return b })
			}
			return nil
		})}})
	r, err := varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Switch: true, Options: o})
	if !errors.Is(err, varve.ErrCorrupt) || r.Switched || flips != 1 || !strings.Contains(err.Error(), target) {
		t.Errorf("%d flips, %+v, %v", flips, r, err)
	}
	if b, err := os.ReadFile(target); err != nil || string(b) != string(good) {
		t.Errorf("the only good copy: %q, %v", b, err)
	}
	if r, err := varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Switch: true}); !errors.Is(err,
		varve.ErrCorrupt) || len(r.Damaged) != 1 {
		t.Errorf("once more: %+v, %v", r, err)
	}
	if b, err := os.ReadFile(target); err != nil || string(b) != string(good) {
		t.Errorf("the only good copy, once more: %q, %v", b, err)
	}
}
