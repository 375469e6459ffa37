package cli

import (
	"sync"

	"github.com/varve-db/varve"
)

// evictions are the memories that went to make room for what a command wrote.
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

// tellEvicted says which memories went.
func (a *App) tellEvicted() {
	ev := &a.evicted
	ev.mu.Lock()
	defer ev.mu.Unlock()
	switch {
	case ev.Count == 0:
	case a.Document != nil && !a.Document.Lines:
		a.Document.Member("evicted", ev)
	default:
		others := ""
		if ev.Count > 1 {
			others = " and others"
		}
		a.Note("%s deleted to make room: %s%s; memctl undelete ID restores one", Count(ev.Count, "memory was", "memories were"), PrintableID(ev.First), others)
	}
	ev.Count, ev.First = 0, ""
}
