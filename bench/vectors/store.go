package main

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/varve-db/varve"
)

// measureStore fills a store with n memories that have embeddings, compacts and closes it, and opens it again several
// times.
func measureStore(dir string, n, d int, metric string, rounds int) error {
	ctx := context.Background()
	began := time.Now()
	st, err := varve.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	c := st.Admin().Config()
	c.Vectors = &varve.VectorConfig{Dimension: d, Metric: metric}
	if err := st.Admin().SetConfig(c); err != nil {
		return err
	}
	if _, err := st.PutAll(ctx, memories(n, d)); err != nil {
		return err
	}
	put := time.Since(began)
	if err := st.Admin().Compact(ctx); err != nil {
		return err
	}
	if err := st.Close(); err != nil {
		return err
	}
	fmt.Printf("\na store of %d memories with %d dimensions: put in %.0f s, settled in %.0f s\n\n", n, d, put.Seconds(),
		time.Since(began).Seconds())
	fmt.Println("| open, ms | heap, KB | first get, ms | first search, ms | later searches, ms | heap with them, KB |")
	fmt.Println("|---:|---:|---:|---:|---:|---:|")
	r := rand.New(rand.NewPCG(2, 2))
	for range rounds {
		if err := openStore(ctx, dir, r, n, d); err != nil {
			return err
		}
	}
	return nil
}

func openStore(ctx context.Context, dir string, r *rand.Rand, n, d int) error {
	before := heap()
	began := time.Now()
	st, err := varve.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer st.Close()
	opened := time.Since(began)
	held := heap() - before
	began = time.Now()
	if _, err := st.Get(ctx, memoryName(r.IntN(n))); err != nil {
		return err
	}
	got := time.Since(began)
	query := varve.Query{Vector: numbers(r, d), Limit: 10}
	began = time.Now()
	if hits, err := st.Search(ctx, query); err != nil || len(hits) != 10 {
		return fmt.Errorf("%d found: %w", len(hits), err)
	}
	first := time.Since(began)
	var later []time.Duration
	for range 9 {
		began = time.Now()
		if _, err := st.Search(ctx, query); err != nil {
			return err
		}
		later = append(later, time.Since(began))
	}
	m := median(later)
	fmt.Printf("| %.2f | %d | %.2f | %.0f | **%.0f** (%.0f–%.0f) | %d |\n", ms(opened), held/1000, ms(got), ms(first),
		ms(m), ms(later[0]), ms(later[len(later)-1]), (heap()-before)/1000)
	return nil
}

func memoryName(i int) string { return fmt.Sprintf("mem_%08d", i) }

func numbers(r *rand.Rand, d int) []float32 {
	v := make([]float32, d)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func memories(n, d int) iter.Seq[varve.Memory] {
	return func(yield func(varve.Memory) bool) {
		r := rand.New(rand.NewPCG(1, uint64(n)))
		for i := range n {
			if !yield(varve.Memory{ID: memoryName(i),
				Content: fmt.Sprintf("memory number %d of a store that was filled to be measured", i), Embedding: numbers(r, d)}) {
				return
			}
		}
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
