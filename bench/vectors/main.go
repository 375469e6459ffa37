package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varve-db/varve/vector"

	"github.com/varve-db/varve/internal/vfs"
)

func main() {
	if err := command(); err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(1)
	}
}

func command() error {
	sizes := flag.String("n", "10000,100000", "comma-separated numbers of `vectors`")
	d := flag.Int("d", 768, "`dimensions`")
	name := flag.String("metric", "ip", "`metric`, ip or l2")
	rounds := flag.Int("rounds", 5, "`rounds`")
	whole := flag.Bool("store", false, "measure a whole store, not only its vectors")
	dir := flag.String("dir", ".", "`folder` for the files, which are removed at the end")
	flag.Parse()
	metric, err := vector.ParseMetric(*name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*dir, 0o700); err != nil {
		return err
	}
	work, err := os.MkdirTemp(*dir, "vectors-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for _, s := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 10 {
			return fmt.Errorf("-n %s: a number of at least 10", s)
		}
		if *whole {
			err = measureStore(filepath.Join(work, s), n, *d, *name, *rounds)
		} else {
			err = measure(filepath.Join(work, s), n, *d, metric, *rounds)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const store = "00000000-0000-4000-8000-000000000000"

// write creates the file of vectors.
func write(dir string, n, d int, metric vector.Metric) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(1, uint64(n)))
	edits := make([]vector.Edit, n)
	for i := range edits {
		edits[i] = vector.Edit{Key: fmt.Sprintf("mem_%08d", i), ID: int64(i + 1)}
	}
	plan, err := vector.List([2][]vector.Edit{edits},
		func(dst []float32, _ vector.Kind, _ vector.Edit) ([]float32, bool, error) {
			for range d {
				dst = append(dst, float32(r.NormFloat64()))
			}
			return dst, true, nil
		})
	if err != nil {
		return err
	}
	_, err = vector.WriteBase(vector.Empty(), vector.Target{
		FS: vfs.OS(), Dir: dir, Temp: filepath.Join(dir, "temp"), Store: store, LSN: 8, Now: time.Now(), Metric: metric,
		Dim: d,
	}, plan)
	return err
}

func measure(dir string, n, d int, metric vector.Metric, rounds int) error {
	if err := write(dir, n, d, metric); err != nil {
		return err
	}
	set, opened, heap, err := open(dir)
	if err != nil {
		return err
	}
	view, err := vector.NewView(set, metric, d)
	if err != nil {
		return err
	}
	defer view.Release()
	peer, err := startFAISS(filepath.Join(dir, "vector_index", "memory_vectors.faiss"))
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(2, 2))
	queries := make([][]float32, 10)
	var raw []byte
	for i := range queries {
		for range d {
			queries[i] = append(queries[i], float32(r.NormFloat64()))
		}
		raw = metric.Row(raw, queries[i])
	}
	file := filepath.Join(dir, "queries")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return err
	}
	fmt.Printf("\n%d × %d, %v, nearest 10; %s, %d cores, FAISS %s\n\n", n, d, metric, runtime.GOARCH, runtime.NumCPU(),
		peer.version)
	fmt.Printf("opened in **%.3f** ms (%.3f–%.3f of %d), %d KB of heap\n\n", ms(median(opened)), ms(opened[0]),
		ms(opened[len(opened)-1]), len(opened), heap/1000)
	began := time.Now()
	if _, err := view.Search(context.Background(), vector.Query{Vector: queries[0], Limit: 10, Workers: 2}); err != nil {
		return err
	}
	fmt.Printf("the first search, which compares each block with its hash: %.1f ms\n\n", ms(time.Since(began)))
	fmt.Println("| threads | | ms/query, median (least–greatest) | GB/s | of the memory's |")
	fmt.Println("|---:|---|---:|---:|---:|")
	bytes := float64(n) * float64(d) * 4
	memory := make([]byte, n*d*4)
	for i := range memory {
		memory[i] = byte(i)
	}
	for _, threads := range []int{1, 2} {
		var ours, theirs, reads []time.Duration
		for range rounds {
			for end := time.Now().Add(time.Second / 2); time.Now().Before(end); {
				reads = append(reads, readRate(memory, threads))
			}
			times, ids, err := peer.search(threads, 0.5, file)
			if err != nil {
				return err
			}
			for _, s := range times {
				theirs = append(theirs, time.Duration(s*1e9))
			}
			end := time.Now().Add(time.Second / 2)
			for i := 0; i < len(queries) || time.Now().Before(end); i++ {
				began := time.Now()
				hits, err := view.Search(context.Background(),
					vector.Query{Vector: queries[i%len(queries)], Limit: 10, Workers: threads})
				if err != nil {
					return err
				}
				ours = append(ours, time.Since(began))
				if i < len(queries) && !same(hits, ids[i]) {
					return fmt.Errorf("query %d: %v, FAISS finds %v", i, hits, ids[i])
				}
			}
		}
		best := bytes / median(reads).Seconds()
		for _, row := range []struct {
			name  string
			times []time.Duration
		}{{"memory, read only", reads}, {"Varve", ours}, {"FAISS", theirs}} {
			m := median(row.times)
			fmt.Printf("| %d | %s | **%.3f** (%.3f–%.3f) | %.1f | %.0f %% |\n", threads, row.name, ms(m), ms(row.times[0]),
				ms(row.times[len(row.times)-1]),
				bytes/m.Seconds()/1e9, 100*bytes/m.Seconds()/best)
		}
	}
	return peer.close()
}

// open opens the file several times; the last one stays open.
func open(dir string) (set *vector.Set, took []time.Duration, heap int64, err error) {
	const times = 9
	for range times {
		if set != nil {
			if err := set.Release(); err != nil {
				return nil, nil, 0, err
			}
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		began := time.Now()
		if set, err = vector.Load(vfs.OS(), dir, store, nil); err != nil {
			return nil, nil, 0, err
		}
		took = append(took, time.Since(began))
		runtime.ReadMemStats(&after)
		heap = int64(after.HeapAlloc) - int64(before.HeapAlloc)
	}
	return set, took, heap, nil
}

// same reports whether two lists of ids are equal; neighbours whose order differs because of rounding count as
// equal.
func same(hits []vector.Hit, ids []int64) bool {
	for i, h := range hits {
		if h.ID == ids[i] {
			continue
		}
		near := func(j int) bool {
			return j >= 0 && j < len(hits) && hits[j].ID == ids[i] && math.Abs(hits[j].Score-h.Score) < 1e-6
		}
		if !near(i-1) && !near(i+1) {
			return false
		}
	}
	return len(hits) == len(ids)
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }
