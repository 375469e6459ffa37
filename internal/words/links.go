package words

import (
	"math/bits"

	"github.com/varve-db/varve/internal/words/bitset"
)

// links has the links of a part for a search, in the order of the rows. Where the documents of a session are in many
// segments, a search follows the links of each row that has a word, and Part.links, a map, would take half of its time.
type links struct {
	rows   bitset.Set // rows that have a link
	before []uint32   // per 64 rows: number of the links of the rows before them
	list   []shortLink
	parts  []uint64 // the parts that links refer to
}

// shortLink is a link whose parts are indexes in links.parts.
type shortLink struct {
	before, behind         uint32 // rows
	beforePart, behindPart uint32
	sides                  uint8 // a set of bits as in the format of a state
}

// The bits of shortLink.sides.
const (
	overBefore = 1 << iota
	nonBefore
	overBehind
	nonBehind
)

// linksShare is the share of the links of a part, 1 in linksShare, from which on a search makes a table of all of them.
const linksShare = 4

// linksOf returns the links of p, which it makes at the first call.
func (o *layoutOnce) linksOf(p *Part) (*links, error) {
	o.linksOnce.Do(func() {
		o.linksErr = errFaulted // remains if the next line panics
		o.links, o.linksErr = linksOf(p)
	})
	return &o.links, o.linksErr
}

// linksOf returns the links of a part.
func linksOf(p *Part) (l links, err error) {
	if len(p.links) == 0 {
		return l, nil
	}
	index := map[uint64]uint32{}
	part := func(id uint64) uint32 {
		i, ok := index[id]
		if !ok {
			i = uint32(len(l.parts))
			index[id], l.parts = i, append(l.parts, id)
		}
		return i
	}
	l.rows, l.before, l.list = p.special, make([]uint32, len(p.special)), make([]shortLink, 0, len(p.links))
	for w, set := range p.special {
		for l.before[w] = uint32(len(l.list)); set != 0; set &= set - 1 {
			k, ok := p.links[uint32(w)<<6|uint32(bits.TrailingZeros64(set))]
			if !ok {
				return l, broken("part %d lacks a link of a row that has one", p.ID)
			}
			to := shortLink{before: k.before.Row, behind: k.behind.Row}
			for _, side := range [...]struct {
				is  bool
				bit uint8
			}{{k.hasBefore, overBefore}, {k.noBefore, nonBefore}, {k.hasBehind, overBehind}, {k.noBehind, nonBehind}} {
				if side.is {
					to.sides |= side.bit
				}
			}
			if k.hasBefore && !k.noBefore {
				to.beforePart = part(k.before.Part)
			}
			if k.hasBehind && !k.noBehind {
				to.behindPart = part(k.behind.Part)
			}
			l.list = append(l.list, to)
		}
	}
	return l, nil
}

// indexes returns the index in v of each part that the links refer to; -1: the set does not have the part.
func (l *links) indexes(v *Set) []int {
	list := make([]int, len(l.parts))
	for i, id := range l.parts {
		list[i] = v.indexOf(id)
	}
	return list
}

// of returns the link of row r on one side: before the row if before is true, otherwise behind it. has reports whether
// the row has a link on that side, and none whether the link records that the row has no neighbour there. Otherwise the
// neighbour is a row of a part; part is an index in l.parts.
func (l *links) of(r uint32, before bool) (part, row uint32, none, has bool) {
	if !l.rows.Has(r) {
		return 0, 0, false, false
	}
	w := r >> 6
	k := &l.list[l.before[w]+uint32(bits.OnesCount64(l.rows[w]&(1<<(r&63)-1)))]
	if before {
		return k.beforePart, k.before, k.sides&nonBefore != 0, k.sides&overBefore != 0
	}
	return k.behindPart, k.behind, k.sides&nonBehind != 0, k.sides&overBehind != 0
}
