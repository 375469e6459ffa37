package storm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// told is what the processes of a storm were told, kept outside the store. Each
// key has one writer at a time, so its states form a row.
type told struct {
	mu    sync.Mutex
	keys  map[string]*row
	wrong []string

	counter struct {
		begun, acked int
		seen         map[int]string // value: who was given it
	}
	ops, kills, stops int
}

// row is what became of one key: a state is the content that was written, "-" when
// it was deleted or never there.
type row struct {
	states  []string
	settled int // states[settled] was acknowledged or read; those behind it may have happened
}

func newTold() *told {
	r := &told{keys: map[string]*row{}}
	r.counter.seen = map[int]string{}
	return r
}

func (r *told) row(key string) *row {
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

// line takes in what a child has said.
func (r *told) line(child, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := strings.Fields(text)
	bad := func() {
		r.wrong = append(r.wrong, child+": "+text)
	}
	switch {
	case len(f) == 3 && f[0] == "begin":
		w := r.row(f[1])
		w.states = append(w.states, f[2])
	case len(f) == 3 && (f[0] == "done" || f[0] == "read"):
		r.ops++
		w := r.row(f[1])
		if f[0] == "done" { // the newest that was begun
			w.settled = len(w.states) - 1
		}
		i := w.at(f[2], w.settled)
		if i < 0 {
			r.wrong = append(r.wrong, fmt.Sprintf("%s: %s, but it may only be one of %q", child, text, w.states[w.settled:]))
			return
		}
		// What was begun behind it and had no answer may still become durable, with
		// the next sync of whatever process.
		w.settled = i
	case len(f) == 3 && f[0] == "not": // refused: it did not happen
		w := r.row(f[1])
		w.states = w.states[:len(w.states)-1]
	case len(f) == 1 && f[0] == "counting":
		r.counter.begun++
	case len(f) == 1 && f[0] == "uncounted":
		r.counter.begun--
	case len(f) == 2 && f[0] == "counted":
		r.ops++
		r.counter.acked++
		n, err := strconv.Atoi(f[1])
		if who, twice := r.counter.seen[n]; twice || err != nil {
			r.wrong = append(r.wrong, fmt.Sprintf("%s: counted to %s, as %s did", child, f[1], who))
		}
		r.counter.seen[n] = child
	case text == "closed":
	default:
		bad()
	}
}

func (r *told) counted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counter.acked
}

// settledRows is how far each key is settled now.
func (r *told) settledRows() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := map[string]int{}
	for key, w := range r.keys {
		m[key] = w.settled
	}
	return m
}

// check compares a store that nobody writes to: get returns a key's state.
func (r *told) check(get func(key string) string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, w := range r.keys {
		state := get(key)
		i := w.at(state, w.settled)
		if i < 0 {
			r.wrong = append(r.wrong, fmt.Sprintf("%s is %q, but it may only be one of %q", key, state, w.states[w.settled:]))
			continue
		}
		w.states, w.settled = append(w.states, state), len(w.states) // whoever had begun something is dead
	}
}

// checkSince compares a copy that was begun when the keys were settled so far.
func (r *told) checkSince(since map[string]int, get func(key string) string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, w := range r.keys {
		if state := get(key); w.at(state, since[key]) < 0 {
			r.wrong = append(r.wrong, fmt.Sprintf("copy: %s is %q, but it was one of %q since", key, state, w.states[since[key]:]))
		}
	}
}
