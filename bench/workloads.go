package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// workload measures one engine and returns named numbers. The engine is opened on an empty folder, unless the
// workload opens it itself.
type workload struct {
	name string
	run  func(c *config, make func() Engine, dir string, seed uint64) (map[string]float64, error)
}

var workloads = []workload{
	{"put1", func(c *config, make func() Engine, dir string, seed uint64) (map[string]float64, error) {
		return c.puts("put1", 1, make, dir, seed)
	}},
	{"put64", func(c *config, make func() Engine, dir string, seed uint64) (map[string]float64, error) {
		return c.puts("put64", 64, make, dir, seed)
	}},
	{"batch1000", func(c *config, make func() Engine, dir string, seed uint64) (map[string]float64, error) {
		e, err := opened(make, dir)
		if err != nil {
			return nil, err
		}
		b, err := batches(e, c.seconds, mostPuts, seed)
		return map[string]float64{"batch1000": b.rate}, closed(e, err)
	}},
	{"put4x16", func(c *config, make func() Engine, dir string, seed uint64) (map[string]float64, error) {
		e, err := opened(make, dir)
		if err != nil {
			return nil, err
		}
		if err := e.Close(); err != nil || !e.MultiProcess() {
			return nil, err
		}
		rate, _, err := processes(e.Name(), dir, "", c.seconds, seed)
		return map[string]float64{"put4x16": rate}, err
	}},
	{"hot", (*config).hotProcesses},
	{"settle", (*config).settle},
	{"filled", (*config).filled},
	{"fresh", (*config).fresh},
}

// chosenLoads checks the comma-separated names of workloads.
func chosenLoads(list string, steady bool) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	names := strings.Split(list, ",")
	for _, name := range names {
		if steady && !slices.ContainsFunc(steadyLoads, func(l steadyLoad) bool { return l.name == name }) ||
			!steady && !slices.ContainsFunc(workloads, func(w workload) bool { return w.name == name }) {
			return nil, fmt.Errorf("no workload %q", name)
		}
	}
	return names, nil
}

func opened(make func() Engine, dir string) (Engine, error) {
	e := make()
	return e, e.Open(dir)
}

func closed(e Engine, err error) error {
	if cerr := e.Close(); err == nil {
		err = cerr
	}
	return err
}

func (c *config) puts(name string, goroutines int, make func() Engine, dir string,
	seed uint64) (map[string]float64, error) {
	e, err := opened(make, dir)
	if err != nil {
		return nil, err
	}
	b, err := puts(e, goroutines, c.seconds, mostPuts, seed)
	return map[string]float64{name: b.rate, name + ".p50": b.p50, name + ".p99": b.p99}, closed(e, err)
}

func (c *config) settle(make func() Engine, dir string, seed uint64) (map[string]float64, error) {
	e, err := opened(make, dir)
	if err != nil {
		return nil, err
	}
	if _, ok := e.(Flusher); !ok {
		return nil, e.Close()
	}
	docs := newSource(seed).docs(c.files)
	create, err := settle(e, docs)
	if err != nil {
		return nil, closed(e, err)
	}
	other := newSource(seed + 1<<32)
	for i, d := range docs {
		docs[i] = other.under(d.ID)
	}
	replace, err := settle(e, docs)
	return map[string]float64{
		"create": create.rate, "create.acked": create.acked, "create.cpu": create.cpu,
		"replace": replace.rate, "replace.acked": replace.acked, "replace.cpu": replace.cpu,
	}, closed(e, err)
}

// filled measures the sizes and times of a store with n documents.
func (c *config) filled(make func() Engine, dir string, seed uint64) (map[string]float64, error) {
	e, err := opened(make, dir)
	if err != nil {
		return nil, err
	}
	src, rng := newSource(seed), rand.New(rand.NewPCG(seed, 2))
	hot := []string(nil)
	for left := c.n; left > 0; left -= 1000 {
		docs := src.docs(min(left, 1000))
		if err := fill(e, docs); err != nil {
			return nil, closed(e, err)
		}
		for range max(1, min(len(docs), 10_000*len(docs)/c.n)) {
			hot = append(hot, docs[rng.IntN(len(docs))].ID)
		}
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	out := map[string]float64{}
	if out["disk"], err = diskMiB(dir); err != nil {
		return nil, err
	}
	before := heapMiB()
	start := time.Now()
	e = make()
	if err := e.Open(dir); err != nil {
		return nil, err
	}
	if _, err := e.Get(hot[0]); err != nil {
		return nil, closed(e, err)
	}
	out["open"] = float64(time.Since(start).Microseconds()) / 1e3
	for _, g := range []int{1, 2} {
		b, err := gets(e, g, c.seconds, hot)
		if err != nil {
			return nil, closed(e, err)
		}
		out[fmt.Sprint("get", g)] = b.rate
	}
	out["heap"] = max(0, heapMiB()-before)
	return out, e.Close()
}

// heapMiB returns the size of Go's heap; mapped files and memory of C are not included.
func heapMiB() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// diskMiB returns the disk space used: allocated blocks where the system reports them, otherwise the file sizes.
func diskMiB(dir string) (float64, error) {
	var bytes int64
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += blocks(info)
		}
		return err
	})
	return float64(bytes) / (1 << 20), err
}
