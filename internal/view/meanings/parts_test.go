package meanings_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/internal/view/meanings"
	"github.com/varve-db/varve/wal"
)

// TestEmptyFiles: a view without notes is saved, loaded again, and equal to an index without notes.
func TestEmptyFiles(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	p.Flush(t)
	v := meanings.New(p.Engine).(*meanings.Meanings)
	defer v.Close()
	if !v.Absent() {
		t.Error("a store without notes has the view")
	}
	set := p.Engine.State().Set()
	defer set.Release()
	folder, at := p.Engine.ViewFolder(meanings.Name), wal.Mark{LSN: 77, Sum: 5}
	if err := v.Reset(context.Background(), set); err != nil {
		t.Fatal(err)
	}
	if err := v.Save(t.Context(), folder, at); err != nil {
		t.Fatal(err)
	}
	var other view.View = meanings.New(p.Engine)
	defer other.Close()
	if is, err := other.Load(folder); err != nil || is != at {
		t.Errorf("%+v, %v", is, err)
	}
	if err := other.Verify(context.Background(), folder, set); err != nil {
		t.Error(err)
	}
	names, err := folder.Names()
	if err != nil || !slices.Contains(names, "manifest.json") || len(names) != 2 {
		t.Errorf("%q, %v", names, err)
	}
}

// TestLongRows: rows that are longer than the manifest says are damage, found before memory is reserved for them.
func TestLongRows(t *testing.T) { // not parallel: it reads how much memory the process has allocated
	p := parts.New(t, t.TempDir())
	p.Flush(t)
	v := meanings.New(p.Engine)
	defer v.Close()
	set := p.Engine.State().Set()
	defer set.Release()
	folder := p.Engine.ViewFolder(meanings.Name)
	if err := v.Reset(context.Background(), set); err != nil {
		t.Fatal(err)
	}
	if err := v.Save(t.Context(), folder, wal.Mark{LSN: 77, Sum: 5}); err != nil {
		t.Fatal(err)
	}
	rows, err := filepath.Glob(filepath.Join(folder.Path, "*.st"))
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	const long = 64 << 20
	if err := os.Truncate(rows[0], long); err != nil {
		t.Fatal(err)
	}
	other := meanings.New(p.Engine)
	defer other.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := other.Load(folder); !errors.Is(err, errs.ErrCorrupt) {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n >= long/2 {
		t.Errorf("%d bytes were allocated", n)
	}
}
