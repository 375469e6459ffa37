package varve

import (
	"context"
	"time"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/filter"
	"github.com/varve-db/varve/memstore"
)

// Filter selects memories. If several filters are given, a memory must pass all of them. Since, Until, InCategory,
// WithKey and Where read documents. If the field of a Where condition is one of the fields that Query.Text can name,
// Where reads only the documents that contain the words of the condition.
type Filter interface{ choose(*engine.Filters) }

type filterFunc func(*engine.Filters)

func (f filterFunc) choose(list *engine.Filters) { f(list) }

// Since passes memories whose Memory.Timestamp is at this time or later.
func Since(t time.Time) Filter { return happened(engine.Span{Since: t}) }

// Until passes memories whose Memory.Timestamp is before this time.
func Until(t time.Time) Filter { return happened(engine.Span{Until: t}) }

func happened(s engine.Span) Filter {
	return filterFunc(func(f *engine.Filters) { f.Happened = engine.Within(f.Happened, s) })
}

// Created passes memories first written at or after since, and before until. A zero time means no bound.
func Created(since, until time.Time) Filter {
	return filterFunc(func(f *engine.Filters) {
		f.Created = engine.Within(f.Created,
			engine.Span{Since: since, Until: until})
	})
}

// Updated passes memories last written at or after since, and before until. A zero time means no bound.
func Updated(since, until time.Time) Filter {
	return filterFunc(func(f *engine.Filters) {
		f.Updated = engine.Within(f.Updated,
			engine.Span{Since: since, Until: until})
	})
}

// WithPrefix passes memories whose id begins with p.
func WithPrefix(p string) Filter { return filterFunc(func(f *engine.Filters) { f.Prefix = p }) }

// After passes memories whose id comes after the given id in the order of Memories. It is used to continue a listing.
func After(id string) Filter { return filterFunc(func(f *engine.Filters) { f.After = id }) }

// InCategory passes the memories whose metadata has this category.
func InCategory(c string) Filter { return filterFunc(func(f *engine.Filters) { f.Category = &c }) }

// WithKey passes the memories whose metadata has this key.
func WithKey(k string) Filter { return filterFunc(func(f *engine.Filters) { f.Key = &k }) }

// Where passes the memories whose metadata satisfies a condition: source=desk (equal), source!=desk (not equal),
// priority>=3, path^=docs/ (begins with this text), tags=a,b (has one of these values), source (exists), !source (does
// not exist).
func Where(condition string) (f Filter, err error) {
	c, err := filter.Parse(condition)
	if err == nil {
		f = filterFunc(func(f *engine.Filters) { f.Where = append(f.Where, c) })
	}
	return f, err
}

// WithTag passes the memories whose metadata.tags, a list or a text, has this tag.
func WithTag(tag string) Filter {
	return filterFunc(func(f *engine.Filters) { f.Where = append(f.Where, filter.Has("tags", tag)) })
}

// Sorted makes Memories and Admin.Lines yield in the order o; see memstore.ParseOrder. Sorted cannot be combined with
// After.
func Sorted(o *memstore.Order) Filter { return filterFunc(func(f *engine.Filters) { f.Sort = o }) }

// WrittenBy passes memories whose newest version was written by the named writer. name is the writer's number, one of
// its names (program, agent, session, client, token), or UnknownWriter.
func WrittenBy(name string) Filter {
	return filterFunc(func(f *engine.Filters) { f.Writers = append(f.Writers, name) })
}

// filtersOf combines a list of filters into an engine.Filters. The result is valid for one listing only, because the
// order that Sorted sets has state.
func filtersOf(ctx context.Context, eng *engine.Engine, list []Filter) (f engine.Filters) {
	for _, g := range list {
		g.choose(&f)
	}
	eng.Resolve(ctx, &f)
	if f.Sort != nil {
		f.Sort = f.Sort.Begin()
	}
	return f
}
