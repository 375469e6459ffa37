package varve

import (
	"context"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/wal"
)

// WatchFilter chooses changes. Several filters all have to pass.
type WatchFilter func(*watchFilters)

type watchFilters struct {
	kind    string
	session string
	only    bool // of the session
}

// WatchKind passes the changes of one kind: "memory" or "assembly".
func WatchKind(kind string) WatchFilter { return func(f *watchFilters) { f.kind = kind } }

// WatchSession passes the changes of the memories of one session, and the deletions of
// those that were of it; also the deletions of which that is no longer known.
func WatchSession(id string) WatchFilter {
	return func(f *watchFilters) { f.session, f.only = id, true }
}

func (f *watchFilters) pass(ctx context.Context, st *Store, k *engine.Kind, e *wal.Entry) bool {
	if f.kind != "" && f.kind != k.Noun {
		return false
	}
	if !f.only {
		return true
	}
	if k != st.engine.Kinds.Memories || f.session == "" {
		return false
	}
	view, err := state.Read(e)
	if err == nil && e.Delete {
		if view.Previous == 0 {
			return true
		}
		before, err := st.engine.Log.ReadAt(ctx, view.Previous)
		if err != nil {
			before, err = st.engine.Log.Past().At(ctx, view.Previous, e.LSN)
		}
		if err != nil || before.Key != e.Key {
			return true
		}
		if view, err = state.Read(&before); err != nil {
			return true
		}
	}
	if err != nil {
		return true // who watches is to hear of it
	}
	line, err := index.ParseLine(view.Line)
	return err != nil || line.SessionID == f.session
}
