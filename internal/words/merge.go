package words

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/varve-db/varve/internal/words/build"
)

// merging is the state of reading one part in Merge: the next row and the next term.
type merging struct {
	part *Part
	to   []int32 // new number of each row, -1 for a dead row
	at   uint32  // number of the next live row
	row  build.Row
	dict *dictionary
	term entry // next term; valid if more is true
	more bool
}

func (m *merging) step() (err error) {
	m.term, m.more, err = m.dict.read()
	return err
}

// Merge merges the live documents of the parts with the given ids into one segment. moved gives, for each part id, the
// new number of each row of that part; -1 for a dead row. w is nil if no row is live. Merge ends with the error of ctx
// when ctx ends.
func (v *Set) Merge(ctx context.Context, ids []uint64) (w *build.Writer, moved map[uint64][]int32, err error) {
	var list []*merging
	moved, print, live, format := map[uint64][]int32{}, uint64(0), 0, uint32(build.Sparse)
	for _, id := range ids {
		p := v.parts[v.index[id]]
		m := &merging{part: p, to: make([]int32, p.Seg.Rows)}
		list, moved[id] = append(list, m), m.to
		print, format = p.Seg.Print, max(format, p.Seg.Format)
		if !p.Seg.Sorted {
			return nil, nil, broken("part %d is of format 1, which has no sort orders", id)
		}
		for r := range uint32(p.Seg.Rows) {
			if m.to[r] = -1; !p.dead.Has(r) {
				live++
			}
		}
		if err := m.advanceTo(0); err != nil {
			return nil, nil, err
		}
	}
	if live == 0 {
		return nil, moved, nil
	}
	w = build.NewWriter(ctx, live, print, format)
	for n := range int32(live) {
		if n%build.PollEvery == 0 && ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		var first *merging
		for _, m := range list {
			if int(m.at) < m.part.Seg.Rows && (first == nil || m.row.Compare(&first.row) < 0) {
				first = m
			}
		}
		w.Row(&first.row)
		first.to[first.at] = n
		if err := first.advanceTo(first.at + 1); err != nil {
			return nil, nil, err
		}
	}
	if err := mergeTerms(ctx, w, list); err != nil {
		return nil, nil, err
	}
	return w, moved, nil
}

// advanceTo moves to row r, or, if row r is dead, to the next live row after it.
func (m *merging) advanceTo(r uint32) (err error) {
	rows, was, begun := uint32(m.part.Seg.Rows), m.row, r > 0 && m.to[m.at] >= 0
	for r < rows && m.part.dead.Has(r) {
		r++
	}
	if m.at = r; r == rows {
		return nil
	}
	if m.row, err = m.part.Seg.row(r); err == nil && begun && m.row.Compare(&was) < 0 {
		err = broken("row %d of part %d is out of order", r, m.part.ID)
	}
	return err
}

// mergeTerms adds the terms of all parts to w. If ctx has ended, also while w sorted its rows, it returns the error of
// ctx.
func mergeTerms(ctx context.Context, w *build.Writer, list []*merging) error {
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
	var posts []build.Posting
	for n := 0; ; n++ {
		if n%build.PollEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		least = least[:0]
		found := false
		for _, m := range list {
			if m.more && (!found || bytes.Compare(m.term.term, least) < 0) {
				least, found = append(least[:0], m.term.term...), true
			}
		}
		if !found {
			return nil
		}
		posts = posts[:0]
		of := 0 // number of parts that have the term
		for _, m := range list {
			if !m.more || !bytes.Equal(m.term.term, least) {
				continue
			}
			of++
			p, err := m.part.Seg.posts(&m.term)
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
					posts = append(posts, build.Posting{Row: uint32(to), TF: o.tf})
				}
			}
			if err := m.step(); err != nil {
				return err
			}
			if m.more && bytes.Compare(m.term.term, least) <= 0 {
				return broken("the terms of a segment are not sorted")
			}
		}
		if of > 1 {
			slices.SortFunc(posts, func(a, b build.Posting) int { return cmp.Compare(a.Row, b.Row) })
		}
		if len(posts) > 0 {
			w.Term(least, posts)
		}
	}
}

// row returns row r of the segment with all metadata of the row.
func (s *Segment) row(r uint32) (out build.Row, err error) {
	id, err := s.ID(r)
	if err != nil {
		return out, err
	}
	if out.LSN, err = s.LSN(r); err != nil {
		return out, err
	}
	if out.Time, err = s.Time(r); err != nil {
		return out, err
	}
	if out.Length, err = s.column32(secLength, int(r)); err != nil {
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
	out.ID, out.Session = string(id), string(name)
	out.Line, err = s.Line(r)
	return out, err
}

// Merged returns a set in which the segment seg, as a new part with the number id, replaces the parts that Merge has
// read. moved is the result of Merge. seg is nil if Merge returned a nil writer; then no part is added.
func (v *Set) Merged(id uint64, seg *Segment, moved map[uint64][]int32) (*Set, error) {
	old, out := v, &edit{&Set{index: map[uint64]int{}}}
	ref := func(r Ref) (Ref, error) {
		to, ok := moved[r.Part]
		if !ok {
			return r, nil
		}
		if int(r.Row) >= len(to) || to[r.Row] < 0 {
			return Ref{}, broken("a row links to row %d of part %d, but that row is deleted", r.Row, r.Part)
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
	// Links of the merged parts become links of the new rows, unless the rows are adjacent now.
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
						return nil, broken("a row links to a row of part %d, but there is no such part", t.Part)
					}
					target = place{i, t.Row}
				}
				if err := out.point(at, side.before, target, has); err != nil {
					return nil, err
				}
			}
		}
	}
	// Rows that were adjacent in their old segment, and that rows of another segment now separate, had links (their
	// neighbours were those other rows). Rows that were linked and are adjacent now need no link, and point has added
	// none.
	return out.Set, nil
}
