package fuzz

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/vfs/sim"
)

// watching is a watcher that follows the changes of a store over kills and boots, and always continues
// at the position that it recorded last.
type watching struct {
	from, at uint64
	seen     []sighting
	goes     int // times that he began
}

// sighting is a change that a watcher was shown.
type sighting struct {
	lsn, next uint64
	id, token string // token "": deleted
	more      bool
}

func (w *watching) saw(h *history, c *varve.Change) {
	s := sighting{c.LSN, c.Next, c.ID, "", c.More}
	if !c.Deleted {
		s.token = tokenOf(c.Memory.Content)
	}
	if n := len(w.seen); n > 0 && c.LSN < w.seen[n-1].next {
		h.bad("watcher: a change at %d after one that ends at %d", c.LSN, w.seen[n-1].next)
	}
	w.seen, w.at = append(w.seen, s), c.Next
}

// watch follows the store for a while, closes it, and continues from there.
func (w *world) watch(p *sim.Proc) {
	rng := rand.New(rand.NewPCG(w.rng.Uint64(), 4))
	for w.acts > 0 {
		o := w.options(p)
		o.ReadOnly = rng.IntN(3) == 0
		st, err := w.open(o)
		if err != nil {
			if !o.ReadOnly { // otherwise there is no store yet, or it cannot be read at the moment
				w.h.bad("watcher: open: %v", err)
			}
			p.Sleep(time.Millisecond)
			continue
		}
		left := 1 + rng.IntN(60)
		w.follow(st, p, func() bool {
			if rng.IntN(20) == 0 { // a slow reader
				p.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
			}
			left--
			return left > 0
		}, func() bool { return w.acts > 0 })
		if err := st.Close(); err != nil {
			w.h.bad("watcher: close: %v", err)
		}
	}
}

// follow continues until there is nothing more, according to more, or enough returns true.
func (w *world) follow(st *varve.Store, p *sim.Proc, enough, more func() bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.watching.goes++
	w.waits[p] = func() {
		if !more() {
			cancel()
		}
	}
	defer delete(w.waits, p)
	for c, err := range st.Watch(ctx, w.watching.at) {
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.h.bad("watcher: at %d: %v", w.watching.at, err)
			return
		}
		if w.watching.saw(w.h, &c); !enough() {
			return
		}
	}
}

// watched checks, when all is quiet, whether the watcher has seen everything.
func (w *world) watched(p *sim.Proc) {
	o := w.options(p)
	st, err := w.open(o)
	if err != nil {
		w.h.bad("watcher: open: %v", err)
		return
	}
	defer st.Close()
	always, quiet := func() bool { return true }, func() bool { return false }
	w.follow(st, p, always, quiet)
	before := w.watching
	w.watching = &watching{from: before.from, at: before.from, goes: before.goes}
	w.follow(st, p, always, quiet)
	again := w.watching.seen
	// Changes seen in several runs equal those seen in one. More is relative to where a run stopped, but
	// there is no such place within a single run.
	for i := range max(len(again), len(before.seen)) {
		if i >= len(again) || i >= len(before.seen) || again[i] != before.seen[i] {
			w.h.bad("watcher: change %d of %d is not that of %d, seen in one go: %+v, %+v", i, len(before.seen), len(again),
				before.seen[min(i, len(before.seen)-1)], again[min(i, len(again)-1)])
			break
		}
	}
	w.h.watched(w.watching)
}

// watched compares what a watcher saw with the calls and their answers.
func (h *history) watched(w *watching) {
	at := map[string]uint64{}
	deletions := map[string]int{}
	for _, s := range w.seen {
		if s.token == "" {
			deletions[s.id]++
			continue
		}
		write := h.tokens[s.token]
		switch {
		case write == nil || write.id != s.id:
			h.bad("watcher: %.20q became %q at %d, which nobody wrote", s.id, s.token, s.lsn)
		case write.outcome == refused:
			h.bad("watcher: saw %v", write)
		case write.version != 0 && write.version != s.lsn:
			h.bad("watcher: saw %v at %d", write, s.lsn)
		}
		if was, twice := at[s.token]; twice {
			h.bad("watcher: saw %v at %d and at %d", write, was, s.lsn)
		}
		at[s.token] = s.lsn
	}
	gone := map[string]int{}
	batches := map[int][]string{}
	for _, write := range h.writes {
		switch {
		case write.del:
			if write.outcome == acked && write.batch == 0 {
				gone[write.id]++
			}
			continue
		case write.outcome == acked && at[write.token] == 0:
			h.bad("watcher: did not see %v", write)
		}
		if write.batch != 0 && at[write.token] != 0 {
			batches[write.batch] = append(batches[write.batch], write.token)
		}
	}
	for id, n := range gone {
		if deletions[id] < n {
			h.bad("watcher: saw %d deletions of %.20q, %d were acknowledged", deletions[id], id, n)
		}
	}
	// A batch is in one piece.
	for i := 0; i < len(w.seen); i++ {
		if s := w.seen[i]; s.token != "" && h.tokens[s.token] != nil {
			n := h.tokens[s.token].batch
			if n == 0 {
				continue
			}
			list := batches[n]
			for ; len(list) > 0 && i < len(w.seen); i++ {
				k := slices.Index(list, w.seen[i].token)
				if k < 0 && w.seen[i].token != "" {
					h.bad("watcher: within batch %d, of which %q are still to come, %+v", n, list, w.seen[i])
					break
				}
				if k >= 0 {
					list = slices.Delete(list, k, k+1)
				}
				if len(list) > 0 && !w.seen[i].more {
					h.bad("watcher: batch %d ends at %+v, %q are still to come", n, w.seen[i], list)
				}
			}
			i--
		}
	}
}

func watchers(w *world) {
	w.watching = &watching{}
	w.waits = map[*sim.Proc]func(){}
}

// TestSimWatch watches a store, through kills and losses of power, while other processes recycle the
// log.
func TestSimWatch(t *testing.T) { simulate(t, 2, 60, watchers) }

func (n *watching) String() string { return fmt.Sprintf("%d changes in %d goes", len(n.seen), n.goes) }
