package rows

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/order"
)

// Session sums up the live documents of a session.
type Session struct {
	ID          string
	Key         string // sort key of the session
	Rows, Bytes int64
	First, Last int64 // time of the earliest creation and of the latest update, in microseconds since 1970

	row uint32 // number of the session's first row in the segment
	end uint32
}

// sums has the totals of the documents of each session in a part. They are valid for every time t with from ≤ t <
// until: within this span no document expires.
type sums struct {
	list        []Session
	from, until int64
}

// keyed returns the named sessions of a segment, sorted by key. The result is cached, so key must always be the same
// function.
func keyed(s *words.Segment, key func(string) (string, error)) (list []Session, err error) {
	s.Kept.Lock()
	defer s.Kept.Unlock()
	if list, ok := s.Kept.Made.([]Session); ok {
		return list, nil
	}
	for i := range uint32(s.Sessions) {
		name, err := s.SessionName(i)
		if err != nil {
			return nil, err
		}
		if len(name) == 0 {
			continue
		}
		one := Session{ID: string(name)}
		if one.row, one.end, err = s.RowsOf(i); err != nil {
			return nil, err
		}
		if one.Key, err = key(one.ID); err != nil {
			return nil, fmt.Errorf("%w: session %q: %w", errs.ErrCorrupt, name, err)
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b Session) int { return strings.Compare(a.Key, b.Key) })
	s.Kept.Made = list
	return list, nil
}

// sessions returns the sessions of a part that have live rows which have not expired at the time now.
func sessions(p *words.Part, now int64, key func(string) (string, error)) (*sums, error) {
	kept := p.Kept()
	kept.Lock()
	defer kept.Unlock()
	if s, ok := kept.Made.(*sums); ok && s.from <= now && now < s.until {
		return s, nil
	}
	all, err := keyed(p.Seg, key)
	if err != nil {
		return nil, err
	}
	columns, err := p.Seg.Columns()
	if err != nil {
		return nil, err
	}
	created, updated, expiring, sizes := columns[0], columns[1], columns[2], columns[3]
	at := func(column []byte, r uint32) int64 { return int64(binary.LittleEndian.Uint64(column[8*r:])) }
	out := &sums{from: math.MinInt64, until: math.MaxInt64, list: make([]Session, 0, len(all))}
	for _, s := range all {
		for r := s.row; r < s.end; r++ {
			if p.Dead(r) {
				continue
			}
			if expires := at(expiring, r); expires <= now {
				out.from = max(out.from, expires)
				continue
			} else if expires != order.Never {
				out.until = min(out.until, expires)
			}
			s.add(1, int64(binary.LittleEndian.Uint32(sizes[4*r:])), at(created, r), at(updated, r))
		}
		if s.Rows > 0 {
			out.list = append(out.list, s)
		}
	}
	kept.Made = out
	return out, nil
}

func (s *Session) add(rows, bytes, first, last int64) {
	if s.Rows == 0 {
		s.First, s.Last = first, last
	}
	s.Rows, s.Bytes = s.Rows+rows, s.Bytes+bytes
	s.First, s.Last = min(s.First, first), max(s.Last, last)
}

// Sessions returns the sessions that have documents at time now, sorted by key. The result is valid at all times t
// with from ≤ t < until. The sums of each part are cached with the part, so after a change only the changed parts
// are read again.
func Sessions(v *words.Set, now int64, key func(string) (string,
	error)) (list []Session, from, until int64, err error) {
	from, until = math.MinInt64, math.MaxInt64
	var lists [][]Session
	for _, p := range v.Parts() {
		s, err := sessions(p, now, key)
		if err != nil {
			return nil, 0, 0, err
		}
		from, until = max(from, s.from), min(until, s.until)
		if len(s.list) > 0 {
			lists = append(lists, s.list)
		}
	}
	if len(lists) == 0 {
		return nil, from, until, nil
	}
	// The two shortest lists are merged until one is left.
	for len(lists) > 1 {
		slices.SortFunc(lists, func(a, b []Session) int { return len(b) - len(a) })
		n := len(lists)
		lists[n-2] = joined(lists[n-2], lists[n-1])
		lists = lists[:n-1]
	}
	return lists[0], from, until, nil
}

func joined(a, b []Session) []Session {
	out := make([]Session, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch c := strings.Compare(a[0].Key, b[0].Key); {
		case c < 0:
			out, a = append(out, a[0]), a[1:]
		case c > 0:
			out, b = append(out, b[0]), b[1:]
		default:
			s := a[0]
			s.add(b[0].Rows, b[0].Bytes, b[0].First, b[0].Last)
			out, a, b = append(out, s), a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}
