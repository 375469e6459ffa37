package mcpserver

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/timearg"
	"github.com/varve-db/varve/memstore"
)

// recent answers a call of the tool recent: it lists the memories that were written, or whose event happened, in a
// period.
func (c *memoryCall) recent(ctx context.Context) (*answer, error) {
	at, about, err := c.period()
	if err != nil {
		return nil, err
	}
	return c.recentIn(ctx, at, about)
}

// period returns the period that the arguments "when", "since" and "until" specify, and a text that describes the
// period.
func (c *memoryCall) period() (span period, about string, err error) {
	when := strings.TrimSpace(c.text("when"))
	if when != "" {
		said, p, rest := timeWords(when, c.now)
		if said == "" || rest != "" {
			if p, err = reads("when", when, c.now); err != nil {
				return span, "", err
			}
		}
		span, about = p, fmt.Sprintf("%s (%s)", oneLine(clipped(when)), p.String())
	}
	for _, name := range []string{"since", "until"} {
		value := c.text(name)
		if value == "" {
			continue
		}
		if when != "" {
			return span, "", fmt.Errorf("%s: the argument \"when\" already names a time → give only one of them", name)
		}
		p, err := reads(name, value, c.now)
		if err != nil {
			return span, "", err
		}
		if name == "since" {
			span.from = p.from
		} else if span.to = p.to; span.to.IsZero() {
			span.to = p.from
		}
	}
	if !span.from.IsZero() && !span.to.IsZero() && !span.from.Before(span.to) {
		return span, "", errors.New("since and until: the time ranges do not overlap, so no memory can match")
	}
	return span, about, nil
}

// reads parses the value of the argument with this name as a period. If the value is a point in time, the period
// begins at that time and has no end.
func reads(name, value string, now time.Time) (period, error) {
	s, err := timearg.Parse(value, now.Local())
	if err != nil {
		return period{}, fmt.Errorf("%s: %w", name, err)
	}
	if s.To.After(s.From) {
		return period{s.From, s.To}, nil
	}
	return period{s.From, time.Time{}}, nil
}

// dated is a memory together with the time by which the list is sorted.
type dated struct {
	m  varve.Memory
	at int64 // in microseconds since 1970
}

// recentIn answers with one page of the memories that were written in the period span, or whose event happened in
// that period. The newest memory comes first. about is a text that describes the period.
func (c *memoryCall) recentIn(ctx context.Context, span period, about string) (*answer, error) {
	filters, err := c.narrow()
	if err != nil {
		return nil, err
	}
	behind, err := recentCursor(c.text("cursor"))
	if err != nil {
		return nil, err
	}
	limit := c.number("limit", 20)
	p := page{chars: c.number("max_chars", defaultChars), view: c.view}
	last, elsewhere := dated{}, false
	for d, err := range c.newest(ctx, span, behind, filters) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			if !isOne(err) {
				return nil, err
			}
			c.s.o.Logger.Warn("listing", "err", err)
			continue
		}
		if len(p.items) == limit || !p.add(&d.m, 0) {
			p.next = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", last.at, last.m.ID))
			break
		}
		last = d
		elsewhere = elsewhere || !span.has(dayOf(&d.m))
	}
	p.note(ctx, c)
	lines := p.lines(c)
	if about != "" {
		if elsewhere {
			about += ", written or happened"
		}
		lines = append([]string{about}, lines...)
	}
	if len(p.items) == 0 {
		lines = append(lines, c.nothingThen())
	}
	if p.why != "" {
		lines = append(lines, "note: "+p.why)
	}
	return c.linesAnswer(lines, func(w *writer) {
		w.open('{')
		p.write(w)
		p.writeNext(w)
		w.close('}')
	}), nil
}

func (c *memoryCall) nothingThen() string {
	if c.text("cursor") != "" {
		return "no more"
	}
	return "nothing in this time → try a longer time, such as last month, or recall with words"
}

// has reports whether the time t is in the period.
func (p period) has(t time.Time) bool {
	return (p.from.IsZero() || !t.Before(p.from)) && (p.to.IsZero() || t.Before(p.to))
}

