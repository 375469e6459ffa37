package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varve-db/varve/bench/internal/children"
)

// A recovery begins where a load that does not let up was ended by kill -9: the log is as far ahead of
// the files as the engine lets it be. Then a process of its own opens the store, reads a document that
// it was filled with, puts one, and flushes what is left.

// recoverLoads are the steady loads in which one process puts as fast as the engine accepts.
var recoverLoads = []string{"put64", "batch1000"}

// recovery has the times that a process needed after a kill, in milliseconds since it began to open the store, and the
// log that it found.
type recovery struct {
	Open    float64 `json:"open"`    // time at which Open returned
	Get     float64 `json:"get"`     // time at which the first document was read
	Put     float64 `json:"put"`     // time at which the first document was durable
	Flushed float64 `json:"flushed"` // time at which all files and the index were durable
	Backlog float64 `json:"backlog"` // bytes of log, at opening, that the index did not cover
	Ahead   float64 `json:"ahead"`   // bytes of these that the files did not cover either
}

// recoverAll repeats each load and its recovery, and writes a table.
func (c *config) recoverAll() error {
	var out strings.Builder
	fmt.Fprintf(&out,
		"# Recovery after kill -9\n\nMade by `%s` in `bench/`: %.0f s of load by one process, kill -9, and another "+
			"process opens the store. Milliseconds since it began, median of %d with the least and the greatest. "+
			"The log is as far ahead as the load, slowed by the engine, left it; the page cache is warm. "+
			"The design asks for less than 100 ms "+
			"until it is open with 64 MiB of log to replay, and less than 500 ms with 1 GiB.\n\n%s\n", commandLine(),
		c.seconds.Seconds(), c.rounds, machine(c.dir))
	out.WriteString("| load | log to replay, MiB | ahead of the files, MiB | opened | first get | first put | flushed " +
		"|\n|---|---:|---:|---:|---:|---:|---:|\n")
	for _, load := range recoverLoads {
		if len(c.only) > 0 && !slices.Contains(c.only, load) {
			continue
		}
		for _, make := range c.engines {
			e := make()
			if _, ok := e.(Flusher); !ok {
				continue
			}
			var all []recovery
			for round := range c.rounds {
				err := c.inFolder(func(dir string) error {
					r, err := c.recoverOnce(e.Name(), load, dir, round)
					fmt.Fprintf(os.Stderr, "%s of %s: %+v\n", load, e.Name(), r)
					all = append(all, r)
					return err
				})
				if err != nil {
					return fmt.Errorf("recovery of %s: %w", e.Name(), err)
				}
			}
			fmt.Fprintf(&out, "| %s, %s |", e.Name(), load)
			for _, of := range []func(recovery) float64{
				func(r recovery) float64 { return r.Backlog / (1 << 20) }, func(r recovery) float64 { return r.Ahead / (1 << 20) },
				func(r recovery) float64 { return r.Open }, func(r recovery) float64 { return r.Get },
				func(r recovery) float64 { return r.Put }, func(r recovery) float64 { return r.Flushed },
			} {
				fmt.Fprintf(&out, " %s |", spread(all, of))
			}
			out.WriteString("\n")
		}
	}
	return c.write(out.String())
}

// spread returns a median with the minimum and the maximum, as text.
func spread(all []recovery, of func(recovery) float64) string {
	values := make([]float64, len(all))
	for i, r := range all {
		values[i] = of(r)
	}
	slices.Sort(values)
	return fmt.Sprintf("%.1f (%.1f–%.1f)", values[len(values)/2], values[0], values[len(values)-1])
}

func (c *config) recoverOnce(engine, load, dir string, round int) (r recovery, err error) {
	var writer children.Children
	// It works for longer than it lives.
	if err := writer.Start("-steadyworker", load, "-engines", engine, "-dir", dir, "-n", "1", "-seconds", "600", "-seed",
		strconv.Itoa(round+1)); err != nil {
		return r, err
	}
	began, err := false, writer.AwaitReady()
	if err == nil {
		began, err = true, writer.Begin(strconv.FormatInt(time.Now().UnixNano(), 10))
	}
	if began {
		time.Sleep(c.seconds)
	}
	if err = errors.Join(err, writer.Kill()); err != nil {
		return r, err
	}
	var opener children.Children
	defer func() { err = opener.Close(err) }()
	if err := opener.Start("-opener", load, "-engines", engine, "-dir", dir, "-seed", strconv.Itoa(round+1)); err != nil {
		return r, err
	}
	err = children.ResultsOf(&opener, func(found recovery) { r = found })
	return r, err
}

// opener is the main function of the process that opens the store after the kill.
func (c *config) opener(name string, seed uint64) error {
	load := steadyLoadOf(name)
	if load == nil || len(c.engines) != 1 {
		return fmt.Errorf("there is no load %q with a single engine", name)
	}
	e := c.engines[0]()
	// What the first goroutine of the load has put first was acknowledged long ago.
	g := load.goroutine(seed, 0)
	known := g.next()
	fresh := newProse(seed<<16 | 1<<15).docs(1)[0]
	var r recovery
	began := time.Now()
	ms := func() float64 { return float64(time.Since(began).Microseconds()) / 1e3 }
	if err := e.Open(c.dir); err != nil {
		return err
	}
	r.Open = ms()
	if w, ok := e.(watched); ok {
		levels := w.Levels()
		r.Backlog, r.Ahead = float64(levels["backlog"]), float64(levels["unflushed"])
	}
	read := time.Now()
	if _, err := e.Get(known.ID); err != nil {
		return fmt.Errorf("%s, that was acknowledged: %w", known.ID, err)
	}
	r.Get = r.Open + float64(time.Since(read).Microseconds())/1e3
	if err := e.Put(fresh); err != nil {
		return err
	}
	r.Put = ms()
	if err := e.(Flusher).Flush(); err != nil {
		return err
	}
	r.Flushed = ms()
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		return err
	}
	return e.Close()
}
