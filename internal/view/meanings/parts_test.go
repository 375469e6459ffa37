package meanings_test

import (
	"context"
	"slices"
	"testing"

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
	if err := v.Save(folder, at); err != nil {
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
