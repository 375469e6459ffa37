package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/varve-db/varve/bench/internal/children"
)

// shared is an engine that several processes may have open; Shared returns its name.
type shared interface{ Shared() string }

const (
	processes = 4
	fourLasts = 5 * time.Second
)

// four measures searches in four processes at the same time, each of which has already made one search.
func (r *result) four(name, dir string, stream uint64) (err error) {
	var all children.Children
	defer func() { err = all.Close(err) }()
	for i := range processes {
		if err := all.Start("-worker", name, "-dir", dir, "-data", *data, "-before", *before, "-seed",
			fmt.Sprint(*seed+stream+uint64(i))); err != nil {
			return err
		}
	}
	if err := all.AwaitReady(); err != nil {
		return err
	}
	if err := all.Begin("go"); err != nil {
		return err
	}
	return children.ResultsOf(&all, func(took []time.Duration) { r.took["four"] = append(r.took["four"], took...) })
}

// work is the main function of each of the processes.
func work() (err error) {
	make := engines[*worker]
	if make == nil {
		return fmt.Errorf("engine %q", *worker)
	}
	t, err := newTexts(0)
	if err != nil {
		return err
	}
	e := make()
	if err := e.Open(*dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := e.Search(t.query(), "", false); err != nil {
		return err
	}
	if _, err := children.AwaitBegin(); err != nil {
		return err
	}
	took := []time.Duration{}
	for end := time.Now().Add(fourLasts); time.Now().Before(end); {
		began := time.Now()
		if err := e.Search(t.query(), "", false); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	return json.NewEncoder(os.Stdout).Encode(took)
}
