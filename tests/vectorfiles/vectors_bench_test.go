package vectorfiles

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// BenchmarkPutVector puts memories of 1 KB without and with an embedding.
func BenchmarkPutVector(b *testing.B) {
	ctx := context.Background()
	content := make([]byte, 1000)
	for i := range content {
		content[i] = 'a' + byte(i%26)
	}
	for _, dim := range []int{0, 384, 768} {
		b.Run(fmt.Sprint(dim), func(b *testing.B) {
			st := fixture.Open(b, b.TempDir(), &varve.Options{NoBackground: true})
			v := fixture.RandomVector(rand.New(rand.NewPCG(1, 1)), dim)
			for i := 0; b.Loop(); i++ {
				if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("m", i), Content: string(content), Embedding: v}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(st.Admin().Stats().Backlog)/float64(b.N), "log-B/op")
		})
	}
}

// BenchmarkSearchVectors searches 20,000 × 384 in files, with and without a filter.
func BenchmarkSearchVectors(b *testing.B) {
	ctx := context.Background()
	st := fixture.Open(b, b.TempDir(), &varve.Options{NoBackground: true})
	r := rand.New(rand.NewPCG(1, 1))
	if _, err := st.PutAll(ctx, func(yield func(varve.Memory) bool) {
		for i := range 20_000 {
			if !yield(varve.Memory{ID: fmt.Sprintf("m%06d", i), Embedding: fixture.RandomVector(r, 384),
				Metadata: map[string]any{"session_id": fmt.Sprint("s", i%100)}}) {
				return
			}
		}
	}); err != nil {
		b.Fatal(err)
	}
	if err := st.Admin().Compact(ctx); err != nil {
		b.Fatal(err)
	}
	q := varve.Query{Vector: fixture.RandomVector(r, 384)}
	for _, f := range []struct {
		name    string
		filters []varve.Filter
	}{{"all", nil}, {"session", []varve.Filter{varve.InSession("s7")}},
		{"after", []varve.Filter{varve.After("m010000")}}} {
		b.Run(f.name, func(b *testing.B) {
			for b.Loop() {
				if hits, err := st.Search(ctx, q, f.filters...); err != nil || len(hits) != 10 {
					b.Fatal(len(hits), err)
				}
			}
		})
	}
}
