package words

import (
	"fmt"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/build"
	"github.com/varve-db/varve/internal/words/query"
)

// A segment is made, and segments are merged, in pieces between which commits have their turns.
func TestTurns(t *testing.T) {
	const docs, each = 500, 20
	an := analyzer.New(analyzer.English)
	v := NewSet()
	for part := range 2 {
		b := build.NewBuilder(an)
		n := proofs.Turns(t, func() {
			for i := range docs {
				text := ""
				for j := range each {
					text += fmt.Sprintf("word%d ", i*each+j)
				}
				b.Add(&Doc{ID: fmt.Sprint(part, i), LSN: uint64(i + 1), Texts: []query.Text{{Field: query.Content, Text: text}}})
			}
		})
		if n < docs/2 {
			t.Errorf("%d turns in %d documents", n, docs)
		}
		var seg *Segment
		n = proofs.Turns(t, func() {
			var err error
			if seg, err = OpenSegment(b.Segment()); err != nil {
				t.Error(err)
			}
		})
		if n < docs*each/16/2 {
			t.Errorf("%d turns in %d terms", n, docs*each)
		}
		set, err := v.With(uint64(part+1), seg, nil)
		if err != nil {
			t.Fatal(err)
		}
		v = set
	}
	const rows = 20_000
	w := build.NewWriter(t.Context(), rows, 0, build.Format)
	for i := range rows - 1 {
		w.Row(&build.Row{ID: fmt.Sprintf("%06d", i)})
	}
	// The last one has them sorted.
	n := proofs.Turns(t, func() { w.Row(&build.Row{ID: fmt.Sprintf("%06d", rows)}) })
	if n < rows/200 {
		t.Errorf("%d turns in the sorts of %d rows", n, rows)
	}
	n = proofs.Turns(t, func() {
		if _, _, err := v.Merge(t.Context(), []uint64{1, 2}); err != nil {
			t.Error(err)
		}
	})
	if n < docs*each/16/2 {
		t.Errorf("%d turns in a merge of %d terms", n, docs*each)
	}
}
