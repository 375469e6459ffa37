package words

import (
	"fmt"
	"maps"
	"slices"

	"github.com/varve-db/varve/internal/words/bitset"
)

// Ref identifies a row by its part and its row number.
type Ref struct {
	Part uint64
	Row  uint32
}

// link names the neighbours of a row in its session, if they are not the adjacent live rows of the same segment. Each
// side is independent. If hasBefore is set, the link applies to the neighbour before the row: if noBefore is set, the
// row has no such neighbour, and otherwise the neighbour is the row before. hasBehind, noBehind and behind apply to the
// neighbour after the row in the same way.
type link struct {
	before, behind       Ref
	hasBefore, hasBehind bool
	noBefore, noBehind   bool
}

func (l *link) empty() bool { return !l.hasBefore && !l.hasBehind }

// Part is a segment in a Set, with the state of the segment's rows.
type Part struct {
	ID   uint64
	Seg  *Segment
	Name string // name of the segment's file; "" if it is not written to a file
	Live string // name of the file with this state of the rows; "" if this state is not written to a file

	dead    bitset.Set
	deaths  int
	lost    uint64 // sum of the lengths of dead rows in words
	links   map[uint32]link
	special bitset.Set // rows that have a link
	own     bool       // dead, links and special belong to this set only, so they may be changed
	laid    *layoutOnce
}

// Rows returns the number of live rows.
func (p *Part) Rows() int { return p.Seg.Rows - p.deaths }

// Dead reports whether row r is dead.
func (p *Part) Dead(r uint32) bool { return p.dead.Has(r) }

// Kept returns the cache in which package rows keeps what it computes from the live rows of this part.
func (p *Part) Kept() *Kept { return &p.laid.kept }

// Deaths returns the number of dead rows of the part.
func (p *Part) Deaths() int { return p.deaths }

// Set is an immutable list of segments with the state of their rows. Changes (With, Merged) return a new set.
type Set struct {
	parts []*Part
	index map[uint64]int // index of a part in the set, by its ID
}

// NewSet returns a set without segments.
func NewSet() *Set { return &Set{index: map[uint64]int{}} }

// Parts returns the parts of the set, from the first added to the last.
func (v *Set) Parts() []*Part { return v.parts }

// Docs returns the number of live documents and the sum of their lengths in words.
func (v *Set) Docs() (n int64, length uint64) {
	for _, p := range v.parts {
		n += int64(p.Rows())
		length += p.Seg.Total - p.lost
	}
	return n, length
}

// edit builds a new set from an existing one. It copies a part before it changes the part.
type edit struct{ *Set }

func (v *Set) edit() *edit {
	c := &Set{parts: make([]*Part, len(v.parts)), index: maps.Clone(v.index)}
	for i, p := range v.parts {
		q := *p
		q.own = false
		c.parts[i] = &q
	}
	return &edit{c}
}

// owned returns part i for changing. If the part shares its state with another set, owned first replaces the state by
// a copy.
func (e *edit) owned(i int) *Part {
	p := e.parts[i]
	if !p.own {
		p.dead, p.special, p.links, p.own = slices.Clone(p.dead), slices.Clone(p.special), maps.Clone(p.links), true
	}
	p.Live, p.laid = "", new(layoutOnce)
	return p
}

func (e *edit) add(p *Part) {
	e.index[p.ID] = len(e.parts)
	e.parts = append(e.parts, p)
}

// Find returns the live row of the document with this id, and the document's version. ok is false if the set has no
// live row with this id.
func (v *Set) Find(id string) (ref Ref, lsn uint64, ok bool, err error) {
	i, r, ok, err := v.find(id)
	if err != nil || !ok {
		return Ref{}, 0, false, err
	}
	lsn, err = v.parts[i].Seg.LSN(r)
	return Ref{v.parts[i].ID, r}, lsn, err == nil, err
}

func (v *Set) find(id string) (i int, r uint32, ok bool, err error) {
	for i := len(v.parts) - 1; i >= 0; i-- {
		p := v.parts[i]
		r, ok, err := p.Seg.find(id)
		if err != nil {
			return 0, 0, false, err
		}
		if ok && !p.dead.Has(r) {
			return i, r, true, nil
		}
	}
	return 0, 0, false, nil
}

// place is a row number and the index of its part.
type place struct {
	part int
	row  uint32
}

// next returns the neighbour of the row at pos in its session: the next live row, or the previous one if before is
// true. The bool is false if there is no such row.
func (v *Set) next(pos place, before bool) (place, bool, error) {
	p := v.parts[pos.part]
	if p.special.Has(pos.row) {
		l := p.links[pos.row]
		has, none, to := l.hasBehind, l.noBehind, l.behind
		if before {
			has, none, to = l.hasBefore, l.noBefore, l.before
		}
		if has {
			if none {
				return place{}, false, nil
			}
			return v.linked(v.indexOf(to.Part), to)
		}
	}
	r, ok, err := p.adjoins(pos.row, before)
	return place{pos.part, r}, ok, err
}

