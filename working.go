package varve

import (
	"context"

	"github.com/varve-db/varve/internal/scopes"
	"github.com/varve-db/varve/working"
)

// Working is the working memory of a store: see package working.
type Working struct{ st *Store }

// Working returns the working memory of the store.
func (st *Store) Working() Working { return Working{st} }

// Open opens the working memory of a scope in this store; see package working. The working memory is durable, and all
// processes that have the store open share it. nil options are the defaults.
func (wm Working) Open(ctx context.Context, scope working.Scope, o *working.Options) (*working.Memory, error) {
	return working.Open(ctx, wm.Home(), scope, o)
}

// Home returns the store as a working.Home, for working.Open and working.NewSessions. Closing the Home leaves the store
// open.
func (wm Working) Home() working.Home { return scopes.NewHome(wm.st.inner.Scopes) }

// Consolidation selects which parts of a scope become memories at the end of a session.
type Consolidation struct {
	Values []string // patterns of keys, see working.Match: the value of each matching key becomes a memory
	Notes  bool     // the whole scratchpad becomes one memory
	// Keep keeps the scope, including what became memories. Without it the scope is removed in the
	// same commit.
	Keep bool
	// Memory, if not nil, may change each memory before it is written. It may be called again for
	// the same memory.
	Memory func(*Memory)
}

// Consolidate turns the working memory of a scope into memories at the end of a session, in one commit: either the
// memories exist and the scope is gone, or nothing has changed. The metadata of each memory has the ids of the scope
// (session_id, project, agent_type, agent_instance), and also the key and the category "working_memory" or
// "scratchpad". If the scope does not exist, or has nothing that o selects, Consolidate returns no memories; the scope
// is still removed unless o.Keep is set. Consolidate is meant for SessionsOptions.OnClose of package working.
func (wm Working) Consolidate(ctx context.Context, scope working.Scope, o Consolidation) ([]Memory, error) {
	if err := wm.st.inner.Engine.BeginUse(); err != nil {
		return nil, err
	}
	defer wm.st.inner.Engine.EndUse()
	if err := wm.st.inner.Engine.Writable(); err != nil {
		return nil, err
	}
	return wm.st.inner.Scopes.Consolidate(ctx, scope, scopes.Consolidation(o), wm.st.inner.Embedding.Write)
}
