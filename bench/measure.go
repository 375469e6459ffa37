package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// burst is the result of running one operation repeatedly.
type burst struct {
	rate     float64 // operations per second
	p50, p99 float64 // quantiles of the latency, in microseconds
}

// during calls op from n goroutines until the time has passed or the maximum number of operations is reached. op
// gets the number of the goroutine.
func during(n int, d time.Duration, most int, op func(g int) error) (burst, error) {
	lat := make([][]time.Duration, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	start := time.Now()
	for g := range n {
		wg.Go(func() {
			for t := time.Now(); t.Sub(start) < d && len(lat[g]) < most/n; {
				if errs[g] = op(g); errs[g] != nil {
					return
				}
				now := time.Now()
				lat[g] = append(lat[g], now.Sub(t))
				t = now
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	for _, err := range errs {
		if err != nil {
			return burst{}, err
		}
	}
	all := slices.Concat(lat...)
	if len(all) == 0 {
		return burst{}, fmt.Errorf("no operation ended within %v", d)
	}
	slices.Sort(all)
	at := func(q float64) float64 { return float64(all[int(q*float64(len(all)-1))].Nanoseconds()) / 1e3 }
	return burst{float64(len(all)) / took.Seconds(), at(0.50), at(0.99)}, nil
}

// puts measures durable puts. The documents are generated beforehand and reused with new ids: generating text is
// not measured.
func puts(e Engine, goroutines int, d time.Duration, most int, seed uint64) (burst, error) {
	type maker struct {
		docs []Doc
		src  *source
		n    int
	}
	makers := make([]maker, goroutines)
	for g := range makers {
		src := newSource(seed<<16 + uint64(g))
		// No id comes twice: the second time round each document has a fresh one.
		makers[g] = maker{src.docs(min(most/goroutines, max(256, 40_000/goroutines))), src, 0}
	}
	return during(goroutines, d, most, func(g int) error {
		m := &makers[g]
		m.n++
		if m.n <= len(m.docs) {
			return e.Put(m.docs[m.n-1])
		}
		return e.Put(m.src.renamed(m.docs[m.n%len(m.docs)]))
	})
}

func batches(e Engine, d time.Duration, most int, seed uint64) (burst, error) {
	const size = 1000
	src := newSource(seed)
	ready := src.docs(size * max(1, min(most/size, 100)))
	n := 0
	b, err := during(1, d, most/size, func(int) error {
		if n++; n*size <= len(ready) {
			return e.PutBatch(ready[(n-1)*size : n*size])
		}
		docs := make([]Doc, size)
		for i := range docs {
			docs[i] = src.renamed(ready[(n*size+i)%len(ready)])
		}
		return e.PutBatch(docs)
	})
	b.rate *= size
	return b, err
}

func gets(e Engine, goroutines int, d time.Duration, hot []string) (burst, error) {
	// Each once, to have them hot.
	for _, id := range hot {
		doc, err := e.Get(id)
		if err != nil {
			return burst{}, err
		}
		if len(doc) < docSize/2 {
			return burst{}, fmt.Errorf("%s has %d bytes", id, len(doc))
		}
	}
	rngs := make([]*rand.Rand, goroutines)
	for g := range rngs {
		rngs[g] = rand.New(rand.NewPCG(uint64(g), 1))
	}
	// A clock reading costs as much as a read: ten a step.
	const step = 10
	b, err := during(goroutines, d, 1<<30, func(g int) error {
		for range step {
			if _, err := e.Get(hot[rngs[g].IntN(len(hot))]); err != nil {
				return err
			}
		}
		return nil
	})
	return burst{b.rate * step, b.p50 / step, b.p99 / step}, err
}

// fill puts documents as fast as the engine can, a thousand at a time.
func fill(e Engine, docs []Doc) error {
	put := e.PutBatch
	if f, ok := e.(Filler); ok {
		put = f.Fill
	}
	for part := range slices.Chunk(docs, 1000) {
		if err := put(part); err != nil {
			return err
		}
	}
	return nil
}

// settled has the rate at which documents became durable files, measured from the first put on, and tells where the
// time went.
type settled struct {
	rate  float64 // documents per second
	acked float64 // share of the time until the last put was acknowledged
	cpu   float64 // microseconds of processor time per document
}

func settle(e Engine, docs []Doc) (s settled, err error) {
	start, before := time.Now(), used()
	var wg sync.WaitGroup
	const goroutines = 64
	errs := make([]error, goroutines)
	for g := range goroutines {
		wg.Go(func() {
			for i := g; i < len(docs) && errs[g] == nil; i += goroutines {
				errs[g] = e.Put(docs[i])
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return s, err
		}
	}
	acked := time.Since(start)
	if err := e.(Flusher).Flush(); err != nil {
		return s, err
	}
	took, n := time.Since(start), float64(len(docs))
	return settled{n / took.Seconds(), acked.Seconds() / took.Seconds(),
		float64((used() - before).Nanoseconds()) / 1e3 / n}, nil
}
