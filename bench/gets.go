package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// uncached is an engine that stores documents in files and can be opened without its own cache.
type uncached interface {
	OpenUncached(dir string) error
	Path(dir, id string) string // path of a document's file
}

// getRuns is how many documents are read in a row in one way before the next way of reading has its turn.
const getRuns = 1000

// fresh measures reads of documents that were just put. It puts -files documents with 64 goroutines, then reads
// each of them once, in random order, and a second time; then it does the same after a flush. If the engine stores
// each document in a file, fresh also measures it without its cache, in turns with bare system calls that open, read
// and close the file, and with the calls that the engine itself makes.
func (c *config) fresh(make func() Engine, dir string, seed uint64) (map[string]float64, error) {
	e, err := opened(make, dir)
	if err != nil {
		return nil, err
	}
	docs := newSource(seed).docs(c.files)
	next := handed(docs)
	if _, err := during(64, time.Hour, len(docs)/64*64, func(int) error { return e.Put(<-next) }); err != nil {
		return nil, closed(e, err)
	}
	docs = docs[:len(docs)/64*64]
	rng := rand.New(rand.NewPCG(seed, 3))
	rng.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
	out := map[string]float64{}
	pass := func(name string) error {
		start := time.Now()
		for i := range docs {
			if doc, err := e.Get(docs[i].ID); err != nil || len(doc) < docSize/2 {
				return fmt.Errorf("%s: %d bytes, %w", docs[i].ID, len(doc), err)
			}
		}
		out[name] = float64(len(docs)) / time.Since(start).Seconds()
		return nil
	}
	for _, name := range []string{"new.1", "new.2"} {
		if err := pass(name); err != nil {
			return nil, closed(e, err)
		}
	}
	if f, ok := e.(Flusher); ok {
		if err := f.Flush(); err != nil {
			return nil, closed(e, err)
		}
		for _, name := range []string{"flushed.1", "flushed.2"} {
			if err := pass(name); err != nil {
				return nil, closed(e, err)
			}
		}
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	u, ok := e.(uncached)
	if !ok {
		return out, nil
	}
	if err := u.OpenUncached(dir); err != nil {
		return nil, err
	}
	ways := []struct {
		name string
		read func(id string) error
		took time.Duration
	}{
		{name: "file", read: func(id string) error { _, err := e.Get(id); return err }},
		{name: "file.bare", read: func(id string) error { return bareRead(u.Path(dir, id)) }},
		{name: "file.same", read: func(id string) error { return sameRead(u.Path(dir, id)) }},
	}
	for range 3 {
		for i := 0; i+getRuns <= len(docs); i += getRuns {
			for w := range ways {
				start := time.Now()
				for _, d := range docs[i : i+getRuns] {
					if err := ways[w].read(d.ID); err != nil {
						return nil, closed(e, err)
					}
				}
				ways[w].took += time.Since(start)
			}
		}
	}
	for _, w := range ways {
		out[w.name] = float64(3*(len(docs)/getRuns*getRuns)) / w.took.Seconds()
	}
	return out, e.Close()
}

// handed returns a channel from which each document can be received once.
func handed(docs []Doc) <-chan Doc {
	c := make(chan Doc, len(docs))
	for _, d := range docs {
		c <- d
	}
	return c
}
