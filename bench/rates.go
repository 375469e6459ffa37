package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// steps are the numbers of documents in the store at which the rates are measured. The rate of the system that
// Varve replaces fell from 1,205 to 75 per second between 100 and 2,000 documents.
var steps = []int{100, 1_000, 10_000, 100_000}

func stepsOf(list string) ([]int, error) {
	if list == "" {
		return steps, nil
	}
	var out []int
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-steps: %q is not a number of documents", s)
		}
		out = append(out, n)
	}
	return out, nil
}

// rates measures, at each step, durable puts by 1 and 64 goroutines and the settled rate. Measuring adds documents
// to the store, so each burst is small: as many documents as the store has, at least 1,000 and at most -files.
// Small bursts are repeated. The limits are the rates of bare system calls that write as many files into a folder
// with as many files.
func (c *config) rates() error {
	var out strings.Builder
	fmt.Fprintf(&out,
		"# Rates by the size of the store\n\nMade by `%s` in `bench/`; %d rounds, each with a store of its own.\n\n%s\n",
		commandLine(), c.rounds, machine(c.dir))
	began := time.Now()
	for _, makeEngine := range c.engines {
		name := makeEngine().Name()
		res := results{}
		for round := range c.rounds {
			for i, size := range c.steps {
				seed := uint64(round*100+i+1) << 8
				start := time.Now()
				err := c.inFolder(func(dir string) error { return c.ratesAt(res, makeEngine, dir, size, seed) })
				if err != nil {
					return fmt.Errorf("%s with %d: %w", name, size, err)
				}
				at := fmt.Sprint(size)
				settled, _ := res.median(at, "create")
				limit, _ := res.median(at, "limit")
				fmt.Fprintf(os.Stderr, "round %d, %s with %s: %.1fs, settled %s of %s; %.0fs in all\n", round+1, name,
					number(float64(size)),
					time.Since(start).Seconds(), number(settled), number(limit), time.Since(began).Seconds())
			}
		}
		fmt.Fprintf(&out,
			"## %s\n\n"+
				"| holds | puts/s, 1 goroutine | puts/s, 64 goroutines | settled/s | the files' calls/s | share | with "+
				"log and index/s | share |\n|---:|---:|---:|---:|---:|---:|---:|---:|\n", name)
		for _, size := range c.steps {
			at := fmt.Sprint(size)
			share := func(of string) string {
				settled, ok := res.median(at, "create")
				limit, _ := res.median(at, of)
				if !ok || limit <= 0 {
					return ""
				}
				return fmt.Sprintf("%.2f", settled/limit)
			}
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", number(float64(size)), res.cell(at, "put1"),
				res.cell(at, "put64"),
				res.cell(at, "create"), res.cell(at, "limit"), share("limit"), res.cell(at, "limit+log"), share("limit+log"))
		}
		out.WriteString("\n")
	}
	return c.write(out.String())
}

// mostBursts is how often a small burst is repeated.
const mostBursts = 5

func (c *config) ratesAt(res results, makeEngine func() Engine, dir string, size int, seed uint64) error {
	e, err := opened(makeEngine, dir)
	if err != nil {
		return err
	}
	src, at := newSource(seed), fmt.Sprint(size)
	for left := size; left > 0; left -= 1000 {
		if err := fill(e, src.docs(min(left, 1000))); err != nil {
			return closed(e, err)
		}
	}
	flusher, settles := e.(Flusher)
	flush := func() error {
		if !settles {
			return nil
		}
		return flusher.Flush()
	}
	if err := flush(); err != nil {
		return closed(e, err)
	}
	few := min(max(size, 1000), c.files)
	bursts := max(1, min(mostBursts, c.files/few))
	for n := range bursts {
		for _, g := range []int{1, 64} {
			b, err := puts(e, g, c.seconds, few, seed+uint64(100*n+g))
			if err == nil {
				err = flush()
			}
			if err != nil {
				return closed(e, err)
			}
			res.add(at, map[string]float64{fmt.Sprint("put", g): b.rate})
		}
		if settles {
			s, err := settle(e, src.docs(few))
			if err != nil {
				return closed(e, err)
			}
			res.add(at, map[string]float64{"create": s.rate})
		}
	}
	if err := e.Close(); err != nil || !settles {
		return err
	}
	return c.inFolder(func(dir string) error {
		for n := range bursts {
			already := 0
			if n == 0 {
				already = size + 2*few
			}
			limits, err := fileLimits(dir, already, few, true)
			if err != nil {
				return err
			}
			res.add(at, map[string]float64{"limit": limits["create"], "limit+log": limits["create+log"]})
		}
		return nil
	})
}
