package varve

import (
	"time"
)

// Filter chooses memories. Several filters all have to pass.
type Filter interface{ choose(*filters) }

type filterFunc func(*filters)

func (f filterFunc) choose(list *filters) { f(list) }

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
