package words

import (
	"bytes"
	"cmp"
	"slices"
)

// merging is a part that is merged: its live rows have new numbers.
type merging struct {
	part *Part
	to   []int32 // the new row of each, -1 where it is dead
	dict *dictionary
	at   entry
	more bool
}

func (m *merging) step() (err error) {
	m.at, m.more, err = m.dict.read()
	return err
}

// Merge puts the live documents of some parts into one segment, and says which rows they have there.
// It gives no segment where none is live.
func (v *Set) Merge(ids []uint64) (b []byte, moved map[uint64][]int32, err error) {
	var list []*merging
	type from struct {
		row
		m   *merging
		was uint32
	}
	var all []from
	print := uint64(0)
	for _, id := range ids {
		p := v.parts[v.index[id]]
		m := &merging{part: p, to: make([]int32, p.Seg.Rows)}
		list = append(list, m)
		print = p.Seg.Print
		if !p.Seg.Sorted {
			return nil, nil, broken("part %d is of format 1, which has no orders", id)
		}
		for r := range uint32(p.Seg.Rows) {
			m.to[r] = -1
			if p.dead.Has(r) {
				continue
			}
			f := from{m: m, was: r}
			if f.row, err = p.Seg.row(r); err != nil {
				return nil, nil, err
			}
			all = append(all, f)
		}
	}
	moved = map[uint64][]int32{}
	for _, m := range list {
		moved[m.part.ID] = m.to
	}
	if len(all) == 0 {
		return nil, moved, nil
	}
	slices.SortFunc(all, func(a, b from) int { return compareRows(&a.row, &b.row) })
	rows := make([]row, len(all))
	for i := range all {
		rows[i] = all[i].row
		all[i].m.to[all[i].was] = int32(i)
	}
	w := newSegmentWriter(rows, print)
	if err := mergeTerms(w, list); err != nil {
		return nil, nil, err
	}
	return w.finish(), moved, nil
}

func mergeTerms(w *segmentWriter, list []*merging) error {
	for _, m := range list {
		d, err := m.part.Seg.from(nil)
		if err != nil {
			return err
		}
		m.dict = d
		if err := m.step(); err != nil {
			return err
		}
	}
	var least []byte
	var posts []posting
	for {
		least = least[:0]
		found := false
		for _, m := range list {
			if m.more && (!found || bytes.Compare(m.at.term, least) < 0) {
				least, found = append(least[:0], m.at.term...), true
			}
		}
		if !found {
			return nil
		}
		posts = posts[:0]
		for _, m := range list {
			if !m.more || !bytes.Equal(m.at.term, least) {
				continue
			}
			p, err := m.part.Seg.posts(&m.at)
			if err != nil {
				return err
			}
			for {
				o, ok, err := p.next()
				if err != nil {
					return err
				}
				if !ok {
					break
				}
				if to := m.to[o.row]; to >= 0 {
					posts = append(posts, posting{uint32(to), o.tf})
				}
			}
			if err := m.step(); err != nil {
				return err
			}
			if m.more && bytes.Compare(m.at.term, least) <= 0 {
				return broken("terms are not sorted")
			}
		}
		if len(posts) > 0 {
			slices.SortFunc(posts, func(a, b posting) int { return cmp.Compare(a.row, b.row) })
			w.term(least, posts)
		}
	}
}

// row is what a segment says of a row.
func (s *Segment) row(r uint32) (out row, err error) {
	id, err := s.ID(r)
	if err != nil {
		return out, err
	}
	if out.lsn, err = s.LSN(r); err != nil {
		return out, err
	}
	if out.time, err = s.Time(r); err != nil {
		return out, err
	}
	if out.length, err = s.column32(secLength, int(r)); err != nil {
		return out, err
	}
	n, err := s.Session(r)
	if err != nil {
		return out, err
	}
	name, err := s.SessionName(n)
	if err != nil {
		return out, err
	}
	out.id, out.session = string(id), string(name)
	out.Line, err = s.Line(r)
	return out, err
}

// Merged is the set with a segment in the place of those that Merge made it of; seg is nil where it
// made none.
func (v *Set) Merged(id uint64, seg *Segment, moved map[uint64][]int32) (*Set, error) {
	old, out := v, &edit{&Set{index: map[uint64]int{}}}
	ref := func(r Ref) (Ref, error) {
		to, ok := moved[r.Part]
		if !ok {
			return r, nil
		}
		if int(r.Row) >= len(to) || to[r.Row] < 0 {
			return Ref{}, broken("a link to row %d of part %d, which is dead", r.Row, r.Part)
		}
		return Ref{id, uint32(to[r.Row])}, nil
	}
	for _, p := range old.parts {
		if _, gone := moved[p.ID]; gone {
			continue
		}
		q := *p
		q.own = false
		touched := false
		for _, l := range p.links {
			_, a := moved[l.before.Part]
			_, b := moved[l.behind.Part]
			touched = touched || l.hasBefore && !l.noBefore && a || l.hasBehind && !l.noBehind && b
		}
		out.add(&q)
		if !touched {
			continue
		}
		o := out.owned(len(out.parts) - 1)
		for r, l := range o.links {
			var err error
			if l.hasBefore && !l.noBefore {
				if l.before, err = ref(l.before); err != nil {
					return nil, err
				}
			}
			if l.hasBehind && !l.noBehind {
				if l.behind, err = ref(l.behind); err != nil {
					return nil, err
				}
			}
			o.links[r] = l
		}
	}
	if seg == nil {
		return out.Set, nil
	}
	out.add(&Part{ID: id, Seg: seg, own: true, laid: new(layoutOnce)})
	n := len(out.parts) - 1
	// What was linked is linked from its new row, where it does not adjoin now.
	for _, p := range old.parts {
		to, gone := moved[p.ID]
		if !gone {
			continue
		}
		for r, l := range p.links {
			if p.dead.Has(r) || to[r] < 0 {
				continue
			}
			at := place{n, uint32(to[r])}
			for _, side := range []struct {
				before, has, none bool
				to                Ref
			}{{true, l.hasBefore, l.noBefore, l.before}, {false, l.hasBehind, l.noBehind, l.behind}} {
				if !side.has {
					continue
				}
				target, has := place{}, !side.none
				if has {
					t, err := ref(side.to)
					if err != nil {
						return nil, err
					}
					i, ok := out.index[t.Part]
					if !ok {
						return nil, broken("a link to part %d, which is not there", t.Part)
					}
					target = place{i, t.Row}
				}
				if err := out.point(at, side.before, target, has); err != nil {
					return nil, err
				}
			}
		}
	}
	// Rows that adjoined in their old segment, and between which rows of another one have come, had
	// links. Rows that did not, and adjoin now, had links too, which point has left out.
	return out.Set, nil
}
