package words

import (
	"math/bits"

	"github.com/varve-db/varve/internal/words/bitset"
)

// marks is a selection in a set: some sessions are marked as a whole, and rows without a session are marked one by one.
type marks struct {
	*Set
	parts []partMarks
}

// partMarks has the marks in one part: the numbers of the marked sessions, and the marked rows that belong to no
// session.
type partMarks struct {
	*layout
	sessions, rows bitset.Set
}

func (v *Set) newMarks() *marks { return &marks{v, make([]partMarks, len(v.parts))} }

// add marks the session of the row at pos, or the row itself if it has no session.
func (m *marks) add(pos place) (err error) {
	p, seg := &m.parts[pos.part], m.Set.parts[pos.part].Seg
	if p.layout == nil {
		if p.layout, err = m.Set.parts[pos.part].layout(); err != nil {
			return err
		}
		p.sessions, p.rows = bitset.New(seg.Sessions), bitset.New(seg.Rows)
	}
	if n := p.session(pos.row); n > 0 || !p.nameless {
		p.sessions.Put(n)
	} else {
		p.rows.Put(pos.row)
	}
	return nil
}

// spans returns, for each part, the rows of the marked sessions and the other marked rows. A session that is marked in
// one part counts as marked in all parts.
func (m *marks) spans() ([]spans, error) {
	if err := m.share(); err != nil {
		return nil, err
	}
	out := make([]spans, len(m.parts))
	for i := range m.parts {
		p, seg := &m.parts[i], m.Set.parts[i].Seg
		err := visitMembers(p.rows, func(r uint32) error { // their session is the first one
			out[i] = out[i].with(r, r+1)
			return nil
		})
		if err != nil {
			return nil, err
		}
		err = visitMembers(p.sessions, func(n uint32) error {
			from, to, err := seg.RowsOf(n)
			if k := len(out[i]); err == nil && k > 0 && out[i][k-1].to > from {
				err = broken("the rows of session %d begin before those of the previous one end", n)
			}
			out[i] = out[i].with(from, to)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// share makes sure that a session which is marked in one part is marked in all other parts too.
func (m *marks) share() error {
	names := map[string]bool{}
	for i := range m.parts {
		p := &m.parts[i]
		if p.layout == nil || p.shared == nil {
			continue
		}
		err := visitMembers(p.sessions, func(n uint32) error {
			if !p.shared.Has(n) {
				return nil
			}
			name, err := m.Set.parts[i].Seg.SessionName(n)
			names[string(name)] = true
			return err
		})
		if err != nil {
			return err
		}
	}
	for name := range names {
		for i, p := range m.Set.parts {
			n, ok, err := p.Seg.FindSession(name)
			if err != nil {
				return err
			}
			if ok {
				m.parts[i].sessions = m.parts[i].sessions.With(n, p.Seg.Sessions)
			}
		}
	}
	return nil
}

// visitMembers calls visit for the members of a set, in order, until visit returns an error. It returns that
// error.
func visitMembers(s bitset.Set, visit func(uint32) error) error {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			if err := visit(uint32(64*i + bits.TrailingZeros64(w))); err != nil {
				return err
			}
		}
	}
	return nil
}
