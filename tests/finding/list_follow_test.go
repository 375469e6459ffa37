package finding

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
)

// A listing includes the changes since the previous one. It lists the present memories, written by this
// process or by another, whichever index came in between, also one that was rebuilt from the files.
func TestListFollows(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	seed := proofs.Seed(t, 0)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	stores := []*varve.Store{
		fixture.Open(t, dir, &varve.Options{NoBackground: true, SegmentSize: 64 << 10}),
		fixture.Open(t, dir, &varve.Options{NoBackground: true, SegmentSize: 64 << 10}),
	}
	there := map[string]bool{}
	for round := range 60 {
		for range rng.IntN(40) {
			st, id := stores[rng.IntN(2)], fmt.Sprint("m", rng.IntN(150))
			if rng.IntN(3) > 0 {
				if _, err := st.Put(ctx,
					varve.Memory{ID: id, Content: "one", Metadata: fixture.InSession(fmt.Sprint("s", rng.IntN(3)))}); err != nil {
					t.Fatal(err)
				}
				there[id] = true
			} else if err := st.Delete(ctx, id); err != nil && !errors.Is(err, varve.ErrNotFound) {
				t.Fatal(err)
			} else {
				delete(there, id)
			}
		}
		switch st := stores[rng.IntN(2)]; rng.IntN(6) {
		case 0, 1:
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		case 2:
			if err := st.Admin().RebuildIndex(ctx); err != nil {
				t.Fatal(err)
			}
		}
		for i, st := range stores {
			if rng.IntN(3) == 0 {
				continue
			}
			var ids []string
			for m, err := range st.Memories(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, m.ID)
			}
			var want []string
			for id := range there {
				want = append(want, id)
			}
			if slices.Sort(want); !slices.Equal(ids, want) {
				t.Fatalf("round %d, store %d: listed %v, want %v", round, i, ids, want)
			}
		}
	}
}

// BenchmarkListUnderWrites lists a small session of a store while others write, with many changes that
// are not in the index yet.
func BenchmarkListUnderWrites(b *testing.B) {
	ctx := context.Background()
	st := fixture.Open(b, b.TempDir(), &varve.Options{NoBackground: true})
	for i := range 20 {
		batch := new(varve.Batch)
		for j := range 1000 {
			batch.Put(varve.Memory{ID: fmt.Sprintf("m%d", i*1000+j), Content: "one",
				Metadata: fixture.InSession(fmt.Sprint("s", j))})
		}
		if err := st.Apply(ctx, batch); err != nil {
			b.Fatal(err)
		}
	}
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		if _, err := st.Put(ctx,
			varve.Memory{ID: fmt.Sprint("n", i%100), Content: "two", Metadata: fixture.InSession("s7")}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if _, err := st.Sessions().Get(ctx, "s7"); err != nil {
			b.Fatal(err)
		}
	}
}
