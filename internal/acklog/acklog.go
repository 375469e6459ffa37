package acklog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Record is what the processes of a test were told. Each key has one writer at a time, so its states
// form a row.
type Record struct {
	mu    sync.Mutex
	keys  map[string]*row
	Wrong []string // what contradicts it

	Counter struct {
		Begun, Acked int
		seen         map[int]string // value: who was given it
	}
	Ops int
}

// row is what became of one key: a state is the content that was written, "-" when
// it was deleted or never there.
type row struct {
	states  []string
	settled int // states[settled] was acknowledged or read; those behind it may have happened
}

// New is a record of nothing.
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

// at says which of the states that the key may have now, or may have had since,
// is this one, the first if there are several; -1: none.
func (w *row) at(state string, since int) int {
	if i := slices.Index(w.states[since:], state); i >= 0 {
		return since + i
	}
	return -1
}

// Line takes in what a child has said.
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
		i := w.at(f[2], w.settled)
		if i < 0 {
			r.Wrong = append(r.Wrong, fmt.Sprintf("%s: %s, but it may only be one of %q", child, text, w.states[w.settled:]))
			return
		}
		// What was begun behind it and had no answer may still become durable, with
		// the next sync of whatever process.
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

// Counted is how often a process was told that it had counted.
func (r *Record) Counted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Counter.Acked
}

// Settled is how far each key is settled now.
func (r *Record) Settled() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := map[string]int{}
	for key, w := range r.keys {
		m[key] = w.settled
	}
	return m
}

// Check compares a store that nobody writes to: get returns a key's state.
func (r *Record) Check(get func(key string) string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, w := range r.keys {
		state := get(key)
		i := w.at(state, w.settled)
		if i < 0 {
			r.Wrong = append(r.Wrong, fmt.Sprintf("%s is %q, but it may only be one of %q", key, state, w.states[w.settled:]))
			continue
		}
		w.states, w.settled = append(w.states, state), len(w.states) // the processes that had begun something are dead
	}
}

// CheckSince compares a copy that was begun when the keys were settled so far.
func (r *Record) CheckSince(since map[string]int, get func(key string) string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, w := range r.keys {
		if state := get(key); w.at(state, since[key]) < 0 {
			r.Wrong = append(r.Wrong, fmt.Sprintf("copy: %s is %q, but it was one of %q since", key, state,
				w.states[since[key]:]))
		}
	}
}

// Trim forgets the states that no key can have any more: CheckSince is not asked again.
func (r *Record) Trim() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.keys {
		w.states, w.settled = slices.Clone(w.states[w.settled:]), 0
	}
}

// Problems are all that contradict it so far.
func (r *Record) Problems() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.Wrong)
}

// Len is how many keys it has.
func (r *Record) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.keys)
}
