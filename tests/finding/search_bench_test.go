package finding

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// BenchmarkSearchText searches 100,000 memories of about 1 KB, in files.
func BenchmarkSearchText(b *testing.B) {
	ctx := context.Background()
	st := fixture.Open(b, b.TempDir(), &varve.Options{NoBackground: true})
	r := rand.New(rand.NewPCG(1, 1))
	vocabulary := make([]string, 20_000)
	for i := range vocabulary {
		w := make([]byte, 2+r.IntN(9))
		for j := range w {
			w[j] = byte('a' + r.IntN(26))
		}
		vocabulary[i] = string(w)
	}
	var size int64
	if _, err := st.PutAll(ctx, func(yield func(varve.Memory) bool) {
		for i := range 100_000 {
			var s strings.Builder
			for s.Len() < 1000 {
				fmt.Fprint(&s, vocabulary[int(r.ExpFloat64()*2000)%len(vocabulary)], " ")
			}
			size += int64(s.Len())
			if !yield(varve.Memory{ID: fmt.Sprintf("m%06d", i), Content: s.String()}) {
				return
			}
		}
	}); err != nil {
		b.Fatal(err)
	}
	if err := st.Admin().Compact(ctx); err != nil {
		b.Fatal(err)
	}
	for _, words := range []int{1, 3, 10} {
		b.Run(fmt.Sprint(words), func(b *testing.B) {
			q := varve.Query{Text: strings.Join(vocabulary[100:100+words], " ")}
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if hits, err := st.Search(ctx, q); err != nil || len(hits) != 10 {
					b.Fatal(len(hits), err)
				}
			}
		})
	}
}

// BenchmarkSearchUnderWrites searches after every 60 updates, of 5,000 memories that are all still in
// the log.
func BenchmarkSearchUnderWrites(b *testing.B) {
	st := fixture.Open(b, b.TempDir(), &varve.Options{NoBackground: true})
	rng := rand.New(rand.NewPCG(1, 2))
	update := func(from, n int) {
		batch := new(varve.Batch)
		for i := range n {
			text := new(strings.Builder)
			for range 80 {
				fmt.Fprintf(text, "word%d ", int(math.Exp(rng.Float64()*10)))
			}
			batch.Put(varve.Memory{ID: fmt.Sprint("m", from+i),
				Metadata: map[string]any{"session_id": fmt.Sprint("s", (from+i)%50)}, Content: text.String()})
		}
		if err := st.Apply(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	for i := 0; i < 5000; i += 500 {
		update(i, 500)
	}
	search := func() {
		if _, err := st.Search(b.Context(),
			varve.Query{Text: fmt.Sprintf("word%d word%d", rng.IntN(3000), rng.IntN(3000)), Limit: 10}); err != nil {
			b.Fatal(err)
		}
	}
	search()
	for b.Loop() {
		b.StopTimer()
		for range 60 {
			update(rng.IntN(5000), 1)
		}
		b.StartTimer()
		search()
	}
}
