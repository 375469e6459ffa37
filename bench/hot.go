package main

import (
	"fmt"
	"sync/atomic"
	"time"
)

// hotIDs is the number of documents that all goroutines of all processes write.
const hotIDs = 4

// adder is an engine that can increment a counter, in a transaction or in working memory.
type adder interface {
	Update(id string) error
	Increment(id string) error
}

// hot measures puts of a few documents by all goroutines, and changes of these documents that depend on their
// previous content. It returns the rate, and the duration of the longest operation.
func hot(e Engine, kind string, goroutines int, d time.Duration,
	seed uint64) (rate float64, longest time.Duration, err error) {
	a, _ := e.(adder)
	docs := make([]Doc, 64*hotIDs) // SQLite writes nothing for a document that is the same
	for i, src := 0, newSource(seed); i < len(docs); i++ {
		docs[i] = src.under(fmt.Sprint("hot-", i%hotIDs))
	}
	var n, most atomic.Int64
	b, err := during(goroutines, d, mostPuts, func(int) (err error) {
		doc := docs[n.Add(1)%int64(len(docs))]
		start := time.Now()
		switch kind {
		case "update":
			err = a.Update(doc.ID)
		case "count":
			err = a.Increment(doc.ID)
		default:
			err = e.Put(doc)
		}
		took := int64(time.Since(start))
		for was := most.Load(); took > was && !most.CompareAndSwap(was, took); was = most.Load() {
		}
		return err
	})
	return b.rate, time.Duration(most.Load()), err
}

// hotProcesses are those by 4 processes.
func (c *config) hotProcesses(make func() Engine, dir string, seed uint64) (map[string]float64, error) {
	e, err := opened(make, dir)
	if err != nil {
		return nil, err
	}
	for i := range hotIDs {
		if err := e.Put(newSource(seed).under(fmt.Sprint("hot-", i))); err != nil {
			return nil, closed(e, err)
		}
	}
	if err := e.Close(); err != nil || !e.MultiProcess() {
		return nil, err
	}
	out := map[string]float64{}
	for _, kind := range []string{"put", "update", "count"} {
		if _, ok := e.(adder); kind != "put" && !ok {
			continue
		}
		rate, longest, err := processes(e.Name(), dir, kind, c.seconds, seed)
		if err != nil {
			return nil, err
		}
		out["hot."+kind], out["hot."+kind+".longest"] = rate, longest*1e3
	}
	return out, nil
}
