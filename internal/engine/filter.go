package engine

import (
	"strings"
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/filter"
	"github.com/varve-db/varve/memstore"
)

// Filters select documents, some by the index line alone and some by the content.
type Filters struct {
	Session  *string
	Happened Span // bounds of the memory's timestamp
	Created  Span
	Updated  Span
	Prefix   string
	After    string
	Category *string
	Key      *string
	Where    []*filter.Cond
	Expired  bool     // expired memories pass too
	Writers  []string // names of the version's writer, all of which must match; Resolve sets By from this list
	// By reports whether a version passes the filter on its writer. number is the number of the writer in the version's
	// entry; 0 means that the entry has no writer. If By is nil, all versions pass.
	By   func(number uint32, version uint64) bool
	Sort *memstore.Order // order of a listing; nil: by id
}

// Span is the time from Since on and before Until; the zero time means no bound.
type Span struct{ Since, Until time.Time }

// Within returns the intersection of two spans.
func Within(s, o Span) Span {
	if o.Since.After(s.Since) {
		s.Since = o.Since
	}
	if s.Until.IsZero() || !o.Until.IsZero() && o.Until.Before(s.Until) {
		s.Until = o.Until
	}
	return s
}

func (s Span) has(t time.Time) bool {
	return (s.Since.IsZero() || !t.Before(s.Since)) && (s.Until.IsZero() || t.Before(s.Until))
}

// Line reports whether a document passes the filters that concern only its index line.
func (f *Filters) Line(id string, e *index.Entry, now time.Time) bool {
	switch {
	case !f.Expired && !e.ExpiresAt.IsZero() && !now.Before(e.ExpiresAt):
		return false
	case f.Session != nil && (e.SessionID != *f.Session || *f.Session == ""):
		return false
	case f.By != nil && !f.By(e.By, e.Version):
		return false
	case !f.Created.has(e.CreatedAt) || !f.Updated.has(e.UpdatedAt):
		return false
	}
	return strings.HasPrefix(id, f.Prefix)
}

// All reports whether the filters select every memory that has not expired.
func (f *Filters) All() bool {
	return f.Session == nil && f.Created == (Span{}) && f.Updated == (Span{}) && f.Prefix == "" && f.After == "" &&
		f.By == nil && !f.Reads()
}

// Reads reports whether the documents must be read to apply the filters.
func (f *Filters) Reads() bool {
	return f.Category != nil || f.Key != nil || len(f.Where) > 0 || f.Happened != (Span{})
}

// Memory reports whether a memory passes the filters that concern its content.
func (f *Filters) Memory(m *memstore.Memory) bool {
	for _, c := range f.Where {
		if !c.Holds(m.Metadata) {
			return false
		}
	}
	return (f.Category == nil || m.Category() == *f.Category) && (f.Key == nil || m.Key() == *f.Key) &&
		f.Happened.has(m.Timestamp)
}

// Still reports whether a memory passes the filters on session and content. It is for a memory that was read after its
// index line passed the filters: the memory may have changed in between.
func (f *Filters) Still(m *memstore.Memory) bool {
	return (f.Session == nil || m.Session() == *f.Session) && f.Memory(m)
}
