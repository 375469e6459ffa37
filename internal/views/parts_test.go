package views_test

import (
	"testing"

	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/internal/views"
	"github.com/varve-db/varve/memstore"
)

// TestFindings: views are sound after a flush, and after one of them was rebuilt.
func TestFindings(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	p.Put(t, memstore.Memory{ID: "a", Content: "one"})
	p.Flush(t)
	vs := views.New(p.Engine, views.All)
	vs.Words()
	defer vs.Close()
	for _, rebuilt := range []bool{false, true} {
		for f := range vs.Findings(t.Context()) {
			t.Errorf("rebuilt %v: %+v", rebuilt, f)
		}
		held, err := p.Engine.Log().LockFlush(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = vs.Rebuild(t.Context(), held, "words")
		held.Unlock()
		if err != nil {
			t.Fatal(err)
		}
	}
}
