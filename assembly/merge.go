package assembly

import (
	"errors"
	"slices"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// Merge merges the sources into dst. The sources stay unchanged; the store deletes them in the same commit.
//
//	MemoryIDs, Keywords, Tags, Topics   united, dst's first, in order, each once
//	EmotionProfile                      dst's members, then what only a source has
//	Name, Description, SchemaVersion    dst's, else of the first source that has one
//	AccessCount, ActivationCount        summed
//	ActivationLevel                     the highest at the latest LastActivation
//	CreationTime                        the earliest
//	LastAccessTime, LastActivation      the latest
//	MergedFrom                          see below
//	Inactive                            only if all were
//	everything else                     dst's; the store computes the composite
//
// MergedFrom has the ids of all assemblies that were ever merged into this one, directly or through other assemblies,
// each once. The MergedFrom of a source precedes the id of the source. Ids of direct sources would not suffice: merged
// assemblies are deleted, so nothing could follow the chain. An assembly is never in its own MergedFrom, so there are
// no cycles: if A was merged into B, and B is now merged into a new A, MergedFrom of A has only B.
//
// It is an error to merge an assembly into itself. A source that is given twice counts once. dst is changed only if
// err is nil; its slices and maps are not written to.
func Merge(dst *Assembly, halfLife time.Duration, sources ...*Assembly) error {
	m := *dst
	all := []*Assembly{dst}
	for _, s := range sources {
		if s.ID == dst.ID {
			return &errs.FieldError{Field: memberMergedFrom, Value: human.Quote(s.ID),
				Err: errors.New("an assembly cannot be merged into itself: remove its id from the sources")}
		}
		if !slices.ContainsFunc(all, func(o *Assembly) bool { return o.ID == s.ID }) {
			all = append(all, s)
		}
	}
	for _, s := range all[1:] {
		m.MemoryIDs = united(m.MemoryIDs, s.MemoryIDs)
		m.Keywords = united(m.Keywords, s.Keywords)
		m.Tags = united(m.Tags, s.Tags)
		m.Topics = united(m.Topics, s.Topics)
		m.EmotionProfile = joined(m.EmotionProfile, s.EmotionProfile)
		m.takeOver(s)
		m.MergedFrom = united(m.MergedFrom, s.MergedFrom, []string{s.ID})
	}
	m.MergedFrom = without(m.MergedFrom, m.ID)
	m.ActivationLevel = 0
	for _, s := range all {
		m.ActivationLevel = max(m.ActivationLevel, s.ActivationAt(m.LastActivation, halfLife))
	}
	*dst = m
	return nil
}

// takeOver merges into a the fields of s that have a single value, such as names, counts and times.
func (a *Assembly) takeOver(s *Assembly) {
	for _, t := range []struct {
		mine  *string
		other string
	}{{&a.Name, s.Name}, {&a.Description, s.Description}, {&a.SchemaVersion, s.SchemaVersion}} {
		if *t.mine == "" {
			*t.mine = t.other
		}
	}
	a.AccessCount = added(a.AccessCount, s.AccessCount)
	a.ActivationCount = added(a.ActivationCount, s.ActivationCount)
	a.LastAccessTime = later(a.LastAccessTime, s.LastAccessTime)
	a.LastActivation = later(a.LastActivation, s.LastActivation)
	if !s.CreationTime.IsZero() && (a.CreationTime.IsZero() || s.CreationTime.Before(a.CreationTime)) {
		a.CreationTime = s.CreationTime
	}
	a.Inactive = a.Inactive && s.Inactive
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func joined(mine, other map[string]any) map[string]any {
	if len(other) == 0 {
		return mine
	}
	all := make(map[string]any, len(mine)+len(other))
	for _, from := range []map[string]any{other, mine} {
		for k, v := range from {
			all[k] = v
		}
	}
	return all
}

func without(list []string, out string) []string {
	if !slices.Contains(list, out) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == out })
}
