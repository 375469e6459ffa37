package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	sessionDocs = 100  // number of documents in a session
	waitCalls   = 200  // number of measured calls of an operation on one document or session
	getCalls    = 2000 // number of measured reads of one document
	getWarm     = 200  // number of such reads before them, so that parts of the index are not read for the first time
	waitBatch   = 500  // number of documents in a commit of a burst
)

// waiting is a filled store of one engine while its rows are measured.
type waiting struct {
	e        waited
	dir      string // folder of the store
	beside   string // folder for exports and backups
	src      *source
	put      int      // number of documents that were put
	ids      []string // ids of the documents, the oldest first
	rng      *rand.Rand
	measures map[string]float64
}

// waiter fills a store of one engine, and writes the times of its rows to the standard output. It is the main
// function of a process.
func (c *config) waiter(name string, seed uint64) error {
	w := &waiting{dir: filepath.Join(c.dir, "store"), beside: filepath.Join(c.dir, "beside"), src: newProse(seed),
		rng: rand.New(rand.NewPCG(seed, 1)), measures: map[string]float64{}}
	for _, makeEngine := range waitedEngines() {
		if e := makeEngine(); e.Name() == name {
			w.e = e
		}
	}
	if w.e == nil {
		return fmt.Errorf("no engine %q", name)
	}
	if err := errors.Join(os.Mkdir(w.dir, 0o700), os.Mkdir(w.beside, 0o700), w.e.Open(w.dir)); err != nil {
		return err
	}
	// What another row does later must not make a document an old one's neighbor in the log: each row begins with a
	// store that was closed, and opened again.
	if err := w.burst(c.n); err != nil {
		return err
	}
	if err := w.reopen(); err != nil {
		return err
	}
	for _, row := range waitRows {
		if len(c.only) > 0 && !slices.Contains(c.only, row.name) {
			continue
		}
		settleDisk()
		times, err := row.run(w)
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		if len(times.took) > 0 {
			slices.Sort(times.took)
			w.measures[row.name] = times.took[len(times.took)/2]
			w.measures[row.name+".cpu"] = times.cpu / float64(len(times.took))
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(w.measures); err != nil {
		return err
	}
	return w.e.Close()
}

// waitTimes is how long the calls of an operation took, and the processor time of all of them, in milliseconds.
type waitTimes struct {
	took []float64
	cpu  float64
}

// timed measures n calls.
func timed(n int, call func() error) (t waitTimes, err error) {
	cpu := used()
	for range n {
		began := time.Now()
		if err := call(); err != nil {
			return t, err
		}
		t.took = append(t.took, ms(time.Since(began)))
	}
	t.cpu = ms(used() - cpu)
	return t, nil
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// burst puts n documents in durable commits.
func (w *waiting) burst(n int) error {
	for n > 0 {
		docs := make([]Doc, min(n, waitBatch))
		for i := range docs {
			docs[i] = w.src.in(w.session(w.put))
			w.put++
			w.ids = append(w.ids, docs[i].ID)
		}
		if err := w.e.PutBatch(docs); err != nil {
			return err
		}
		n -= len(docs)
	}
	return nil
}

// session returns the name of the session of the i-th document that is put.
func (w *waiting) session(i int) string { return "session-" + strconv.Itoa(i/sessionDocs) }

func (w *waiting) reopen() error {
	return errors.Join(w.e.Close(), w.e.Open(w.dir))
}

// old removes the id of a document of the older half from the list, and returns it.
func (w *waiting) old() string {
	i := w.rng.IntN(len(w.ids)/2 + 1)
	id := w.ids[i]
	w.ids = slices.Delete(w.ids, i, i+1)
	return id
}

func (w *waiting) update() (waitTimes, error) {
	e, ok := w.e.(updater)
	if !ok {
		return waitTimes{}, nil
	}
	return timed(min(waitCalls, len(w.ids)/4), func() error {
		id := w.old()
		w.ids = append(w.ids, id)
		return e.Update(id)
	})
}

func (w *waiting) delete() (waitTimes, error) {
	e, ok := w.e.(deleter)
	if !ok {
		return waitTimes{}, nil
	}
	return timed(min(waitCalls, len(w.ids)/4), func() error { return e.Delete(w.old()) })
}

// get measures reads of single documents from an engine without a cache of its own. The page cache of the system has
// the documents.
func (w *waiting) get() (waitTimes, error) {
	e, ok := w.e.(getter)
	if !ok {
		return waitTimes{}, nil
	}
	if err := errors.Join(w.e.Close(), e.OpenUncached(w.dir)); err != nil {
		return waitTimes{}, err
	}
	get := func() error {
		id := w.ids[w.rng.IntN(len(w.ids))]
		doc, err := e.Get(id)
		if err == nil && len(doc) < docSize/2 {
			err = fmt.Errorf("%s has %d bytes", id, len(doc))
		}
		return err
	}
	for range getWarm {
		if err := get(); err != nil {
			return waitTimes{}, err
		}
	}
	t, err := timed(getCalls, get)
	return t, errors.Join(err, w.reopen())
}

// ofSession measures an operation on one session, which must see all of its documents: at most sessionDocs.
func (w *waiting) ofSession(of func(session string) (int, error)) (waitTimes, error) {
	return timed(waitCalls, func() error {
		session := w.session(w.rng.IntN(w.put))
		n, err := of(session)
		if err == nil && n > sessionDocs {
			err = fmt.Errorf("%s has %d documents, not at most %d", session, n, sessionDocs)
		}
		return err
	})
}

func (w *waiting) count() (waitTimes, error) {
	e, ok := w.e.(counter)
	if !ok {
		return waitTimes{}, nil
	}
	return w.ofSession(e.Count)
}

func (w *waiting) list() (waitTimes, error) {
	e, ok := w.e.(lister)
	if !ok {
		return waitTimes{}, nil
	}
	return w.ofSession(e.List)
}

// The ranks of words by their frequency in the texts.
const (
	commonWords = 30
	rareFrom    = 2000
	rareTo      = 12_000
)

// word returns a word by a random rank.
func (w *waiting) word(from, to int) string { return w.src.words.words[from+w.rng.IntN(to-from)] }

// search measures searches for the best 10, after one that is not measured.
func (w *waiting) search(text func() string) (waitTimes, error) {
	e, ok := w.e.(searcher)
	if !ok {
		return waitTimes{}, nil
	}
	if _, err := e.Search(text()); err != nil {
		return waitTimes{}, err
	}
	return timed(waitCalls/4, func() error {
		_, err := e.Search(text())
		return err
	})
}

func (w *waiting) rare() (waitTimes, error) {
	return w.search(func() string { return w.word(rareFrom, rareTo) + " " + w.word(rareFrom, rareTo) })
}

func (w *waiting) mixed() (waitTimes, error) {
	return w.search(func() string {
		return strings.Join([]string{w.word(rareFrom, rareTo), w.word(0, commonWords), w.word(0, commonWords)}, " ")
	})
}

func (w *waiting) common() (waitTimes, error) {
	return w.search(func() string {
		return strings.Join([]string{w.word(0, commonWords), w.word(0, commonWords), w.word(0, commonWords)}, " ")
	})
}

// behind measures the first search behind a burst of n puts in an engine that is open and has searched before. An
// engine that makes the index of words later than the put makes it now.
func (w *waiting) behind(n int) (waitTimes, error) {
	e, ok := w.e.(searcher)
	if !ok {
		return waitTimes{}, nil
	}
	search := func() error {
		_, err := e.Search(w.word(rareFrom, rareTo))
		return err
	}
	if err := errors.Join(search(), w.burst(n)); err != nil {
		return waitTimes{}, err
	}
	return timed(1, search)
}

// first measures opening the store and the first search, after a close that followed n puts.
func (w *waiting) first(n int) (waitTimes, error) {
	e, ok := w.e.(searcher)
	if !ok {
		return waitTimes{}, nil
	}
	if err := errors.Join(w.burst(n), w.e.Close()); err != nil {
		return waitTimes{}, err
	}
	return timed(1, func() error {
		if err := w.e.Open(w.dir); err != nil {
			return err
		}
		_, err := e.Search(w.word(rareFrom, rareTo))
		return err
	})
}

func (w *waiting) verify() (waitTimes, error) {
	e, ok := w.e.(verifier)
	if !ok {
		return waitTimes{}, nil
	}
	return timed(1, e.Verify)
}

func (w *waiting) export() (waitTimes, error) {
	e, ok := w.e.(exporter)
	if !ok {
		return waitTimes{}, nil
	}
	return timed(1, func() error {
		n, err := e.Export(filepath.Join(w.beside, "export"))
		if err == nil && n != len(w.ids) {
			err = fmt.Errorf("exported %d documents, want %d", n, len(w.ids))
		}
		return err
	})
}

func (w *waiting) backup() (waitTimes, error) {
	e, ok := w.e.(backuper)
	if !ok {
		return waitTimes{}, nil
	}
	return timed(1, func() error { return e.Backup(filepath.Join(w.beside, "backup")) })
}

// close measures the close right after a burst of n puts.
func (w *waiting) close(n int) (waitTimes, error) {
	if err := w.burst(n); err != nil {
		return waitTimes{}, err
	}
	t, err := timed(1, w.e.Close)
	return t, errors.Join(err, w.e.Open(w.dir))
}

// closeWithin measures a close with a limit of two seconds. Changes that it does not write to files are in the log.
func (w *waiting) closeWithin() (waitTimes, error) {
	e, ok := w.e.(interface{ CloseWithin(time.Duration) })
	if !ok {
		return waitTimes{}, nil
	}
	if err := w.burst(40_000); err != nil {
		return waitTimes{}, err
	}
	t, err := timed(1, func() error { e.CloseWithin(2 * time.Second); return nil })
	return t, errors.Join(err, w.e.Open(w.dir))
}
