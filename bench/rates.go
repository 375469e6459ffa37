package main

import (
	"fmt"
	"strings"
)

// steps are how many documents the store holds when the rates are measured.
// The system that Varve replaces fell from 1,205 to 75 a second between the
// first of them and 2,000.
var steps = []int{100, 500, 1_000, 2_000, 10_000, 100_000}

// rates measures, at each step, durable puts by 1 and 64 goroutines and the
// settled rate. The store grows by what is measured, so each burst is one of
// few documents: as many as there are, at least 1,000 and at most -files. The
// limit is that of the bare calls, for as many files in a folder with as many.
func (c *config) rates() error {
	var out strings.Builder
	fmt.Fprintf(&out, "# Rates by the size of the store\n\nMade by `%s` in `bench/`; %d rounds, each with a store of its own.\n\n%s\n", commandLine(), c.rounds, machine(c.dir))
	for _, makeEngine := range c.engines {
		name := makeEngine().Name()
		res := results{}
		for round := range c.rounds {
			for i, size := range steps {
				seed := uint64(round*100+i+1) << 8
				err := c.inFolder(func(dir string) error { return c.ratesAt(res, makeEngine, dir, size, seed) })
				if err != nil {
					return fmt.Errorf("%s with %d: %w", name, size, err)
				}
			}
		}
		fmt.Fprintf(&out, "## %s\n\n| holds | puts/s, 1 goroutine | puts/s, 64 goroutines | settled/s | the calls alone/s | share |\n|---:|---:|---:|---:|---:|---:|\n", name)
		for _, size := range steps {
			at := fmt.Sprint(size)
			settled, ok := res.median(at, "create")
			limit, _ := res.median(at, "limit")
			share := ""
			if ok && limit > 0 {
				share = fmt.Sprintf("%.2f", settled/limit)
			}
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s |\n", number(float64(size)), res.cell(at, "put1"), res.cell(at, "put64"),
				res.cell(at, "create"), res.cell(at, "limit"), share)
		}
		out.WriteString("\n")
	}
	return c.write(out.String())
}

func (c *config) ratesAt(res results, makeEngine func() Engine, dir string, size int, seed uint64) error {
	e, err := opened(makeEngine, dir)
	if err != nil {
		return err
	}
	src := newSource(seed)
	for left := size; left > 0; left -= 1000 {
		if err := fill(e, src.docs(min(left, 1000))); err != nil {
			return closed(e, err)
		}
	}
	flusher, settles := e.(Flusher)
	if settles {
		if err := flusher.Flush(); err != nil {
			return closed(e, err)
		}
	}
	few := min(max(size, 1000), c.files)
	values := map[string]float64{}
	for _, g := range []int{1, 64} {
		b, err := puts(e, g, c.seconds, few, seed+uint64(g))
		if err != nil {
			return closed(e, err)
		}
		values[fmt.Sprint("put", g)] = b.rate
	}
	if settles {
		if err := flusher.Flush(); err != nil {
			return closed(e, err)
		}
		s, err := settle(e, src.docs(few))
		if err != nil {
			return closed(e, err)
		}
		values["create"] = s.rate
	}
	if err := e.Close(); err != nil {
		return err
	}
	if settles {
		err = c.inFolder(func(dir string) error {
			limits, err := fileLimits(dir, size+2*few, few, false)
			values["limit"] = limits["create"]
			return err
		})
	}
	res.add(fmt.Sprint(size), values)
	return err
}