// narrow returns the filters that the arguments select, except those by time.
func (c *memoryCall) narrow() ([]varve.Filter, error) {
	others := args{}
	for _, name := range []string{"session", "category", "key", "tags", "where"} {
		if v, ok := c.args[name]; ok {
			others[name] = v
		}
	}
	all, err := others.filters(c.now)
	if by := c.text("writer"); by != "" {
		all = append(all, varve.WrittenBy(by))
	}
	return all, err
}

// recentCursor parses the cursor of a page. It returns the time and the id of the last memory of that page, or nil for
// an empty cursor.
func recentCursor(cursor string) (*memstore.Place, error) {
	if cursor == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	number, id, ok := strings.Cut(string(b), " ")
	n, nerr := strconv.ParseInt(number, 10, 64)
	if err != nil || nerr != nil || !ok {
		return nil, fmt.Errorf("cursor %q: must be the cursor that the previous page returned", clipped(cursor))
	}
	return &memstore.Place{Key: n, ID: id}, nil
}

// newest yields the memories that were written in the period span, or whose event happened in that period, the
// newest memory first. The order is by the time of writing or the time of the event, whichever is later and in the
// period. If last is not nil, newest begins after last, the place of the last memory on the previous page.
//
// newest merges a listing by the time of writing with a listing by the time of the event, and reads an entry of a
// listing only when that entry is the next. Otherwise, if a session had 100,000 memories that were written later
// than their events, a search for a memory that was not would read all of them.
func (c *memoryCall) newest(ctx context.Context, span period, last *memstore.Place,
	filters []varve.Filter) iter.Seq2[dated, error] {
	until := span.to
	if last != nil {
		if t := time.UnixMicro(last.Key + 1); until.IsZero() || t.Before(until) {
			until = t
		}
	}
	listed := func(by memstore.OrderKey, more ...varve.Filter) iter.Seq2[varve.Memory, error] {
		order := &memstore.Order{By: by, Down: true}
		return c.view.Memories(ctx, append(append(more, filters...), varve.Sorted(order))...)
	}
	var happened []varve.Filter
	if !span.from.IsZero() {
		happened = append(happened, varve.Since(span.from))
	}
	if !until.IsZero() {
		happened = append(happened, varve.Until(until))
	}
	return func(yield func(dated, error) bool) {
		one, stopOne := iter.Pull2(listed(memstore.OrderUpdated, varve.Updated(span.from, until)))
		defer stopOne()
		two, stopTwo := iter.Pull2(listed(memstore.OrderTimestamp, happened...))
		defer stopTwo()
		wrote := func(m *varve.Memory) time.Time { return m.UpdatedAt }
		was := func(m *varve.Memory) time.Time { return m.Timestamp }
		next := func(pull func() (varve.Memory, error, bool), time func(*varve.Memory) time.Time) (dated, error, bool) {
			m, err, ok := pull()
			if !ok || err != nil {
				return dated{}, err, ok
			}
			return dated{m, time(&m).UnixMicro()}, nil, true
		}
		// listedHere reports whether an entry is in the listing by its time t, and not in that by the other one.
		listedHere := func(t, other time.Time, first bool) bool {
			return span.has(t) && (!span.has(other) || t.UnixMicro() > other.UnixMicro() ||
				t.UnixMicro() == other.UnixMicro() && first)
		}
		a, aerr, aok := next(one, wrote)
		b, berr, bok := next(two, was)
		for aok || bok {
			first := aok && (aerr != nil || !bok || berr == nil && (a.at > b.at || a.at == b.at && a.m.ID > b.m.ID))
			d, err, here := b, berr, listedHere(b.m.Timestamp, b.m.UpdatedAt, false)
			if first {
				d, err, here = a, aerr, listedHere(a.m.UpdatedAt, a.m.Timestamp, true)
			}
			passed := last != nil && (d.at > last.Key || d.at == last.Key && d.m.ID >= last.ID)
			if (err != nil || here && !passed) && !yield(d, err) {
				return
			}
			if first {
				a, aerr, aok = next(one, wrote)
			} else {
				b, berr, bok = next(two, was)
			}
		}
	}
}
