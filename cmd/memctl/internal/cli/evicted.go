package cli

import (
	"sync"

	"github.com/varve-db/varve"
)

// evictions counts the memories that the store deleted to make room for what the command wrote.
type evictions struct {
	mu    sync.Mutex
	Count int    `json:"count"`
	First string `json:"first"`
}

func (ev *evictions) add(e *varve.Event) {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	if ev.Count += e.Count; ev.First == "" {
		ev.First = e.ID
	}
}

// Evicted returns the number of memories that were evicted since the previous call of Evicted, and the id of
// the first of them.
func (a *App) Evicted() (count int, first string) {
	ev := &a.evicted
	ev.mu.Lock()
	defer ev.mu.Unlock()
	count, first = ev.Count, ev.First
	ev.Count, ev.First = 0, ""
	return count, first
}

// tellEvicted prints how many memories were evicted.
func (a *App) tellEvicted() {
	n, first := a.Evicted()
	switch {
	case n == 0:
	case a.Document != nil && !a.Document.Lines:
		a.Document.Member("evicted", &evictions{Count: n, First: first})
	default:
		others := map[bool]string{true: " and others"}[n > 1]
		a.Note("%s deleted to make room: %s%s; memctl undelete ID restores one", Count(n, "memory was", "memories were"),
			PrintableID(first), others)
	}
}
