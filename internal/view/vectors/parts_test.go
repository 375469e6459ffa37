package vectors_test

import (
	"testing"

	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/memstore"
)

// TestDimension: the first embedding of a store decides the dimension of all.
func TestDimension(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	vs := vectors.New(p.Engine, p.Host)
	defer vs.Close()
	for _, want := range []int{0, 3} {
		if dim, _, err := vs.Dimension(t.Context()); dim != want || err != nil {
			t.Errorf("dimension %d, %v, want %d", dim, err, want)
		}
		p.Put(t, memstore.Memory{ID: "a", Content: "one", Embedding: []float32{1, 2, 3}})
	}
}
