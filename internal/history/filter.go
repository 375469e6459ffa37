package history

import (
	"context"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

func (f *Filter) pass(ctx context.Context, h *History, k *engine.Kind, e *wal.Entry) bool {
	if f.Kind != "" && f.Kind != k.Noun {
		return false
	}
	if !f.Only {
		return true
	}
	if k != h.engine.Kinds().Memories || f.Session == "" {
		return false
	}
	view, err := state.Read(e)
	if err == nil && e.Delete {
		if view.Previous == 0 {
			return true
		}
		before, err := h.engine.Log().ReadAt(ctx, view.Previous)
		if err != nil {
			before, err = h.engine.Log().Past().At(ctx, view.Previous, e.LSN)
		}
		if err != nil || before.Key != e.Key {
			return true
		}
		if view, err = state.Read(&before); err != nil {
			return true
		}
	}
	if err != nil {
		return true // a watcher must get the error
	}
	line, err := index.ParseLine(view.Line)
	return err != nil || line.SessionID == f.Session
}
