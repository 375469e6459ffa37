package words

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/varve-db/varve/internal/words/build"
)

// The format of a part's state in a file:
//
//	8 bytes  "varvewst"
//	uvarint  ID of the part
//	uint64   Sum of its segment, little-endian
//	uvarint  number of dead rows, then for each uvarint row − previous row (−1 before the first)
//	uvarint  sum of their lengths
//	uvarint  number of rows with links, then for each uvarint row − previous row, and uvarint sides, a set of
//	         bits: 1 the link overrides before, 2 no row is before, 4 it overrides behind, 8 no row is behind;
//	         for each side with a neighbour uvarint part, uvarint row
//	uint64   xxhash64 of all before
const stateMagic = "varvewst"

// State returns the encoded state of the part. It returns nil if the part has no dead rows and no links, like a new
// segment.
func (p *Part) State() []byte {
	if p.deaths == 0 && len(p.links) == 0 {
		return nil
	}
	b := append([]byte(nil), stateMagic...)
	b = binary.AppendUvarint(b, p.ID)
	b = binary.LittleEndian.AppendUint64(b, p.Seg.Sum())
	b = binary.AppendUvarint(b, uint64(p.deaths))
	last := int64(-1)
	for r := range uint32(p.Seg.Rows) {
		if p.dead.Has(r) {
			b = binary.AppendUvarint(b, uint64(int64(r)-last))
			last = int64(r)
		}
	}
	b = binary.AppendUvarint(b, p.lost)
	b = binary.AppendUvarint(b, uint64(len(p.links)))
	last = -1
	for _, r := range slices.Sorted(maps.Keys(p.links)) {
		b = binary.AppendUvarint(b, uint64(int64(r)-last))
		last = int64(r)
		l, sides := p.links[r], uint64(0)
		if l.hasBefore {
			sides |= 1
		}
		if l.noBefore {
			sides |= 2
		}
		if l.hasBehind {
			sides |= 4
		}
		if l.noBehind {
			sides |= 8
		}
		b = binary.AppendUvarint(b, sides)
		if sides&3 == 1 {
			b = binary.AppendUvarint(binary.AppendUvarint(b, l.before.Part), uint64(l.before.Row))
		}
		if sides&12 == 4 {
			b = binary.AppendUvarint(binary.AppendUvarint(b, l.behind.Part), uint64(l.behind.Row))
		}
	}
	return binary.LittleEndian.AppendUint64(b, build.SumOf(b, 0))
}

// stateReader decodes a state that Part.State has encoded. bad is set when the data is invalid.
type stateReader struct {
	b   []byte
	bad bool
}

func (s *stateReader) uvarint() uint64 {
	v, n := binary.Uvarint(s.b)
	if n <= 0 {
		s.bad, s.b = true, nil
		return 0
	}
	s.b = s.b[n:]
	return v
}

// rows decodes n row numbers in ascending order, and calls visit for each of them. The parameter rows is the number of
// rows of the segment. If a row number is not less than that, rows sets s.bad and stops.
func (s *stateReader) rows(n uint64, rows int, visit func(r uint32)) {
	last := int64(-1)
	for ; n > 0 && !s.bad; n-- {
		d := s.uvarint()
		if d == 0 || d > uint64(rows) || last+int64(d) >= int64(rows) {
			s.bad = true
			return
		}
		last += int64(d)
		visit(uint32(last))
	}
}

func (s *stateReader) ref() Ref {
	r := Ref{Part: s.uvarint()}
	row := s.uvarint()
	r.Row = uint32(row)
	s.bad = s.bad || row > 1<<31
	return r
}

// ReadState returns the part with the given id, from its segment and its encoded state b. If b is nil, the part has no
// dead rows and no links. Errors are errs.ErrCorrupt.
func ReadState(id uint64, seg *Segment, b []byte) (*Part, error) {
	p := &Part{ID: id, Seg: seg, laid: new(layoutOnce)}
	if b == nil {
		return p, nil
	}
	if len(b) < len(stateMagic)+8 || string(b[:len(stateMagic)]) != stateMagic ||
		build.SumOf(b[:len(b)-8], 0) != binary.LittleEndian.Uint64(b[len(b)-8:]) {
		return nil, broken("checksum mismatch of the state of part %d", id)
	}
	s := &stateReader{b: b[len(stateMagic) : len(b)-8]}
	if s.uvarint() != id || len(s.b) < 8 || binary.LittleEndian.Uint64(s.b) != seg.Sum() {
		return nil, broken("the state of part %d belongs to another segment", id)
	}
	s.b = s.b[8:]
	n := s.uvarint()
	if n > uint64(seg.Rows) {
		return nil, broken("part %d has %d dead rows but only %d rows", id, n, seg.Rows)
	}
	p.deaths = int(n)
	s.rows(n, seg.Rows, func(r uint32) { p.dead = p.dead.With(r, seg.Rows) })
	if p.lost = s.uvarint(); p.lost > seg.Total {
		s.bad = true
	}
	n = s.uvarint()
	if n > uint64(seg.Rows) {
		return nil, broken("part %d has %d links but only %d rows", id, n, seg.Rows)
	}
	if n > 0 {
		p.links = make(map[uint32]link, n)
	}
	s.rows(n, seg.Rows, func(r uint32) {
		sides := s.uvarint()
		l := link{hasBefore: sides&1 != 0, noBefore: sides&2 != 0, hasBehind: sides&4 != 0, noBehind: sides&8 != 0}
		if sides > 15 || l.empty() || sides&3 == 2 || sides&12 == 8 {
			s.bad = true
			return
		}
		if sides&3 == 1 {
			l.before = s.ref()
		}
		if sides&12 == 4 {
			l.behind = s.ref()
		}
		p.links[r] = l
		p.special = p.special.With(r, seg.Rows)
	})
	if s.bad || len(s.b) != 0 {
		return nil, broken("invalid state of part %d", id)
	}
	return p, nil
}

// SetOf returns a set with the given parts. If a link in a part does not lead to a live row of the set, the error is
// errs.ErrCorrupt.
func SetOf(parts []*Part) (*Set, error) {
	e := &edit{NewSet()}
	for _, p := range parts {
		if _, twice := e.index[p.ID]; twice {
			return nil, broken("two parts have the id %d", p.ID)
		}
		e.add(p)
	}
	for _, p := range parts {
		for r, l := range p.links {
			for _, to := range []struct {
				is bool
				Ref
			}{{l.hasBefore && !l.noBefore, l.before}, {l.hasBehind && !l.noBehind, l.behind}} {
				if !to.is {
					continue
				}
				i, ok := e.index[to.Part]
				if !ok || int(to.Row) >= parts[i].Seg.Rows || parts[i].dead.Has(to.Row) || p.dead.Has(r) {
					return nil, broken("row %d of part %d has an invalid link to row %d of part %d", r, p.ID,
						to.Row, to.Part)
				}
			}
		}
	}
	return e.Set, nil
}
