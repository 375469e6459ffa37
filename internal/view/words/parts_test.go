package words_test

import (
	"testing"

	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/internal/view/words"
	"github.com/varve-db/varve/memstore"
)

// TestPart: the view takes in all documents of an index.
func TestPart(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	p.Put(t, memstore.Memory{ID: "a", Content: "one"})
	p.Put(t, memstore.Memory{ID: "b", Content: "two"})
	p.Flush(t)
	v := words.New(p.Engine)
	set := p.Engine.State().Set()
	defer func() { _ = set.Release() }()
	if err := v.Reset(t.Context(), set); err != nil {
		t.Error(err)
	}
	if !v.Covered(set) || v.Name() != words.Name {
		t.Errorf("%s covers the index: %v", v.Name(), v.Covered(set))
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}
