package words

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/build"
	"github.com/varve-db/varve/internal/words/query"
)

// BenchmarkLinked searches 100,000 documents whose sessions are spread over several segments, as in a store to which
// documents of many sessions were added in turns: the neighbours of a row are often in another segment.
func BenchmarkLinked(b *testing.B) {
	const docs, sessions = 100_000, 1000
	an := analyzer.New(analyzer.None)
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.1, 3, 29_999)
	set, n := NewSet(), 0
	for part, rows := range []int{48_000, 24_000, 12_000, 8_000, 5_000, 2_000, 1_000} {
		built := build.NewBuilder(an)
		for range rows {
			var text strings.Builder
			for range 180 {
				fmt.Fprintf(&text, "w%d ", zipf.Uint64())
			}
			built.Add(&Doc{ID: fmt.Sprintf("%06d", n), LSN: uint64(n + 1), Session: fmt.Sprint("s", rng.IntN(sessions)),
				Time: int64(rng.IntN(docs)), Texts: []query.Text{{Text: text.String()}}})
			n++
		}
		seg, err := OpenSegment(built.Segment())
		if err != nil {
			b.Fatal(err)
		}
		if set, err = set.With(uint64(part+1), seg, nil); err != nil {
			b.Fatal(err)
		}
	}
	for _, text := range []string{"w1 w5 w20", "w4000 w1 w5"} {
		q := query.Plain(text, an)
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				if hits, err := set.Search(b.Context(), q, Filter{}, 10, 0, nil); err != nil || len(hits) != 10 {
					b.Fatal(len(hits), err)
				}
			}
		})
	}
}
