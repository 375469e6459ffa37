package fuzz

import (
	"fmt"
	"testing"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs/sim"
)

// vectors checks, while no other process works, that each memory with an embedding has exactly one
// vector, with the same bits, that there are no other vectors, and that a search finds each of them
// first.
func (a *actor) vectors() {
	r, err := storetest.CheckVectors(ctx, a.st)
	if err != nil {
		a.h.bad("%s: vectors: %v", a.name, err)
		return
	}
	if r.Drift() != 0 || len(r.Misfits) != 0 {
		a.h.bad("%s: vectors and memories do not agree: %+v", a.name, r)
	}
	n := int64(0)
	unreadable := false // a memory that was edited by hand; a search that meets it reports it
	for _, err := range a.st.Memories(ctx) {
		unreadable = unreadable || err != nil
	}
	for m, err := range a.st.Memories(ctx) {
		if err != nil || len(m.Embedding) == 0 {
			continue
		}
		n++
		hits, err := a.st.Search(ctx, varve.Query{Vector: m.Embedding, Limit: 1, MinScore: 0.999})
		expired := !m.ExpiresAt.IsZero() && !a.now().Before(m.ExpiresAt) // since it was listed
		if err != nil && !unreadable || len(hits) != 1 && !expired {
			a.h.bad("%s: the vector of %.20q finds %v: %v", a.name, m.ID, hits, err)
		}
	}
	if n > r.Vectors {
		a.h.bad("%s: %d embeddings, %d vectors", a.name, n, r.Vectors)
	}
}

// scriptVectors changes vectors: new, changed, removed, deleted and put again, between flushes that
// write a delta, one over it, and a base.
func scriptVectors(m *machine, h *history, faulty bool) []error {
	a := &actor{h: h, name: "vectors", now: m.now, faulty: faulty}
	open := func() bool {
		_, o := m.process("vectors")
		st, err := varve.Open(ctx, dir, o)
		if err != nil && faulty {
			a.failed("open", err)
			st, err = varve.Open(ctx, dir, o) // the fault has passed
		}
		if err != nil {
			a.failed("open", err)
			return false
		}
		a.st = st
		return true
	}
	with, without := func(n int) int { return 30 + 3*n }, func(n int) int { return 31 + 3*n }
	look := a.vectors
	if faulty { // the files may be behind: they are checked after the fault
		look = func() {
			if _, err := a.st.Search(ctx, varve.Query{Vector: []float32{1, 0.5, 30}}); err != nil {
				a.failed("search", err)
			}
		}
	}
	flush := func() { a.do("flush", a.st.Flush(ctx)) }
	if !open() {
		return a.errs
	}
	for i := range 12 {
		a.put(fmt.Sprint("v", i), with(i), "", 0)
	}
	a.put("plain", without(0), "", 0)
	flush()
	a.put("v1", with(40), "s1", 0) // a delta
	a.delete("v2")
	flush()
	a.put("v3", without(3), "", 0)
	a.put("v2", with(2), "", 0)
	a.batch(change{id: "v4", del: true}, change{id: "v5", size: with(50)}, change{id: "plain", size: with(51)})
	flush()
	a.update("v6", with(60))
	look() // here the overlay is filled
	a.put("v7", with(70), "", 0)
	a.flush() // all in one
	a.delete("v8")
	flush()
	a.close()
	if !open() {
		return a.errs
	}
	look()
	a.put("v8", with(80), "", 0)
	a.delete("v9")
	a.close()
	return a.errs
}

// TestVectors cuts such a workload before every change of the disk, with a third of the patterns each
// (-stride 1 for all), and checks the vectors after each recovery. The scripts and the simulator's
// processes have vectors too.
func TestVectors(t *testing.T) {
	proofs.OneGoroutine(t)
	n := &tally{coverage: sim.Coverage{}, second: sim.Coverage{}}
	parts := make([]*tally, 2)
	t.Run("parts", func(t *testing.T) {
		for i := range parts {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				parts[i] = cutEverywhere(t, "TestVectors", i, len(parts), func(*machine, *history) {}, func(m *machine, h *history) { scriptVectors(m, h, false) })
			})
		}
	})
	for _, p := range parts {
		n.add(p)
	}
	t.Log(n)
}
