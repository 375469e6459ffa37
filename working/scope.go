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

// Scope identifies a working memory by the ids of its levels. A level without an id is not part of the scope; the zero
// Scope is the global one. Scopes with different fields are different: session s of project p is not the same scope as
// session s without a project.
type Scope struct {
	Project   string `json:"project,omitempty"`
	AgentType string `json:"agent_type,omitempty"`
	Agent     string `json:"agent_instance,omitempty"` // id of an instance of an agent
	Session   string `json:"session,omitempty"`
}

// Level is a level of scopes. The level of a scope is its lowest level that has an id.
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

// ForSession returns the scope of a session. project and agent may be empty. An empty session is an error, because all
// sessions would share that scope.
func ForSession(session, project, agent string) (Scope, error) {
	s := Scope{Project: project, Agent: agent, Session: session}
	if session == "" {
		return Scope{}, &errs.FieldError{Field: string(Session), Limit: fmt.Sprintf("1 to %d bytes", MaxID),
			Err: errors.New("the id of the session is empty")}
	}
	return s, s.Validate()
}

// Validate returns an error if an id is too long or is not valid UTF-8. All other texts are valid ids.
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

// ID returns the id of the scope's lowest level, or "" for the global scope.
func (s Scope) ID() string {
	ids := s.ids()
	for i := len(ids) - 1; i >= 0; i-- {
		if *ids[i] != "" {
			return *ids[i]
		}
	}
	return ""
}

// Parent returns the scope without its lowest level. It returns false for the global scope, which has no parent.
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
// Levels without an id are omitted. In an id, the bytes % / : { } and control characters are written as %XX, so
// different scopes have different keys.
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

// String returns the same as Key.
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

// ParseScope returns the scope of a key that Scope.Key returned. Any other spelling is an error, so that each scope has
// only one key.
func ParseScope(key string) (Scope, error) {
	var s Scope
	if key == string(Global) {
		return s, nil
	}
	bad := func(why string) (Scope, error) {
		return Scope{}, &errs.FieldError{Field: "scope", Value: human.Quote(key), Err: fmt.Errorf(
			`%s; write a scope as "global" or "project:p1/agent_type:t/agent_instance:a/session:s1": levels may be `+
				`omitted, and in an id the characters %% / : { } are written as %%XX`, why)}
	}
	ids, next := s.ids(), 0
	for _, part := range strings.Split(key, "/") {
		name, escaped, _ := strings.Cut(part, ":")
		at := next
		for at < len(levels) && string(levels[at]) != name {
			at++
		}
		if at == len(levels) {
			return bad(fmt.Sprintf("%s is not a level, or is in the wrong order", human.Quote(name)))
		}
		id, ok := unescapeID(escaped)
		if !ok || id == "" {
			return bad(fmt.Sprintf("%s is not a valid id", human.Quote(escaped)))
		}
		*ids[at], next = id, at+1
	}
	if s.Key() != key {
		return bad("the text differs from what Scope.Key returns for this scope")
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
