package search_test

import (
	"testing"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/internal/search"
	"github.com/varve-db/varve/memstore"
)

// TestMemories: a memory is found by its words in the log and in the files.
func TestMemories(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	p.Put(t, memstore.Memory{ID: "boat", Content: "the boat sails to Como"})
	p.Put(t, memstore.Memory{ID: "train", Content: "the train goes to Milan"})
	s := search.New(p.Engine, p.Vectors, p.Words, p.Sections, p.Meanings, p.Orders)
	for _, where := range []string{"log", "files"} {
		hits, err := s.Memories(t.Context(), search.Query{Text: "sailing", Limit: 5}, engine.Filters{})
		if err != nil || len(hits) != 1 || hits[0].Memory.ID != "boat" {
			t.Errorf("in the %s: %+v, %v", where, hits, err)
		}
		p.Flush(t)
	}
}
