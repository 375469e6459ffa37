package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/varve-db/varve/bench/internal/children"
)

// watched is an engine that reports its background work and its levels.
type watched interface {
	// Watch sets the function that is called for each piece of background work; it is called before Open.
	Watch(told func(kind string, took time.Duration))
	// Levels returns numbers that show how far background work lags behind.
	Levels() map[string]int64
}

// steadyWorker is one process of a cell.
type steadyWorker struct {
	e    Engine
	ids  []string // ids of the documents with which the store was filled
	gors []steadyGoroutine
}

type steadyGoroutine struct {
	src  *source
	docs []Doc
	n    int
	rng  *rand.Rand
	zipf *rand.Zipf
}

// goroutine is one goroutine of a load, with its documents.
func (l *steadyLoad) goroutine(seed uint64, g int) steadyGoroutine {
	s := steadyGoroutine{src: newProse(seed<<16 + uint64(g)), rng: rand.New(rand.NewPCG(seed, uint64(g)))}
	s.docs = s.src.docs(max(256, 20_000/l.goroutines))
	return s
}

// next returns a document with a new id.
func (g *steadyGoroutine) next() Doc {
	g.n++
	return g.src.renamed(g.docs[g.n%len(g.docs)])
}

func (w *steadyWorker) put(g int) (int, string, error) { return 1, "put", w.e.Put(w.gors[g].next()) }

func (w *steadyWorker) batch(g int) (int, string, error) { return w.batchOf(g, 1000) }

func (w *steadyWorker) batchOf(g, n int) (int, string, error) {
	docs := make([]Doc, n)
	for i := range docs {
		docs[i] = w.gors[g].next()
	}
	return n, "batch", w.e.PutBatch(docs)
}

func (w *steadyWorker) get(g int) (int, string, error) {
	// Which ids are read often has nothing to do with when they were put.
	i := w.gors[g].zipf.Uint64() * 0x9e3779b97f4a7c15 % uint64(len(w.ids))
	_, err := w.e.Get(w.ids[i])
	return 1, "get", err
}

func (w *steadyWorker) readMostly(g int) (int, string, error) {
	if w.gors[g].rng.IntN(10) == 0 {
		return w.put(g)
	}
	return w.get(g)
}

func (w *steadyWorker) mixed(g int) (int, string, error) {
	switch k := w.gors[g].rng.IntN(100); {
	case k < 60:
		return w.get(g)
	case k < 99:
		return w.put(g)
	}
	return w.batchOf(g, 100)
}

const fillSeed = 77

// runSteadyWorker is the main function of a process of a cell.
func (c *config) runSteadyWorker(name string, seed uint64) (err error) {
	load := steadyLoadOf(name)
	if load == nil || len(c.engines) != 1 {
		return fmt.Errorf("there is no load %q with a single engine", name)
	}
	w := &steadyWorker{e: c.engines[0]()}
	var mu sync.Mutex
	var marks []mark
	var began time.Time
	if e, ok := w.e.(watched); ok {
		e.Watch(func(kind string, took time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			if !began.IsZero() {
				marks = append(marks, mark{time.Since(began).Seconds(), kind, took.Seconds() * 1e3})
			}
		})
	}
	if err := w.e.Open(c.dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.e.Close()) }()
	if load.fill {
		src := newProse(fillSeed)
		for left := c.n; left > 0; left -= 1000 {
			docs := src.docs(min(left, 1000))
			for i := range docs {
				w.ids = append(w.ids, docs[i].ID)
			}
			if seed == 1 {
				if err := fill(w.e, docs); err != nil {
					return err
				}
			}
		}
	}
	for g := range load.goroutines {
		s := load.goroutine(seed, g)
		if load.fill {
			s.zipf = rand.NewZipf(s.rng, 1.1, 1, uint64(len(w.ids)-1))
		}
		w.gors = append(w.gors, s)
	}
	line, err := children.AwaitBegin()
	if err != nil {
		return err
	}
	nanos, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return err
	}
	mu.Lock()
	began = time.Unix(0, nanos)
	mu.Unlock()
	t, err := w.during(load, began, c.seconds)
	if err != nil {
		return err
	}
	mu.Lock()
	t.Marks = marks
	mu.Unlock()
	return json.NewEncoder(os.Stdout).Encode(t)
}

// during lets the goroutines work until the time is over, and counts operations by second.
func (w *steadyWorker) during(load *steadyLoad, began time.Time, d time.Duration) (*timeline, error) {
	seconds := int(d / time.Second)
	parts, errs := make([]*timeline, load.goroutines), make([]error, load.goroutines)
	var wg sync.WaitGroup
	for g := range load.goroutines {
		t := newTimeline(seconds)
		parts[g] = t
		wg.Go(func() {
			// The beginnings of goroutines that work by the clock are spread over the interval.
			from := began.Add(load.every * time.Duration(g) / time.Duration(load.goroutines))
			for {
				if load.every > 0 {
					time.Sleep(time.Until(from))
				} else {
					from = time.Now()
				}
				docs, kind, err := load.step(w, g)
				now := time.Now()
				if errs[g] = err; err != nil {
					return
				}
				if t.Kinds[kind] == nil {
					t.Kinds[kind] = latency{}
				}
				t.Kinds[kind].note(now.Sub(from))
				switch at := int(now.Sub(began) / time.Second); {
				case at >= seconds:
				case kind == "get":
					t.Reads[at]++
				default:
					t.Docs[at] += docs
					t.Ops[at]++
					t.lat[at].note(now.Sub(from))
				}
				// What was due before the end is counted too, where the engine is behind, for as long again.
				if from = from.Add(load.every); load.every == 0 && now.Sub(began) >= d || from.Sub(began) >= d ||
					now.Sub(began) >= 2*d {
					return
				}
			}
		})
	}
	stop, levels := make(chan struct{}), make(chan map[string][]int64, 1)
	go func() {
		sum := map[string][]int64{}
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				levels <- sum
				return
			case <-tick.C:
			}
			if e, ok := w.e.(watched); ok {
				for name, n := range e.Levels() {
					sum[name] = append(sum[name], n)
				}
			}
		}
	}()
	wg.Wait()
	close(stop)
	sum := newTimeline(seconds)
	for _, t := range parts {
		for i := range sum.lat {
			sum.Docs[i] += t.Docs[i]
			sum.Reads[i] += t.Reads[i]
			sum.Ops[i] += t.Ops[i]
			sum.lat[i].merge(t.lat[i])
		}
		sum.addKinds(t)
	}
	sum.Levels = <-levels
	return sum, errors.Join(errs...)
}
