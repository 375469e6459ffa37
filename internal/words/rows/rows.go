package rows

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/order"
)

// Row is a live row of a Set: the words of one document or section, which no newer row replaces and no deletion has
// removed. ID refers to bytes of the segment that contains the row, and is valid only as long as the caller may read
// that segment.
type Row struct {
	Key  int64
	ID   []byte
	part *words.Part
	row  uint32
}

func (r *Row) compare(o *Row) int {
	return cmp.Or(cmp.Compare(r.Key, o.Key), bytes.Compare(r.ID, o.ID))
}

// Of returns the sort key of the row in an order.
func (r *Row) Of(o order.Order) (int64, error) { return r.part.Seg.Key(o, r.row) }

// Expires returns when the row expires, in microseconds since 1970; order.Never if it does not.
func (r *Row) Expires() (int64, error) { return r.part.Seg.Expires(r.row) }

// Named returns the id of the row, and reads it on the first call.
func (r *Row) Named() (id []byte, err error) {
	if r.ID == nil {
		r.ID, err = r.part.Seg.ID(r.row)
	}
	return r.ID, err
}

// At returns the part and number of the row.
func (r *Row) At() words.Ref { return words.Ref{Part: r.part.ID, Row: r.row} }

// Session returns the name of the row's session.
func (r *Row) Session() ([]byte, error) {
	n, err := r.part.Seg.Session(r.row)
	if err != nil {
		return nil, err
	}
	return r.part.Seg.SessionName(n)
}

// cursor is a position in a part's rows, in the order of a listing.
type cursor struct {
	Row
	order order.Order
	down  bool
	at    int
}

// read loads the first live row at or after the current position; it returns false if no live row is left.
func (c *cursor) read() (bool, error) {
	for ; c.at >= 0 && c.at < c.part.Seg.Rows; c.step() {
		r, err := c.part.Seg.Ranked(c.order, c.at)
		if err != nil {
			return false, err
		}
		if c.part.Dead(r) {
			continue
		}
		c.row = r
		if c.Key, err = c.part.Seg.Key(c.order, r); err == nil {
			c.ID, err = c.part.Seg.ID(r)
		}
		return err == nil, err
	}
	return false, nil
}

func (c *cursor) step() {
	if c.down {
		c.at--
	} else {
		c.at++
	}
}

// seek returns the number of rows of a segment that come before place p in order o. If inclusive is true, a row
// exactly at p counts too.
func seek(s *words.Segment, o order.Order, p order.Place, inclusive bool) (n int, err error) {
	n = sort.Search(s.Rows, func(i int) bool {
		r, e := s.Ranked(o, i)
		var key int64
		var id []byte
		if e == nil {
			key, e = s.Key(o, r)
		}
		if e == nil && key == p.Key {
			id, e = s.ID(r)
		}
		if e != nil {
			if err == nil {
				err = e
			}
			return true
		}
		c := cmp.Compare(key, p.Key)
		if c == 0 {
			c = cmp.Compare(string(id), p.ID)
		}
		return c > 0 || c == 0 && !inclusive
	})
	return n, err
}

