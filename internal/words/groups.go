package words

import (
	"math/bits"

	"github.com/varve-db/varve/internal/words/bitset"
	"github.com/varve-db/varve/internal/words/query"
)

// Which rows have one of what OR stands between is known when all words were counted. Until then the rows
// of each such word are kept. Then a group is one more of what a row must have.

// keepRows keeps the rows of the word that is counted.
func (s *search) keepRows() {
	for _, c := range s.scratch {
		var rows bitset.Set
		for _, o := range c.posts {
			rows = rows.With(o.row, len(c.score))
		}
		if c.either == nil {
			c.either = map[int]bitset.Set{}
		}
		c.either[s.at] = rows
	}
}

func (s *search) groups(list []query.Group) {
	for _, g := range list {
		s.mustHave++
		for _, c := range s.scratch {
			for i := range (len(c.score) + 63) / 64 {
				for any := c.oneOf(g, i); any != 0; any &= any - 1 {
					c.has(uint32(64*i + bits.TrailingZeros64(any)))
				}
			}
		}
	}
}

// oneOf are those of 64 rows that have all words of a member.
func (c *scratch) oneOf(g query.Group, i int) (any uint64) {
	for _, m := range g {
		all := ^uint64(0)
		for _, w := range m.Words {
			if rows := c.either[w]; rows == nil {
				all = 0
			} else {
				all &= rows[i]
			}
		}
		any |= all
	}
	return any
}

// has notes that a row has one more of what it must have.
func (c *scratch) has(row uint32) {
	if c.must == nil {
		c.must = make([]uint16, len(c.score))
	}
	c.must[row]++
}
