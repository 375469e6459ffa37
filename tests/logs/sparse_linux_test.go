package logs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// A sparse file in the place of a store's file costs a few reads, regardless of its size, whatever is
// done with the store; a repair sets it aside.
func TestSparse(t *testing.T) {
	t.Parallel()
	for _, rel := range []string{
		"memories/x.json", "memories/m.json", "assemblies/x.json", "working/x.json", "config.json", "checkpoint",
		"memory_index.json", "memory_index.delta.json", "backups/memory_index.1.json", "wal/archive/00000001.arc",
		"quarantine/x", "moved.json",
	} {
		for _, size := range []int64{200 << 20, 1 << 30} {
			t.Run(strings.ReplaceAll(rel, "/", " "), func(t *testing.T) { testSparse(t, rel, size) })
		}
	}
}

func testSparse(t *testing.T, rel string, size int64) {
	t.Parallel()
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	for _, id := range []string{"m", "n"} {
		_, err := st.Put(ctx, varve.Memory{ID: id, Content: "text of " + id})
		fixture.Must(t, err)
	}
	fixture.Must(t, st.Flush(ctx))
	fixture.Must(t, st.Close())
	path := filepath.Join(dir, filepath.FromSlash(rel))
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	fixture.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	fixture.Must(t, os.WriteFile(path, nil, 0o600))
	if err := os.Truncate(path, size); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}

	var bytes atomic.Int64 // that are read
	fsys := wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
		if op.Kind == wrap.Read {
			bytes.Add(int64(op.Size))
		}
		return call()
	})
	o := storetest.In(&varve.Options{NoBackground: true, StateDir: t.TempDir()},
		storetest.Environment{System: vfs.System{FS: fsys}})
	cheap := func(what string, do func()) {
		t.Helper()
		bytes.Store(0)
		do()
		if n := bytes.Load(); n > 16<<20 {
			t.Errorf("%s reads %d bytes because of %s", what, n, rel)
		}
	}
	use := func() {
		var st *varve.Store
		var err error
		cheap("open", func() { st, err = varve.Open(ctx, dir, o) })
		if err != nil {
			return // config.json, and the notes of a migration
		}
		cheap("list", func() {
			for range st.Memories(ctx) {
			}
		})
		cheap("status", func() {
			for range st.Admin().RefusedEdits(ctx) {
			}
			for range st.Working().Home().Scopes(ctx) {
			}
			for range st.Admin().Quarantine().All(ctx) {
			}
			_, _ = st.Admin().Usage(ctx)
		})
		cheap("get", func() { _, _ = st.Get(ctx, "m") })
		cheap("search", func() { _, _ = st.Search(ctx, varve.Query{Text: "text"}) })
		cheap("flush", func() { _ = st.Flush(ctx) })
		cheap("backup", func() { _, _ = st.Backup(ctx, filepath.Join(t.TempDir(), "b"), varve.BackupOptions{}) })
		fixture.Must(t, st.Close())
	}
	var plan *varve.RepairPlan
	cheap("verify", func() {
		var err error
		plan, err = varve.PlanRepair(ctx, dir, o, varve.VerifyOptions{})
		fixture.Must(t, err)
	})
	use()
	cheap("verify", func() {
		var err error
		plan, err = varve.PlanRepair(ctx, dir, o, varve.VerifyOptions{})
		fixture.Must(t, err)
	})
	cheap("repair", func() {
		if _, err := plan.Apply(ctx); err != nil && !errors.Is(err, errs.ErrCorrupt) {
			t.Error(err)
		}
	})
	use()
}
