package varve

import (
	"errors"
	"maps"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/errs"
)

// SessionOption is what InSession makes: a Filter for reads, a Cond for writes.
type SessionOption struct{ id string }

// InSession confines an operation to the memories of one session.
//
// As a Filter it passes these and no others. As a Cond of a write, and as an option
// of Get, Apply and Transact, it refuses to touch any other memory, of another
// session or of none: the error is a *SessionError, which matches ErrSession. That is
// judged of the version that the write replaces, in the commit itself. A memory that is
// put with it and names no session gets this one as its metadata.session_id; one
// that names another is refused. Assemblies belong to no session, and it does not
// concern them.
func InSession(id string) SessionOption { return SessionOption{id} }

func (s SessionOption) choose(f *engine.Filters) { f.Session = &s.id }

func (s SessionOption) demand(c *conditions) { c.session = &s.id }

// sessionOf is the session of the last option, nil if there is none.
func sessionOf(list []SessionOption) *string {
	if len(list) == 0 {
		return nil
	}
	return &list[len(list)-1].id
}

// sessionMember is where a memory names its session.
const sessionMember = "session_id"

var errNoSession = errors.New("the id of a session must not be empty")

// admits judges a version that is there, by its session.
func admits(want *string, session string) error {
	switch {
	case want == nil:
		return nil
	case *want == "":
		return &errs.FieldError{Field: sessionMember, Value: `""`, Err: errNoSession}
	case session != *want:
		return &errs.SessionError{Session: session, Wanted: *want}
	}
	return nil
}

// confine confines operations to a session, but for those that name one.
func confine(ops []op, session *string) {
	for i := range ops {
		if c := &ops[i].conds; c.session == nil {
			c.session = session
		}
	}
}

// join puts a memory into the session that its write is confined to.
func join(want *string, m *Memory) error {
	if want == nil {
		return nil
	}
	if s := m.Session(); s != "" || *want == "" {
		return admits(want, s)
	}
	if v := m.Metadata[sessionMember]; v != nil && v != "" {
		return nil // no string: Prepare says so
	}
	m.Metadata = maps.Clone(m.Metadata) // it may be the caller's
	if m.Metadata == nil {
		m.Metadata = map[string]any{}
	}
	m.Metadata[sessionMember] = *want
	return nil
}
