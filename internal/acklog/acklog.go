package acklog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Record records the acknowledged operations of a test's processes. Each key has one writer at a time,
// so its states form a sequence.
type Record struct {
	mu    sync.Mutex
	keys  map[string]*row
	Wrong []string // descriptions of what contradicts the record

	Counter struct {
		Begun, Acked int
		seen         map[int]string // value: the process that got it
	}
	Ops int
}

// row has the states of one key in the order in which they were written. A state is the content that was
// written, "-" if the key was deleted or never existed.
type row struct {
	states  []string
	settled int // states[settled] was acknowledged or read; later ones may have happened
}

// New returns an empty record.
func New() *Record {
	r := &Record{keys: map[string]*row{}}
	r.Counter.seen = map[int]string{}
	return r
}

func (r *Record) row(key string) *row {
	if r.keys[key] == nil {
		r.keys[key] = &row{states: []string{"-"}}
	}
	return r.keys[key]
}

// indexOf returns the smallest index not below since at which the key has the given state, or -1 if there is no
// such index.
func (w *row) indexOf(state string, since int) int {
	if i := slices.Index(w.states[since:], state); i >= 0 {
		return since + i
	}
	return -1
}

// Line processes one line of the output of a child process. child is the name of that process.
func (r *Record) Line(child, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := strings.Fields(text)
	bad := func() {
		r.Wrong = append(r.Wrong, child+": "+text)
	}
	switch {
	case len(f) == 3 && f[0] == "begin":
		w := r.row(f[1])
		w.states = append(w.states, f[2])
	case len(f) == 3 && (f[0] == "done" || f[0] == "read"):
		r.Ops++
		w := r.row(f[1])
		if f[0] == "done" { // the newest that was begun
			w.settled = len(w.states) - 1
		}
		i := w.indexOf(f[2], w.settled)
		if i < 0 {
			r.Wrong = append(r.Wrong, fmt.Sprintf("%s: %s, but the only possible states are %q",
				child, text, w.states[w.settled:]))
			return
		}
		// Later states that were begun and have no answer may still become durable, with the next sync
		// of any process.
		w.settled = i
	case len(f) == 3 && f[0] == "not": // refused: it did not happen
		w := r.row(f[1])
		w.states = w.states[:len(w.states)-1]
	case len(f) == 1 && f[0] == "counting":
		r.Counter.Begun++
	case len(f) == 1 && f[0] == "uncounted":
		r.Counter.Begun--
	case len(f) == 2 && f[0] == "counted":
		r.Ops++
		r.Counter.Acked++
		n, err := strconv.Atoi(f[1])
		if who, twice := r.Counter.seen[n]; twice || err != nil {
			r.Wrong = append(r.Wrong, fmt.Sprintf("%s: counted to %s, as %s did", child, f[1], who))
		}
		r.Counter.seen[n] = child
	case text == "closed":
	default:
		bad()
	}
}

// Counted returns how many increments of the counter were acknowledged.
func (r *Record) Counted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Counter.Acked
}

// Settled returns, for each key, the index of the newest state that was acknowledged or read.
func (r *Record) Settled() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := map[string]int{}
	for key, w := range r.keys {
		m[key] = w.settled
	}
	return m
}

// Check compares a store with the record, and adds each contradiction to r.Wrong. No process may be writing to the
// store. get returns the state of a key in the store.
func (r *Record) Check(get func(key string) string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, w := range r.keys {
		state := get(key)
		i := w.indexOf(state, w.settled)
		if i < 0 {
			r.Wrong = append(r.Wrong, fmt.Sprintf("%s is %q, but the only possible states are %q",
				key, state, w.states[w.settled:]))
			continue
		}
		w.states, w.settled = append(w.states, state), len(w.states) // the processes that had begun an operation are dead
	}
}

// CheckSince compares a copy of a store with the record, and adds each contradiction to r.Wrong. since is the result
// of Settled before the copy was begun. get returns the state of a key in the copy.
func (r *Record) CheckSince(since map[string]int, get func(key string) string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, w := range r.keys {
		if state := get(key); w.indexOf(state, since[key]) < 0 {
			r.Wrong = append(r.Wrong, fmt.Sprintf("copy: %s is %q, but its states since the copy was begun are %q",
				key, state,
				w.states[since[key]:]))
		}
	}
}

// Trim removes from the record, for each key, the states before the newest state that was acknowledged or read. After
// Trim, CheckSince must not be called with a result that Settled returned before Trim.
func (r *Record) Trim() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.keys {
		w.states, w.settled = slices.Clone(w.states[w.settled:]), 0
	}
}

// Problems returns descriptions of all observations so far that contradict the record.
func (r *Record) Problems() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.Wrong)
}

// Len returns the number of keys.
func (r *Record) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.keys)
}
