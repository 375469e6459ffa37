package working

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Draft is a proposal for a memory, made from working memory. The caller may store it as a memory.
type Draft struct {
	Content  string
	Metadata map[string]any
	Time     time.Time // time of the newest scratchpad entry; zero for a draft made from a value
}

// Drafts returns drafts made from a snapshot of a scope: one for each value whose key matches one of the patterns, and,
// if notes is true, one for the whole scratchpad. The metadata of a draft have the category "working_memory" or
// "scratchpad", the key of the value, and the ids that the scope has, such as session_id and project.
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