// indexOf returns the index in v of the part with this ID; -1 if v does not have the part.
func (v *Set) indexOf(id uint64) int {
	if i, ok := v.index[id]; ok {
		return i
	}
	return -1
}

// linked returns the place of the row to which a link refers; i is the result of indexOf for the part of the row. If v
// does not have the row, the link is damaged.
func (v *Set) linked(i int, to Ref) (place, bool, error) {
	if i < 0 || int(to.Row) >= v.parts[i].Seg.Rows {
		return place{}, false, broken("a row links to row %d of part %d, but there is no such row", to.Row, to.Part)
	}
	return place{i, to.Row}, true, nil
}

// adjoins returns the live row that follows row r in the same segment, or the one that precedes row r if before is
// true. The bool is false if there is no such row, if it belongs to another session, or if r belongs to no session.
func (p *Part) adjoins(r uint32, before bool) (uint32, bool, error) {
	session, err := p.Seg.Session(r)
	if err != nil {
		return 0, false, err
	}
	if nameless, err := p.nameless(session); err != nil || nameless {
		return 0, false, err
	}
	if before {
		r, ok := p.dead.LiveBefore(r)
		if !ok {
			return 0, false, nil
		}
		n, err := p.Seg.Session(r)
		return r, err == nil && n == session, err
	}
	if r = p.dead.LiveBehind(r); int(r) >= p.Seg.Rows {
		return 0, false, nil
	}
	n, err := p.Seg.Session(r)
	return r, err == nil && n == session, err
}

// nameless reports whether the session with this number has the empty name. Documents without a session are in the
// rows of this session; these rows have no neighbours.
func (p *Part) nameless(session uint32) (bool, error) {
	if session != 0 {
		return false, nil
	}
	name, err := p.Seg.SessionName(0)
	return len(name) == 0, err
}

// kill marks the row at pos as dead. It makes the neighbour before the row and the neighbour after the row
// neighbours of each other.
func (e *edit) kill(pos place) error {
	before, hasBefore, err := e.next(pos, true)
	if err != nil {
		return err
	}
	behind, hasBehind, err := e.next(pos, false)
	if err != nil {
		return err
	}
	length, err := e.parts[pos.part].Seg.column32(secLength, int(pos.row))
	if err != nil {
		return err
	}
	p := e.owned(pos.part)
	p.dead = p.dead.With(pos.row, p.Seg.Rows)
	p.deaths++
	p.lost += uint64(length)
	if p.special.Has(pos.row) {
		delete(p.links, pos.row)
		p.special[pos.row>>6] &^= 1 << (pos.row & 63)
	}
	return e.join(before, hasBefore, behind, hasBehind)
}

// join makes a and b neighbours: a is the row before b. If hasA is false, b becomes the first row of its session. If
// hasB is false, a becomes the last row of its session.
func (e *edit) join(a place, hasA bool, b place, hasB bool) error {
	if hasA {
		if err := e.point(a, false, b, hasB); err != nil {
			return err
		}
	}
	if hasB {
		return e.point(b, true, a, hasA)
	}
	return nil
}

// point sets the neighbour of the row at pos in its session: the row after it, or the row before it if before is true.
// If exists is false, the row has no neighbour on this side, and point ignores the parameter neighbour. point stores a
// link only if adjoins does not return the same result.
func (e *edit) point(pos place, before bool, neighbour place, exists bool) error {
	r, ok, err := e.parts[pos.part].adjoins(pos.row, before)
	if err != nil {
		return err
	}
	natural := ok == exists && (!exists || neighbour.part == pos.part && neighbour.row == r)
	was := e.parts[pos.part]
	if natural && !was.special.Has(pos.row) {
		return nil
	}
	p := e.owned(pos.part)
	l := p.links[pos.row]
	var ref Ref
	if exists {
		ref = Ref{e.parts[neighbour.part].ID, neighbour.row}
	}
	if before {
		l.before, l.hasBefore, l.noBefore = ref, !natural, !natural && !exists
	} else {
		l.behind, l.hasBehind, l.noBehind = ref, !natural, !natural && !exists
	}
	if l.empty() {
		delete(p.links, pos.row)
		p.special[pos.row>>6] &^= 1 << (pos.row & 63)
		return nil
	}
	if p.links == nil {
		p.links = map[uint32]link{}
	}
	p.links[pos.row] = l
	p.special = p.special.With(pos.row, p.Seg.Rows)
	return nil
}

