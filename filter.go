package varve

import (
	"strings"
	"time"

	"github.com/varve-db/varve/index"
)

// Filter chooses memories. Several filters all have to pass.
type Filter interface{ choose(*filters) }

type filterFunc func(*filters)

func (f filterFunc) choose(list *filters) { f(list) }

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

// Since passes what was written at this time or later.
func Since(t time.Time) Filter { return filterFunc(func(f *filters) { f.since = t }) }

// Until passes what was written before this time.
func Until(t time.Time) Filter { return filterFunc(func(f *filters) { f.until = t }) }

// WithPrefix passes ids that begin with this.
func WithPrefix(p string) Filter { return filterFunc(func(f *filters) { f.prefix = p }) }

// After passes ids behind this one, in the order in which they are listed: to
// go on where a listing was left.
func After(id string) Filter { return filterFunc(func(f *filters) { f.after = id }) }

// InCategory passes the memories whose metadata has this category. Unlike the
// other filters it reads the documents.
func InCategory(c string) Filter { return filterFunc(func(f *filters) { f.category = &c }) }

// WithKey passes the memories whose metadata has this key. It reads the documents,
// as InCategory does.
func WithKey(k string) Filter { return filterFunc(func(f *filters) { f.key = &k }) }

func filtersOf(list []Filter) filters {
	var f filters
	for _, g := range list {
		g.choose(&f)
	}
	return f
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
func (f *filters) memory(m *Memory) bool {
	return (f.category == nil || m.Category() == *f.category) && (f.key == nil || m.Key() == *f.key)
}
