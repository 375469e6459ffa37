package repair_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

// TestNoFalseAlarmGroups verifies while other goroutines change embeddings, members and assemblies,
// flush, write vectors as deltas and merge them.
func TestNoFalseAlarmGroups(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	rounds := 60
	if !proofs.Long() {
		rounds = 6
	}
	dir := filepath.Join(t.TempDir(), "s")
	o := *storetest.In(&varve.Options{}, storetest.Environment{System: vfs.System{SpillBytes: 60 << 10,
		RoundBytes: 32 << 10}})
	a, b := openStore(t, dir, &o), openStore(t, dir,
		storetest.In(&varve.Options{}, storetest.Environment{System: storetest.Of(&o).System}))
	fillGroups(t, a)
	put(t, a, 1000, 1200) // so that the index is not small
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for w, st := range []*varve.Store{a, b, b} {
		seed := uint64(w + 1)
		writers.Go(func() {
			r := rand.New(rand.NewPCG(seed, 3))
			for i := 0; ctx.Err() == nil; i++ {
				if err := changeGroups(st, r, i); err != nil && !errors.Is(err, varve.ErrNotFound) &&
					!errors.Is(err, varve.ErrConflict) {
					t.Error(err)
					return
				}
			}
		})
	}
	var sum varve.VerifySummary
	vectors := int64(0)
	for round := range rounds {
		if round%10 == 5 { // by another process, which opens the store for this check
			if p := planOf(t, dir); len(p.Actions) > 0 {
				t.Errorf("false alarms: %v %v", p.Actions, p.Actions[0].Findings)
				break
			}
		}
		st := []*varve.Store{a, b}[round%2]
		if list := alarms(t, st, varve.VerifyOptions{Summary: &sum, Workers: 1 + round%3}); len(list) > 0 {
			t.Errorf("round %d: false alarms: %v", round, list)
			break
		}
		vectors += sum.Vectors
	}
	stop()
	writers.Wait()
	t.Logf("%d rounds, %d vectors read, the log is at %d", rounds, vectors, a.Admin().Stats().Durable)
	if list := alarms(t, a, varve.VerifyOptions{}); len(list) > 0 {
		t.Error(list)
	}
}

func changeGroups(st *varve.Store, r *rand.Rand, i int) error {
	ctx := context.Background()
	as := st.Assemblies()
	n, g := r.IntN(grouped), groupID(r.IntN(groups))
	var err error
	switch {
	case i%150 == 100:
		return st.Flush(ctx)
	case i%90 == 60:
		_, err = st.Search(ctx, varve.Query{Vector: vectorOf(n)})
		return err
	case r.IntN(5) == 0:
		_, err = as.Add(ctx, g, []string{id(n)})
	case r.IntN(5) == 0:
		_, err = as.Remove(ctx, g, []string{id(n)})
	case r.IntN(10) == 0:
		err = st.Delete(ctx, id(n))
	case r.IntN(20) == 0:
		if err = as.Delete(ctx, g); err == nil {
			_, err = as.Put(ctx, varve.Assembly{ID: g, Name: "again"})
		}
	case r.IntN(3) == 0:
		_, err = st.Put(ctx, memory(1000+r.IntN(200)))
	default:
		m := varve.Memory{ID: id(n), Content: fmt.Sprintf("memory %d, %d", n, i), Embedding: vectorOf(r.IntN(1 << 20))}
		if r.IntN(8) == 0 {
			m.Embedding = nil
		}
		_, err = st.Put(ctx, m)
	}
	return err
}
