package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// sortLine is what a list is sorted by: what the index has, and the timestamp.
type sortLine struct {
	varve.Line
	timestamp time.Time
}

// sorts are the orders of list.
var sorts = map[string]func(a, b *sortLine) int{
	"id":        func(a, b *sortLine) int { return 0 },
	"created":   func(a, b *sortLine) int { return a.CreatedAt.Compare(b.CreatedAt) },
	"updated":   func(a, b *sortLine) int { return a.UpdatedAt.Compare(b.UpdatedAt) },
	"score":     func(a, b *sortLine) int { return cmp.Compare(a.Score, b.Score) },
	"timestamp": func(a, b *sortLine) int { return a.timestamp.Compare(b.timestamp) },
}

func sortNames() []string { return slices.Sorted(maps.Keys(sorts)) }

// order is the order that the flags ask for, nil for that of the ids, in which memories are listed
// as they are read.
func (f *listFlags) order(cmd *cobra.Command) (func(a, b *sortLine) int, error) {
	path, name := cmd.CommandPath(), "id"
	if cmd.Flags().Changed("sort") {
		name = f.sort
	}
	name, down := strings.CutPrefix(name, "-")
	by, ok := sorts[name]
	switch {
	case !ok:
		return nil, cli.Usagef(path, "--sort %q: must be %s, or one of them after -", f.sort, strings.Join(sortNames(), ", "))
	case f.offset < 0:
		return nil, cli.Usagef(path, "--offset %d: must be 0 or more", f.offset)
	}
	if down = down != f.reverse; name == "id" && !down {
		if f.offset > 0 {
			return nil, cli.Usagef(path, "--offset is for a list sorted by another key; the list by id continues with --after ID")
		}
		return nil, nil
	}
	if cmd.Flags().Changed("after") {
		return nil, cli.Usagef(path, "--after is for the list by id; a sorted list continues with --offset N")
	}
	return func(a, b *sortLine) int {
		n := cmp.Or(by(a, b), strings.Compare(a.ID, b.ID))
		if down {
			n = -n
		}
		return n
	}, nil
}

// listSorted lists one page of a sorted list. The keys of all memories are compared, from the index
// where it has them; of as many as the page has and those before it the ids are held.
func listSorted(cmd *cobra.Command, a *cli.App, st *varve.Store, l *memoryList, by func(a, b *sortLine) int, f *listFlags, filters []varve.Filter) error {
	ctx := cmd.Context()
	page := newPage(by, f.limit, f.offset)
	var err error
	read := strings.TrimPrefix(f.sort, "-") == "timestamp"
	for _, flag := range []string{"category", "key", "tag", "where", "since", "until"} { // the index does not know them
		read = read || cmd.Flags().Changed(flag)
	}
	if read {
		err = page.read(ctx, a, st, filters)
	} else {
		err = page.scan(ctx, a, st, filters)
	}
	if err != nil {
		return err
	}
	rows, more := page.rows()
	for i := range rows {
		m, err := st.Get(ctx, rows[i].ID)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, varve.ErrNotFound): // deleted meanwhile
		case err != nil:
			a.Fail(err)
		default:
			if err := l.add(ctx, &m); err != nil {
				return err
			}
		}
	}
	if err := l.End(ctx); err != nil {
		return err
	}
	next := f.offset + len(rows)
	switch {
	case a.Document != nil && more:
		a.Document.Member("next", next)
	case a.Document != nil:
		a.Document.Member("next", nil)
	case more:
		a.Note("there are more: %s", a.Repeated(cmd, nil, "offset", strconv.Itoa(next)))
	case len(rows) == 0:
		a.Note("no memory found")
	}
	return nil
}

// page is the first of many lines in an order.
type page struct {
	by            func(a, b *sortLine) int
	limit, offset int
	lines         []sortLine
}

func newPage(by func(a, b *sortLine) int, limit, offset int) *page {
	const most = 1 << 29 // sums of these are in the range of int everywhere
	return &page{by: by, limit: min(limit, most), offset: min(offset, most)}
}

// take takes a line. What cannot be on the page goes each time that the lines are twice as many.
func (p *page) take(l sortLine) {
	l.ID = strings.Clone(l.ID)
	p.lines = append(p.lines, l)
	if most := p.offset + p.limit + 1; p.limit > 0 && len(p.lines) >= 2*most+1000 {
		p.sort()
		p.lines = slices.Delete(p.lines, most, len(p.lines))
	}
}

func (p *page) sort() { slices.SortFunc(p.lines, func(a, b sortLine) int { return p.by(&a, &b) }) }

func (p *page) rows() (rows []sortLine, more bool) {
	p.sort()
	rows = p.lines[min(p.offset, len(p.lines)):]
	if p.limit > 0 && len(rows) > p.limit {
		return rows[:p.limit], true
	}
	return rows, false
}

// scan takes lines from the index.
func (p *page) scan(ctx context.Context, a *cli.App, st *varve.Store, filters []varve.Filter) error {
	for line, err := range st.Admin().Lines(ctx, filters...) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			a.Fail(err)
		default:
			p.take(sortLine{Line: line})
		}
	}
	return nil
}

// read takes them from the documents.
func (p *page) read(ctx context.Context, a *cli.App, st *varve.Store, filters []varve.Filter) error {
	for m, err := range st.Memories(ctx, filters...) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			a.Fail(err)
		default:
			p.take(sortLine{varve.Line{ID: m.ID, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt, Score: m.QuickRecalScore}, m.Timestamp})
		}
	}
	return nil
}
