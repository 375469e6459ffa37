package backups

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/vfs"
)

// damagedIndex makes a store with index backups, recycled segments, and a base that is cut in half.
func damagedIndex(t *testing.T) (*fixture.Rig, map[string]varve.Memory) {
	t.Helper()
	ctx := context.Background()
	r, _ := fixture.Filled(t)
	st, err := varve.Open(ctx, "/s", r.Options(2))
	if err != nil {
		t.Fatal(err)
	}
	c := st.Admin().Config()
	always := 0
	c.BackupInterval = &always
	if err := st.Admin().SetConfig(c); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		if _, err := st.Put(ctx,
			varve.Memory{ID: fmt.Sprint("k", i%9), Content: fmt.Sprint(i, strings.Repeat("y", 6000))}); err != nil {
			t.Fatal(err)
		}
		if i%8 == 7 {
			if err := st.Admin().Compact(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := fixture.Contents(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	fsys := r.Disk.Process("vandal")
	b, err := vfs.ReadFile(fsys, filepath.Join("/s", index.BaseName), 1<<20)
	if err == nil {
		err = vfs.WriteDurable(fsys, "/s/tmp/vandal", filepath.Join("/s", index.BaseName), b[:len(b)/2], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r, want
}

// Killed at any point while the index is rebuilt from its backup, with a power cut afterwards: the next
// open has every version.
func TestFallBackCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var want map[string]varve.Memory
	fixture.CutAtEach(t, func(t *testing.T) (r *fixture.Rig) { r, want = damagedIndex(t); return r }, nil,
		func(r *fixture.Rig) error {
			st, err := varve.Open(ctx, "/s", r.Options(3))
			if err != nil {
				return err
			}
			made := st.Admin().OpenReport().Rebuilt
			if made == nil || !strings.HasPrefix(made.From, index.BackupsDir) {
				err = fmt.Errorf("the index was not made from a backup: %+v", made)
			}
			return errors.Join(err, st.Close())
		}, func(t *testing.T, r *fixture.Rig, _ bool) {
			st, err := varve.Open(ctx, "/s", r.Options(4))
			if err != nil {
				t.Fatal(err)
			}
			fixture.Compare(t, fixture.Contents(t, st), want, true)
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		})
}
