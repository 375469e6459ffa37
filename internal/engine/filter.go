package engine

import (
	"strings"
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/memstore"
)

// Filters choose lines of the index, and documents.
type Filters struct {
	Session  *string
	Since    time.Time
	Until    time.Time
	Prefix   string
	After    string
	Category *string
	Key      *string
	Expired  bool // pass too
}

// Line judges what the index knows.
func (f *Filters) Line(id string, e *index.Entry, now time.Time) bool {
	switch {
	case !f.Expired && !e.ExpiresAt.IsZero() && !now.Before(e.ExpiresAt):
		return false
	case f.Session != nil && (e.SessionID != *f.Session || *f.Session == ""):
		return false
	case !f.Since.IsZero() && e.UpdatedAt.Before(f.Since):
		return false
	case !f.Until.IsZero() && !e.UpdatedAt.Before(f.Until):
		return false
	}
	return strings.HasPrefix(id, f.Prefix)
}

// All says that every live memory passes.
func (f *Filters) All() bool {
	return f.Session == nil && f.Since.IsZero() && f.Until.IsZero() && f.Prefix == "" && f.After == "" && !f.Reads()
}

// Reads says that the documents have to be read.
func (f *Filters) Reads() bool { return f.Category != nil || f.Key != nil }

// Memory judges what only the document knows.
func (f *Filters) Memory(m *memstore.Memory) bool {
	return (f.Category == nil || m.Category() == *f.Category) && (f.Key == nil || m.Key() == *f.Key)
}

// Still judges a memory that may have changed since its line was judged.
func (f *Filters) Still(m *memstore.Memory) bool {
	return (f.Session == nil || m.Session() == *f.Session) && f.Memory(m)
}
