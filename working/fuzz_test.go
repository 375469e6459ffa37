package working_test

import (
	"testing"
	"unicode/utf8"

	"github.com/varve-db/varve/working"
)

// FuzzScope: scopes and keys correspond one to one, whatever the ids contain.
func FuzzScope(f *testing.F) {
	f.Add("a:b", "", "", "c", "project:a%3Ab/session:c")
	f.Add("%", "/", "{", "}", "global")
	f.Fuzz(func(t *testing.T, project, agentType, agent, session, key string) {
		s := working.Scope{Project: project, AgentType: agentType, Agent: agent, Session: session}
		if s.Validate() == nil {
			if got, err := working.ParseScope(s.Key()); err != nil || got != s {
				t.Errorf("%+v has the key %q, which is %+v, %v", s, s.Key(), got, err)
			}
		}
		if got, err := working.ParseScope(key); err == nil && got.Key() != key {
			t.Errorf("%q is %+v, whose key is %q", key, got, got.Key())
		}
	})
}

// FuzzMatch: the matcher, which backtracks to the last * only, agrees with one that tries everything.
func FuzzMatch(f *testing.F) {
	f.Add("a*b*c", "aXbXbc")
	f.Add("[a-c]?[^x]", "bzü")
	f.Add(`\*[*]\\`, `**\`)
	f.Fuzz(func(t *testing.T, pattern, key string) {
		if len(pattern) > 12 || len(key) > 12 || !utf8.ValidString(key) {
			return
		}
		got, err := working.Match(pattern, key)
		if err != nil {
			return
		}
		if want := slowMatch([]rune(pattern), []rune(key)); got != want {
			t.Errorf("%q on %q: %v, want %v", pattern, key, got, want)
		}
	})
}

func slowMatch(p, s []rune) bool {
	if len(p) == 0 {
		return len(s) == 0
	}
	if p[0] == '*' {
		for i := 0; i <= len(s); i++ {
			if slowMatch(p[1:], s[i:]) {
				return true
			}
		}
		return false
	}
	if len(s) == 0 {
		return false
	}
	switch p[0] {
	case '?':
		return slowMatch(p[1:], s[1:])
	case '[':
		i, not, in := 1, false, false
		if p[i] == '^' || p[i] == '!' {
			not, i = true, i+1
		}
		next := func() rune {
			if p[i] == '\\' {
				i++
			}
			i++
			return p[i-1]
		}
		for first := true; first || p[i] != ']'; first = false {
			lo := next()
			hi := lo
			if p[i] == '-' && p[i+1] != ']' {
				i++
				hi = next()
			}
			in = in || lo <= s[0] && s[0] <= hi
		}
		return in != not && slowMatch(p[i+1:], s[1:])
	case '\\':
		p = p[1:]
	}
	return p[0] == s[0] && slowMatch(p[1:], s[1:])
}