// Walk calls visit for the live rows in order o, descending if down is true, until visit returns false. If place
// is not nil, Walk starts with the next row after that place, in the direction of the walk. All parts must have
// orders (see Sorted). A row is valid only during the call of visit.
func Walk(v *words.Set, o order.Order, down bool, place *order.Place, visit func(*Row) (bool, error)) error {
	var heap []*cursor
	less := func(a, b *cursor) bool {
		if down {
			a, b = b, a
		}
		return a.compare(&b.Row) < 0
	}
	sink := func(i int) {
		for {
			least := i
			for _, c := range [...]int{2*i + 1, 2*i + 2} {
				if c < len(heap) && less(heap[c], heap[least]) {
					least = c
				}
			}
			if least == i {
				return
			}
			heap[i], heap[least] = heap[least], heap[i]
			i = least
		}
	}
	for _, p := range v.Parts() {
		c := &cursor{Row: Row{part: p}, order: o, down: down}
		var err error
		switch {
		case place == nil && down:
			c.at = p.Seg.Rows - 1
		case place == nil:
		case down:
			c.at, err = seek(p.Seg, o, *place, false)
			c.at--
		default:
			c.at, err = seek(p.Seg, o, *place, true)
		}
		if err != nil {
			return err
		}
		if ok, err := c.read(); err != nil {
			return err
		} else if ok {
			heap = append(heap, c)
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(i)
	}
	for len(heap) > 0 {
		c := heap[0]
		if ok, err := visit(&c.Row); err != nil || !ok {
			return err
		}
		c.step()
		ok, err := c.read()
		if err != nil {
			return err
		}
		if !ok {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		sink(0)
	}
	return nil
}

// Sorted reports whether all segments of v have the sort orders of their rows. Segments of format 1 have none.
func Sorted(v *words.Set) bool {
	return !slices.ContainsFunc(v.Parts(), func(p *words.Part) bool { return !p.Seg.Sorted })
}

// LineOf returns the metadata, besides time, by which the document in the row ref is selected and sorted.
func LineOf(v *words.Set, ref words.Ref) (order.Line, error) { return segmentOf(v, ref).Line(ref.Row) }

// TimeOf returns the time of the document in the row ref, in microseconds since 1970; words.NoTime if the document
// could not be read.
func TimeOf(v *words.Set, ref words.Ref) (int64, error) { return segmentOf(v, ref).Time(ref.Row) }

func segmentOf(v *words.Set, ref words.Ref) *words.Segment {
	i := slices.IndexFunc(v.Parts(), func(p *words.Part) bool { return p.ID == ref.Part })
	return v.Parts()[i].Seg
}

// InSession returns the live rows of a session in no particular order, with their keys in order o.
func InSession(v *words.Set, name string, o order.Order) (list []Row, err error) {
	err = eachOf(v, name, func(p *words.Part, from, to uint32) error {
		for r := from; r < to; r++ {
			if p.Dead(r) {
				continue
			}
			row := Row{part: p, row: r}
			var err error
			if row.Key, err = p.Seg.Key(o, r); err == nil {
				row.ID, err = p.Seg.ID(r)
			}
			if err != nil {
				return err
			}
			list = append(list, row)
		}
		return nil
	})
	return list, err
}

// SizeOf returns the number of rows of a session, dead ones included.
func SizeOf(v *words.Set, name string) (n int, err error) {
	err = eachOf(v, name, func(_ *words.Part, from, to uint32) error { n += int(to - from); return nil })
	return n, err
}

func eachOf(v *words.Set, name string, visit func(p *words.Part, from, to uint32) error) error {
	for _, p := range v.Parts() {
		n, ok, err := p.Seg.FindSession(name)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		from, to, err := p.Seg.RowsOf(n)
		if err == nil {
			err = visit(p, from, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Sort sorts rows by key, and by id among equal keys; in descending order if down is true.
func Sort(list []Row, down bool) {
	slices.SortFunc(list, func(a, b Row) int {
		if down {
			return b.compare(&a)
		}
		return a.compare(&b)
	})
}

// Check verifies that each order of a segment has every row once and is sorted. Errors are errs.ErrCorrupt.
func Check(s *words.Segment) error {
	if !s.Sorted {
		return nil
	}
	for o := order.ByTime; o <= order.BySize; o++ {
		seen := make([]bool, s.Rows)
		var before Row
		for i := range s.Rows {
			r, err := s.Ranked(o, i)
			if err != nil {
				return err
			}
			now := Row{row: r}
			if now.Key, err = s.Key(o, r); err == nil {
				now.ID, err = s.ID(r)
			}
			if err != nil {
				return err
			}
			if seen[r] || i > 0 && before.compare(&now) >= 0 {
				return fmt.Errorf("%w: the rows of sort order %d are not sorted at row %d", errs.ErrCorrupt, o, r)
			}
			seen[r], before = true, now
		}
	}
	return nil
}
