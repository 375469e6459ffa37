package varve

import (
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
)

// SessionOption is the result of InSession: a Filter for reads, a Cond and a PutOption for writes.
type SessionOption struct{ id string }

// InSession confines an operation to the memories of one session.
//
// As a Filter it passes only these memories. As a Cond of a write, and as an option of Get, Apply and Transact, it
// refuses access to a memory of another session or of none: the error is a *SessionError, which matches ErrSession.
// For a write, the commit itself makes this check, with the version that the write replaces. A memory that is put with
// this option and names no session gets this session as its metadata.session_id; a memory that names another session
// is refused. Assemblies belong to no session and are not affected.
func InSession(id string) SessionOption { return SessionOption{id} }

func (s SessionOption) choose(f *engine.Filters) { f.Session = &s.id }

func (s SessionOption) demand(c *commit.Conditions) { c.Session = &s.id }

func (SessionOption) condition() {}

// sessionOf returns the session of the last option in list, or nil if list is empty.
func sessionOf(list []SessionOption) *string {
	if len(list) == 0 {
		return nil
	}
	return &list[len(list)-1].id
}
