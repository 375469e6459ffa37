package docfile

import (
	"testing"

	"github.com/varve-db/varve/internal/proofs"
)

// Between two files of a round, commits get their turn.
func TestTurns(t *testing.T) {
	s := newScene(t, way{barrier: true})
	var cs []Change
	for i := range 200 {
		cs = append(cs, s.change(name(i), 0, 1))
	}
	if n := proofs.Turns(t, func() { s.put(cs...) }); n < int64(len(cs))/2 {
		t.Errorf("%d turns in %d files", n, len(cs))
	}
}
