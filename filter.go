package varve

import (
	"time"

	"github.com/varve-db/varve/internal/engine"
)

// Filter selects memories. A memory must pass all of several filters.
type Filter interface{ choose(*engine.Filters) }

type filterFunc func(*engine.Filters)

func (f filterFunc) choose(list *engine.Filters) { f(list) }

// Since passes memories written at this time or later.
func Since(t time.Time) Filter { return filterFunc(func(f *engine.Filters) { f.Since = t }) }

// Until passes memories written before this time.
func Until(t time.Time) Filter { return filterFunc(func(f *engine.Filters) { f.Until = t }) }

// WithPrefix passes ids that begin with this prefix.
func WithPrefix(p string) Filter { return filterFunc(func(f *engine.Filters) { f.Prefix = p }) }

// After passes ids after this one in the order of listings, to continue a listing.
func After(id string) Filter { return filterFunc(func(f *engine.Filters) { f.After = id }) }

// InCategory passes the memories whose metadata has this category. Unlike the
// other filters it reads the documents.
func InCategory(c string) Filter { return filterFunc(func(f *engine.Filters) { f.Category = &c }) }

// WithKey passes the memories whose metadata has this key. It reads the documents, like InCategory.
func WithKey(k string) Filter { return filterFunc(func(f *engine.Filters) { f.Key = &k }) }

func filtersOf(list []Filter) engine.Filters {
	var f engine.Filters
	for _, g := range list {
		g.choose(&f)
	}
	return f
}
