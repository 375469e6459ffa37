package words

import (
	"fmt"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/build"
	"github.com/varve-db/varve/internal/words/query"
)

// A segment is made, and merged, in pieces between which commits have their turns.
func TestTurns(t *testing.T) {
	const docs, each = 500, 20
	b := build.NewBuilder(analyzer.New(analyzer.English))
	n := proofs.Turns(t, func() {
		for i := range docs {
			text := ""
			for j := range each {
				text += fmt.Sprintf("word%d ", i*each+j)
			}
			b.Add(&Doc{ID: fmt.Sprint(i), LSN: uint64(i), Texts: []query.Text{{Field: query.Content, Text: text}}})
		}
	})
	if n < docs/2 {
		t.Errorf("%d turns in %d documents", n, docs)
	}
	n = proofs.Turns(t, func() { b.Segment() })
	if most := int64(docs * each / 64); n < most/2 {
		t.Errorf("%d turns in %d terms, want some %d", n, docs*each, most)
	}
}
