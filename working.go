package varve

import (
	"context"

	"github.com/varve-db/varve/internal/view/scopes"
	"github.com/varve-db/varve/working"
)

// Working is the working memory of a store: see package working.
type Working struct{ st *Store }

// Working returns that of the store.
func (st *Store) Working() Working { return Working{st} }

// Open opens the working memory of a scope in this store: see package working.
// It is durable, and shared by all who have the store open. nil options are the
// zero ones.
func (wm Working) Open(ctx context.Context, scope working.Scope, o *working.Options) (*working.Memory, error) {
	return working.Open(ctx, wm.Home(), scope, o)
}

// Home is the store as the home of working memory, for working.Open and
// working.NewSessions. Closing it leaves the store open.
func (wm Working) Home() working.Home { return scopes.NewHome(&wm.st.working) }

// Consolidation says what of a session becomes long-term memory.
type Consolidation struct {
	Values []string // patterns of keys, see working.Match: each value becomes a memory
	Notes  bool     // the whole scratchpad becomes one
	// Keep leaves the scope where it is, and what became memories in it. Without it
	// the scope goes in the same commit.
	Keep bool
	// Memory, if it is set, may change each memory before it is written. It may be
	// called again for the same one.
	Memory func(*Memory)
}

// Consolidate turns working memory into memories at the end of a session, in one
// commit: either the memories are there and the scope is gone, or nothing has
// changed. Metadata has session_id, project and so on as far as the scope has
// them, category "working_memory" or "scratchpad", and the key. Where there is
// no scope, or nothing in it that was chosen, it returns none; the scope goes all
// the same. It is what SessionsOptions.OnClose of package working is for.
func (wm Working) Consolidate(ctx context.Context, of working.Scope, o Consolidation) ([]Memory, error) {
	if err := wm.st.engine.Begun(); err != nil {
		return nil, err
	}
	defer wm.st.engine.Ended()
	if err := wm.st.engine.Writable(); err != nil {
		return nil, err
	}
	return wm.st.working.Consolidate(ctx, of, scopes.Consolidation(o), wm.st.embedding.Write)
}
