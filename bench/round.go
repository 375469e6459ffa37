package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// limitName is the row for the limit of the disk itself.
const limitName = "the disk's limit"

// allCallsName is the row for the system calls that write files, log and index.
const allCallsName = "the same with log and index"

// all runs every round and writes the report.
func (c *config) all() error {
	res := results{}
	for round := range c.rounds {
		for w, load := range workloads {
			if len(c.only) > 0 && !slices.Contains(c.only, load.name) {
				continue
			}
			if err := c.limits(res, load.name); err != nil {
				return fmt.Errorf("limit of %s: %w", load.name, err)
			}
			for i := range c.engines {
				// The order turns, so that nobody always comes after the same.
				e := c.engines[(i+round+w)%len(c.engines)]
				if err := c.one(res, load, e, uint64(round*100+w+1)); err != nil {
					return fmt.Errorf("%s of %s: %w", load.name, e().Name(), err)
				}
			}
		}
	}
	return c.write(c.report(res))
}

func (c *config) one(res results, load workload, e func() Engine, seed uint64) error {
	name := e().Name()
	return c.inFolder(func(dir string) error {
		start := time.Now()
		values, err := load.run(c, e, dir, seed)
		fmt.Fprintf(os.Stderr, "%-10s %-22s %6.1fs %v\n", load.name, name, time.Since(start).Seconds(), short(values))
		res.add(name, values)
		return err
	})
}

// limits measures the limits that belong to a workload, within the same minutes.
func (c *config) limits(res results, load string) error {
	return c.inFolder(func(dir string) error {
		switch load {
		case "put1":
			b, err := syncLimit(dir, c.seconds)
			res.add(limitName, map[string]float64{"put1": b.rate, "put1.p50": b.p50, "put1.p99": b.p99})
			return err
		case "settle":
			values, err := fileLimits(dir, 0, c.files, true)
			fmt.Fprintf(os.Stderr, "%-10s %-22s        %v\n", load, limitName, short(values))
			for _, name := range []string{"create", "replace"} {
				res.add(allCallsName, map[string]float64{name: values[name+"+log"], name + ".cpu": values[name+"+log.cpu"]})
			}
			res.add(limitName, values)
			return err
		}
		return nil
	})
}

// manyFiles is the maximum number of files in a folder that is removed between two runs.
const manyFiles = 100

// inFolder runs f in a new folder, after the disk has finished all earlier writes. A folder with many files is kept
// until the end, for the reason given in the package comment.
func (c *config) inFolder(f func(dir string) error) error {
	settleDisk()
	dir, err := os.MkdirTemp(c.dir, "run-*")
	if err != nil {
		return err
	}
	if err := f(dir); err != nil {
		return err
	}
	many := 0
	err = filepath.WalkDir(dir, func(string, os.DirEntry, error) error {
		if many++; many > manyFiles {
			return filepath.SkipAll
		}
		return nil
	})
	if err != nil || many > manyFiles {
		return err
	}
	return os.RemoveAll(dir)
}
