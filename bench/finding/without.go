package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/views"
)

// plain is Varve without the view of words.
type plain struct{ store }

func (p *plain) Open(dir string) (err error) {
	o := storetest.In(&varve.Options{}, storetest.Environment{Views: []views.Maker{}})
	p.st, err = varve.Open(context.Background(), filepath.Join(dir, "store"), o)
	return err
}

// turnsOfPuts is the number of turns of each store, and perTurn the length of a turn.
const (
	turnsOfPuts = 8
	perTurn     = time.Second
)

// without measures how much the view of words adds to the time of a put. In turns, it puts memories one after another
// into a store that has the view, and into one that does not.
func without(at string, n int) error {
	list := []struct {
		name string
		e    interface {
			engine
			writer
		}
		r *result
	}{{"with the view", &store{}, &result{took: map[string][]time.Duration{}}},
		{"without", &plain{}, &result{took: map[string][]time.Duration{}}}}
	for i, l := range list {
		dir := filepath.Join(at, fmt.Sprint("puts", i))
		if err := l.r.fill(l.e, dir, n); err != nil {
			return err
		}
		if err := l.e.Open(dir); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		defer l.e.Close()
	}
	t, err := newTexts(5000)
	if err != nil {
		return err
	}
	made := 0
	for turn := range turnsOfPuts {
		for i := range list {
			l := list[(i+turn)%2]
			for end := time.Now().Add(perTurn); time.Now().Before(end); made++ {
				d := doc{fmt.Sprint("put-", made), session(n + made), t.memory(), nil}
				began := time.Now()
				if err := l.e.Put(d); err != nil {
					return err
				}
				l.r.note("put", began)
			}
		}
	}
	fmt.Println()
	for _, l := range list {
		fmt.Printf("- a put alone, %s: %s ms (%d)\n", l.name, cell(l.r.took["put"]), len(l.r.took["put"]))
	}
	return nil
}
