package commit

import (
	"errors"
	"maps"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/memstore"
)

// sessionMember is the name of the JSON member in a memory's metadata that names its session.
const sessionMember = "session_id"

var errNoSession = errors.New("the id of a session must not be empty")

// Admits returns nil if a version in the given session may be accessed by an operation that is confined to the session
// want, and an error otherwise. A nil want allows any session.
func Admits(want *string, session string) error {
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

// Join sets the session of a memory to want, the session to which the write is confined, if the memory names no
// session. It returns an error if the memory names another session.
func Join(want *string, m *memstore.Memory) error {
	if want == nil {
		return nil
	}
	if s := m.Session(); s != "" || *want == "" {
		return Admits(want, s)
	}
	if v := m.Metadata[sessionMember]; v != nil && v != "" {
		return nil // not a string: Prepare reports it
	}
	m.Metadata = maps.Clone(m.Metadata) // the map may be the caller's
	if m.Metadata == nil {
		m.Metadata = map[string]any{}
	}
	m.Metadata[sessionMember] = *want
	return nil
}

// Confine confines operations to a session, except those that are already confined.
func Confine(ops []Op, session *string) {
	for i := range ops {
		if c := &ops[i].Conds; c.Session == nil {
			c.Session = session
		}
	}
}
