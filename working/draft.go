package working

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Draft is a memory that can be made from the contents of a session.
type Draft struct {
	Content  string
	Metadata map[string]any
	Time     time.Time // time of the value or note; zero: it has none
}

// Drafts returns drafts of memories made from a snapshot: one for each value whose key matches one
// of the patterns, and one for the whole scratchpad if notes is set. Metadata has session_id and
// project if the scope has them, category "working_memory" or "scratchpad", and the key.
func Drafts(scope Scope, s *Snapshot, notes bool, patterns ...string) ([]Draft, error) {
	for _, p := range patterns {
		if err := checkGlob(p); err != nil {
			return nil, err
		}
	}
	var all []Draft
	for _, key := range slices.Sorted(maps.Keys(s.Values)) {
		if !matchAny(patterns, key) {
			continue
		}
		text, ok := s.Values[key].(string)
		if !ok {
			raw, err := encodeValue(key, s.Values[key])
			if err != nil {
				return nil, err
			}
			text = string(raw)
		}
		d := Draft{Content: text, Metadata: scope.metadata("working_memory")}
		d.Metadata["key"] = key
		all = append(all, d)
	}
	if notes && len(s.Notes) > 0 {
		var b strings.Builder
		for _, n := range s.Notes {
			b.WriteString(n.Text)
			b.WriteByte('\n')
		}
		all = append(all, Draft{Content: b.String(), Metadata: scope.metadata("scratchpad"),
			Time: s.Notes[len(s.Notes)-1].Time})
	}
	return all, nil
}

func matchAny(patterns []string, key string) bool {
	for _, p := range patterns {
		if match(p, key) {
			return true
		}
	}
	return false
}

func (s Scope) metadata(category string) map[string]any {
	m := map[string]any{"category": category}
	for name, id := range map[string]string{"session_id": s.Session, "project": s.Project, "agent_type": s.AgentType,
		"agent_instance": s.Agent} {
		if id != "" {
			m[name] = id
		}
	}
	return m
}