// findNeighbours returns the neighbours that a row with the given time and id would have in a session: before is the
// last live row that precedes that time and id, behind the first live row that does not. hasBefore and hasBehind
// report whether these rows exist. findNeighbours does not search the part whose index is but.
func (e *edit) findNeighbours(session string, time int64, id string,
	but int) (before place, hasBefore bool, behind place, hasBehind bool, err error) {
	fail := func(err error) (place, bool, place, bool, error) { return place{}, false, place{}, false, err }
	for i, p := range e.parts {
		if i == but {
			continue
		}
		n, ok, err := p.Seg.FindSession(session)
		if err != nil {
			return fail(err)
		}
		if !ok {
			continue
		}
		from, to, err := p.Seg.RowsOf(n)
		if err != nil {
			return fail(err)
		}
		at, err := p.Seg.behind(from, to, time, id)
		if err != nil {
			return fail(err)
		}
		r := at
		if r < to && p.dead.Has(r) {
			r = p.dead.LiveBehind(r)
		}
		if r < to {
			if !hasBehind {
				behind, hasBehind = place{i, r}, true
			} else if less, err := e.less(place{i, r}, behind); err != nil {
				return fail(err)
			} else if less {
				behind = place{i, r}
			}
		}
		if r, ok := p.dead.LiveBefore(at); ok && r >= from {
			if !hasBefore {
				before, hasBefore = place{i, r}, true
			} else if less, err := e.less(before, place{i, r}); err != nil {
				return fail(err)
			} else if less {
				before = place{i, r}
			}
		}
	}
	return before, hasBefore, behind, hasBehind, nil
}

// less reports whether row a precedes row b of the same session, by time and id.
func (v *Set) less(a, b place) (bool, error) {
	s := v.parts[b.part].Seg
	time, err := s.Time(b.row)
	if err != nil {
		return false, err
	}
	id, err := s.ID(b.row)
	if err != nil {
		return false, err
	}
	return v.parts[a.part].Seg.before(a.row, time, string(id))
}

// With returns a set to which the segment seg is added as the part with the given id. The documents in seg replace
// older ones with the same ids. The documents whose ids are in remove are removed. If seg is nil, With only removes.
func (v *Set) With(id uint64, seg *Segment, remove []string) (*Set, error) {
	e := v.edit()
	ids := remove
	if seg != nil && len(e.parts) > 0 {
		ids = slices.Clone(remove)
		for r := range uint32(seg.Rows) {
			b, err := seg.ID(r)
			if err != nil {
				return nil, err
			}
			ids = append(ids, string(b))
		}
	}
	old, err := e.findAll(ids)
	if err != nil {
		return nil, err
	}
	for _, at := range old {
		if at.ok && !e.parts[at.part].dead.Has(at.row) { // the same id may be listed twice
			if err := e.kill(at.place); err != nil {
				return nil, err
			}
		}
	}
	if seg == nil {
		return e.Set, nil
	}
	e.add(&Part{ID: id, Seg: seg, own: true, laid: new(layoutOnce)})
	return e.Set, e.link(len(e.parts) - 1)
}

// link connects the rows of part n, which was just added, with their neighbours in the other parts.
func (e *edit) link(n int) error {
	seg := e.parts[n].Seg
	for s := range uint32(seg.Sessions) {
		b, err := seg.SessionName(s)
		if err != nil {
			return err
		}
		if len(b) == 0 {
			continue
		}
		name, elsewhere := string(b), false
		for i, p := range e.parts {
			if i == n {
				continue
			}
			_, ok, err := p.Seg.FindSession(name)
			if err != nil {
				return err
			}
			if elsewhere = ok; ok {
				break
			}
		}
		if !elsewhere {
			continue
		}
		from, to, err := seg.RowsOf(s)
		if err != nil {
			return err
		}
		for r := from; r < to; {
			last, err := e.insert(n, r, from, to, name)
			if err != nil {
				return err
			}
			r = last + 1
		}
	}
	return nil
}

// insert connects row r of the new part n with its neighbours in the other parts. The rows of part n in the session
// are from ≤ row < to; those before r must be connected already. The rows from r to last have no row of another part
// between them. So insert stores links only for r and last, and returns last.
func (e *edit) insert(n int, r, from, to uint32, session string) (last uint32, err error) {
	seg := e.parts[n].Seg
	time, err := seg.Time(r)
	if err != nil {
		return 0, err
	}
	id, err := seg.ID(r)
	if err != nil {
		return 0, err
	}
	before, hasBefore, behind, hasBehind, err := e.findNeighbours(session, time, string(id), n)
	if err != nil {
		return 0, err
	}
	if r > from { // the previous row of its own segment may be nearer
		own := place{n, r - 1}
		if nearer, err := e.nearer(before, hasBefore, own); err != nil {
			return 0, err
		} else if nearer {
			before, hasBefore = own, true
		}
	}
	if err := e.join(before, hasBefore, place{n, r}, true); err != nil {
		return 0, err
	}
	last = to - 1
	if hasBehind { // binary search for the last row of this part before it
		low, high := r, to
		for high-low > 1 {
			m := low + (high-low)/2
			less, err := e.less(place{n, m}, behind)
			if err != nil {
				return 0, err
			}
			if less {
				low = m
			} else {
				high = m
			}
		}
		last = low
	}
	return last, e.join(place{n, last}, true, behind, hasBehind)
}

func (e *edit) nearer(before place, hasBefore bool, own place) (bool, error) {
	if !hasBefore {
		return true, nil
	}
	return e.less(before, own)
}

func (p *Part) String() string {
	return fmt.Sprintf("part %d: %d rows, %d dead, %d links, %d bytes", p.ID, p.Seg.Rows, p.deaths, len(p.links),
		p.Seg.Size())
}
