package migrate

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

// coarse is a file system that stores times below a folder in steps of two seconds, as FAT does.
type coarse struct {
	vfs.FS
	below string
}

type coarseFile struct{ vfs.File }

func (c coarse) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	if err == nil && strings.HasPrefix(name, c.below) {
		return coarseFile{f}, nil
	}
	return f, err
}

func (f coarseFile) SetMtime(t time.Time) error { return f.File.SetMtime(t.Truncate(2 * time.Second)) }

// A file system with coarse times is sufficient: a copy is not written again only because of its time.
func TestMigrateToCoarseTimes(t *testing.T) {
	ctx := context.Background()
	dir, to := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "t")
	movable(t, dir)
	o := storetest.In(&varve.Options{}, storetest.Environment{System: vfs.System{FS: coarse{vfs.OS(), to}}})
	for want := range 2 {
		r, err := varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Options: o})
		if err != nil || r.Copied != int64(1-want) || r.Compared != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	st, err := varve.Open(ctx, dir, nil)
	if err == nil {
		_, err = st.Put(ctx, varve.Memory{ID: "a", Content: "y"}) // as large, and perhaps within the same two seconds
		err = errors.Join(err, st.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Options: o, Switch: true, RemoveSource: true})
	if err != nil || r.Copied != 1 || !r.Removed || len(r.Left) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if st, err = varve.Open(ctx, to, o); err != nil {
		t.Fatal(err)
	}
	m, err := st.Get(ctx, "a")
	if err != nil || m.Content != "y" {
		t.Errorf("%+v, %v", m, err)
	}
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil || f.Severity != varve.SeverityInfo {
			t.Errorf("%v, %v", f, err)
		}
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}
