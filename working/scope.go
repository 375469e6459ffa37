package working

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// MaxID is the maximum length of an id within a scope, in bytes.
const MaxID = 1024

// Scope identifies a working memory. Empty levels are omitted; the zero Scope is the global one.
// Two scopes are the same if and only if they are equal: session s of project p is a different
// scope than session s without a project.
type Scope struct {
	Project   string `json:"project,omitempty"`
	AgentType string `json:"agent_type,omitempty"`
	Agent     string `json:"agent_instance,omitempty"` // id of an instance of an agent
	Session   string `json:"session,omitempty"`
}

// Level is the kind of a scope: its lowest level that is not empty.
type Level string

// The levels, from the top.
const (
	Global    Level = "global"
	Project   Level = "project"
	AgentType Level = "agent_type"
	Agent     Level = "agent_instance"
	Session   Level = "session"
)

var levels = [...]Level{Project, AgentType, Agent, Session}

func (s *Scope) ids() [len(levels)]*string {
	return [...]*string{&s.Project, &s.AgentType, &s.Agent, &s.Session}
}

// ForSession returns the scope of a session, within a project and an agent instance unless these
// are empty. An empty session is an error: the scope would be shared by all sessions.
func ForSession(session, project, agent string) (Scope, error) {
	s := Scope{Project: project, Agent: agent, Session: session}
	if session == "" {
		return Scope{}, &errs.FieldError{Field: string(Session), Limit: fmt.Sprintf("1 to %d bytes", MaxID),
			Err: errors.New("a session needs an id")}
	}
	return s, s.Validate()
}

// Validate returns an error for an id that is too long or not UTF-8. Any other text is a valid id.
func (s Scope) Validate() error {
	for i, id := range s.ids() {
		if err := checkText(string(levels[i]), *id, MaxID); err != nil {
			return err
		}
	}
	return nil
}

func checkText(field, text string, limit int) error {
	switch {
	case len(text) > limit:
		return &errs.FieldError{Field: field, Value: human.Quote(text), Limit: fmt.Sprintf("%d bytes", limit),
			Err: fmt.Errorf("%w: %d bytes", errs.ErrTooLarge, len(text))}
	case !utf8.ValidString(text):
		return &errs.FieldError{Field: field, Value: human.Quote(text), Err: errors.New("not valid UTF-8")}
	}
	return nil
}

// Level returns the lowest level of the scope.
func (s Scope) Level() Level {
	ids := s.ids()
	for i := len(ids) - 1; i >= 0; i-- {
		if *ids[i] != "" {
			return levels[i]
		}
	}
	return Global
}

// ID returns the id at the scope's lowest level, "" for the global scope.
func (s Scope) ID() string {
	ids := s.ids()
	for i := len(ids) - 1; i >= 0; i-- {
		if *ids[i] != "" {
			return *ids[i]
		}
	}
	return ""
}

// Parent returns the scope one level above; false for the global one.
func (s Scope) Parent() (Scope, bool) {
	ids := s.ids()
	for i := len(ids) - 1; i >= 0; i-- {
		if *ids[i] != "" {
			*ids[i] = ""
			return s, true
		}
	}
	return s, false
}

// Key returns the scope as one string, which ParseScope parses:
//
//	global
//	project:p1/agent_type:coder/agent_instance:a/session:s1
//
// Empty levels are omitted. Within an id the bytes % / : { } and control characters are written as
// %XX, so different scopes never have the same key.
func (s Scope) Key() string {
	var b strings.Builder
	for i, id := range s.ids() {
		if *id == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('/')
		}
		b.WriteString(string(levels[i]))
		b.WriteByte(':')
		escapeID(&b, *id)
	}
	if b.Len() == 0 {
		return string(Global)
	}
	return b.String()
}

// String returns the Key.
func (s Scope) String() string { return s.Key() }

func escapeID(b *strings.Builder, id string) {
	for i := range len(id) {
		switch c := id[i]; {
		case c < ' ' || c == 0x7f || strings.IndexByte("%/:{}", c) >= 0:
			fmt.Fprintf(b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
}

// ParseScope parses a key that Key returned. It refuses any other spelling of a key, so that each
// scope has exactly one key.
func ParseScope(key string) (Scope, error) {
	var s Scope
	if key == string(Global) {
		return s, nil
	}
	bad := func(why string) (Scope, error) {
		return Scope{}, &errs.FieldError{Field: "scope", Value: human.Quote(key), Err: fmt.Errorf(
			`%s; it looks like "global" or "project:p1/agent_type:t/agent_instance:a/session:s1", where levels may be omitted and %% / : { } in an id are written %%XX`, why)}
	}
	ids, next := s.ids(), 0
	for _, part := range strings.Split(key, "/") {
		name, escaped, _ := strings.Cut(part, ":")
		at := next
		for at < len(levels) && string(levels[at]) != name {
			at++
		}
		if at == len(levels) {
			return bad(fmt.Sprintf("%s is not a level that may follow here", human.Quote(name)))
		}
		id, ok := unescapeID(escaped)
		if !ok || id == "" {
			return bad(fmt.Sprintf("%s is not an id", human.Quote(escaped)))
		}
		*ids[at], next = id, at+1
	}
	if s.Key() != key {
		return bad("not in the form in which Scope.Key writes a key")
	}
	return s, s.Validate()
}

func unescapeID(text string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		if i+2 >= len(text) {
			return "", false
		}
		hi, lo := strings.IndexByte(hexDigits, text[i+1]), strings.IndexByte(hexDigits, text[i+2])
		if hi < 0 || lo < 0 {
			return "", false
		}
		b.WriteByte(byte(hi<<4 | lo))
		i += 2
	}
	return b.String(), true
}

const hexDigits = "0123456789ABCDEF"
