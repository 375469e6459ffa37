package varve

import (
	"strings"
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/memstore"
)

// filters choose lines of the index, and documents.
type filters struct {
	session  *string
	since    time.Time
	until    time.Time
	prefix   string
	after    string
	category *string
	key      *string
	expired  bool // pass too
}

// line judges what the index knows.
func (f *filters) line(id string, e *index.Entry, now time.Time) bool {
	switch {
	case !f.expired && !e.ExpiresAt.IsZero() && !now.Before(e.ExpiresAt):
		return false
	case f.session != nil && (e.SessionID != *f.session || *f.session == ""):
		return false
	case !f.since.IsZero() && e.UpdatedAt.Before(f.since):
		return false
	case !f.until.IsZero() && !e.UpdatedAt.Before(f.until):
		return false
	}
	return strings.HasPrefix(id, f.prefix)
}

// all says that every live memory passes.
func (f *filters) all() bool {
	return f.session == nil && f.since.IsZero() && f.until.IsZero() && f.prefix == "" && f.after == "" && !f.reads()
}

// reads says that the documents have to be read.
func (f *filters) reads() bool { return f.category != nil || f.key != nil }

// memory judges what only the document knows.
func (f *filters) memory(m *memstore.Memory) bool {
	return (f.category == nil || m.Category() == *f.category) && (f.key == nil || m.Key() == *f.key)
}

// still judges a memory that may have changed since its line was judged.
func (f *filters) still(m *memstore.Memory) bool {
	return (f.session == nil || m.Session() == *f.session) && f.memory(m)
}
