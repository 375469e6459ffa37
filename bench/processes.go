package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/varve-db/varve/bench/internal/children"
)

const (
	processCount         = 4
	goroutinesPerProcess = 16
)

// processes lets several processes of this program put into one store at the same time. Each opens the store and
// reports that it is ready; all begin when the last one is ready.
func processes(name, dir, hot string, d time.Duration, seed uint64) (rate, longest float64, err error) {
	var c children.Children
	defer func() { err = c.Close(err) }()
	for i := range processCount {
		if err := c.Start("-worker", name, "-prose="+strconv.FormatBool(prose), "-hot", hot, "-dir", dir, "-seconds",
			strconv.FormatFloat(d.Seconds(), 'f', -1, 64),
			"-seed", strconv.FormatUint(seed*processCount+uint64(i), 10)); err != nil {
			return 0, 0, err
		}
	}
	if err := c.AwaitReady(); err != nil {
		return 0, 0, err
	}
	if err := c.Begin("go"); err != nil {
		return 0, 0, err
	}
	err = children.ResultsOf(&c, func(b [2]float64) { rate, longest = rate+b[0], max(longest, b[1]) })
	return rate, longest, err
}

// worker is the main function of such a process.
func worker(name, dir, kind string, d time.Duration, seed uint64) error {
	for _, f := range engines() {
		e := f()
		if e.Name() != name {
			continue
		}
		if err := e.Open(dir); err != nil {
			return err
		}
		_, err := children.AwaitBegin()
		if err != nil {
			return err
		}
		var rate float64
		var longest time.Duration
		if kind == "" {
			var b burst
			b, err = puts(e, goroutinesPerProcess, d, mostPuts, seed)
			rate = b.rate
		} else {
			rate, longest, err = hot(e, kind, goroutinesPerProcess, d, seed)
		}
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode([2]float64{rate, longest.Seconds()}); err != nil {
			return err
		}
		return e.Close()
	}
	return fmt.Errorf("no engine %q", name)
}
