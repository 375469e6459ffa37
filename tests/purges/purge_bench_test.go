package purges

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// BenchmarkPurge purges a memory of a store that has many.
func BenchmarkPurge(b *testing.B) {
	ctx := context.Background()
	const many = 100_000
	for b.Loop() {
		b.StopTimer()
		st := fixture.Open(b, b.TempDir(), nil)
		rng := rand.New(rand.NewPCG(1, 1))
		for i := 0; i < many; i += 1000 {
			batch := new(varve.Batch)
			for j := range 1000 {
				var text strings.Builder
				for range 60 {
					fmt.Fprintf(&text, "word%d ", rng.IntN(rng.IntN(30_000)+1))
				}
				batch.Put(varve.Memory{ID: fmt.Sprint("m", i+j), Content: text.String(),
					Metadata: fixture.InSession(fmt.Sprint("s", i/100))})
			}
			if err := st.Apply(ctx, batch); err != nil {
				b.Fatal(err)
			}
		}
		if err := st.Flush(ctx); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if _, err := st.Admin().Purge(ctx, "m777"); err != nil {
			b.Fatal(err)
		}
	}
}
