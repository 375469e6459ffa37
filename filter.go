package varve

import (
	"time"

	"github.com/varve-db/varve/internal/engine"
)

// Filter chooses memories. Several filters all have to pass.
type Filter interface{ choose(*engine.Filters) }

type filterFunc func(*engine.Filters)

func (f filterFunc) choose(list *engine.Filters) { f(list) }

// Since passes what was written at this time or later.
func Since(t time.Time) Filter { return filterFunc(func(f *engine.Filters) { f.Since = t }) }

// Until passes what was written before this time.
func Until(t time.Time) Filter { return filterFunc(func(f *engine.Filters) { f.Until = t }) }

// WithPrefix passes ids that begin with this.
func WithPrefix(p string) Filter { return filterFunc(func(f *engine.Filters) { f.Prefix = p }) }

// After passes ids behind this one, in the order in which they are listed: to
// go on where a listing was left.
func After(id string) Filter { return filterFunc(func(f *engine.Filters) { f.After = id }) }

// InCategory passes the memories whose metadata has this category. Unlike the
// other filters it reads the documents.
func InCategory(c string) Filter { return filterFunc(func(f *engine.Filters) { f.Category = &c }) }

// WithKey passes the memories whose metadata has this key. It reads the documents,
// as InCategory does.
func WithKey(k string) Filter { return filterFunc(func(f *engine.Filters) { f.Key = &k }) }

func filtersOf(list []Filter) engine.Filters {
	var f engine.Filters
	for _, g := range list {
		g.choose(&f)
	}
	return f
}
