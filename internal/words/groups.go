package words

import (
	"context"
	"math/bits"

	"github.com/varve-db/varve/internal/words/bitset"
	"github.com/varve-db/varve/internal/words/query"
)

// Which rows have a member of an OR group is known only after the search has looked for all words. Until then the
// search keeps the rows of each word of a group (keepRows). Then each group counts as one more condition that a row
// must meet.

// keepRows keeps the set of rows that have the current word, because a group of alternatives contains the word.
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

func (s *search) groups(list []query.Group) error {
	for _, g := range list {
		s.mustHave++
		for _, c := range s.scratch {
			any, err := c.oneOf(s.ctx, g)
			if err != nil {
				return err
			}
			for i, rows := range any {
				for ; rows != 0; rows &= rows - 1 {
					c.has(uint32(64*i + bits.TrailingZeros64(rows)))
				}
			}
		}
	}
	return nil
}

// oneOf returns the rows that satisfy a group: those that have all words of at least one of the group's members.
func (c *scratch) oneOf(ctx context.Context, g query.Group) (any bitset.Set, err error) {
	for _, m := range g {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		all := c.either[m.Words[0]]
		for _, w := range m.Words[1:] {
			if all = intersect(all, c.either[w]); all == nil {
				break
			}
		}
		for i, rows := range all {
			if any == nil {
				any = bitset.New(len(c.score))
			}
			any[i] |= rows
		}
	}
	return any, nil
}

// intersect returns the intersection of two sets of rows, or nil if the intersection is empty.
func intersect(a, b bitset.Set) bitset.Set {
	if a == nil || b == nil {
		return nil
	}
	out, some := make(bitset.Set, len(a)), uint64(0)
	for i := range out {
		out[i] = a[i] & b[i]
		some |= out[i]
	}
	if some == 0 {
		return nil
	}
	return out
}

// has counts one more condition that the row meets. A hit must meet all conditions of the query.
func (c *scratch) has(row uint32) {
	if c.must == nil {
		c.must = make([]uint16, len(c.score))
	}
	c.must[row]++
}
