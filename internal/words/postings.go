package words

import (
	"encoding/binary"
	"math/bits"

	"github.com/varve-db/varve/internal/words/build"
	"github.com/varve-db/varve/internal/words/query"
)

// postings iterates over the postings of a term.
type postings struct {
	s    *Segment
	at   int
	end  int
	row  int64
	left int   // number of postings that were neither read nor skipped yet
	from int64 // groups that end before this row are skipped

	groupLeft int
	groupEnd  int
	bits      bool  // the current group is a bitmap
	bitsFrom  int64 // first row of the bitmap
	last      int64 // last row of the current group
}

// posts returns an iterator over the postings of a term, after verifying their checksums.
func (s *Segment) posts(e *entry) (postings, error) {
	p := postings{s: s, at: e.from, end: e.to, row: -1, left: e.df, last: -1}
	return p, s.check(e.from, e.to)
}

func (p *postings) bad() error { return broken("invalid postings at byte %d", p.at) }

// one is a posting: it records that a row has a term. tf has the encoded counts per field; nil means that the term
// occurs once, in the content.
type one struct {
	row uint32
	tf  []byte
}

// next returns the next posting; ok is false after the last one.
func (p *postings) next() (o one, ok bool, err error) {
	if p.left == 0 {
		return one{}, false, nil
	}
	b := p.s.b
	for p.groupLeft == 0 {
		v, n := binary.Uvarint(b[p.at:p.end])
		size, m := uint64(0), 0
		if n > 0 {
			size, m = binary.Uvarint(b[p.at+n : p.end])
		}
		if n <= 0 || m <= 0 || v == 0 || v > uint64(p.s.Rows) {
			return one{}, false, p.bad()
		}
		if p.bits = size == 0 && p.s.Format > build.Sparse; p.bits {
			size, p.bitsFrom = (v+7)/8, p.last+1
		}
		if size > uint64(p.end-p.at-n-m) {
			return one{}, false, p.bad()
		}
		p.at += n + m
		p.last += int64(v)
		p.groupLeft, p.groupEnd = min(groupLen, p.left), p.at+int(size)
		if p.last < p.from {
			p.row, p.at, p.left, p.groupLeft = p.last, p.groupEnd, p.left-p.groupLeft, 0
			if p.left == 0 {
				return one{}, false, nil
			}
		}
	}
	if p.bits {
		return p.nextBit()
	}
	var v uint64
	if p.at < p.groupEnd && b[p.at] < 0x80 {
		v = uint64(b[p.at])
		p.at++
	} else {
		var n int
		if v, n = binary.Uvarint(b[p.at:p.groupEnd]); n <= 0 {
			return one{}, false, p.bad()
		}
		p.at += n
	}
	if v>>1 == 0 || v>>1 > uint64(p.s.Rows) {
		return one{}, false, p.bad()
	}
	if p.row += int64(v >> 1); p.row >= int64(p.s.Rows) {
		return one{}, false, p.bad()
	}
	o.row = uint32(p.row)
	if v&1 == 0 {
		from := p.at
		fields, n := binary.Uvarint(b[p.at:p.groupEnd])
		if n <= 0 || fields == 0 || fields > uint64(query.AllFields) {
			return one{}, false, p.bad()
		}
		p.at += n
		for ; fields != 0; fields &= fields - 1 {
			if _, n := binary.Uvarint(b[p.at:p.groupEnd]); n > 0 {
				p.at += n
			} else {
				return one{}, false, p.bad()
			}
		}
		o.tf = b[from:p.at:p.at]
	}
	p.left--
	if p.groupLeft--; p.groupLeft == 0 && (p.at != p.groupEnd || p.row != p.last) {
		return one{}, false, p.bad()
	}
	return o, true, nil
}

// nextBit is like next, within a group that is a bitmap.
func (p *postings) nextBit() (o one, ok bool, err error) {
	list := p.s.b[p.at:p.groupEnd]
	i := int(max(p.row+1-p.bitsFrom, 0))
	k := i / 8
	for k < len(list) && list[k]>>(i%8) == 0 {
		k++
		i = 8 * k
	}
	if k == len(list) {
		return one{}, false, p.bad()
	}
	p.row = p.bitsFrom + int64(i+bits.TrailingZeros8(list[k]>>(i%8)))
	if p.row > p.last || p.row >= int64(p.s.Rows) {
		return one{}, false, p.bad()
	}
	p.left--
	if p.groupLeft--; p.groupLeft == 0 {
		if p.row != p.last {
			return one{}, false, p.bad()
		}
		p.at = p.groupEnd
	}
	return one{row: uint32(p.row)}, true, nil
}

// fields returns the fields in which the row has the term.
func (o *one) fields() query.FieldSet {
	if o.tf == nil {
		return query.Of(query.Content)
	}
	v, _ := binary.Uvarint(o.tf)
	return query.FieldSet(v)
}

// times returns how often the row has the term in the content, and the sum of the weights of the term in the other
// fields. A field that is not in fieldSet does not count; if the content is not in fieldSet, content is 0.
func (o *one) times(fieldSet query.FieldSet) (content, other int32) {
	if o.tf == nil {
		if fieldSet&query.Of(query.Content) != 0 {
			content = 1
		}
		return content, 0
	}
	if o.tf[0] == 1<<query.Content {
		times, _ := binary.Uvarint(o.tf[1:])
		if fieldSet&query.Of(query.Content) != 0 {
			content = int32(min(times, mostTimes))
		}
		return content, 0
	}
	fields, n := binary.Uvarint(o.tf)
	at := n
	for f := query.Field(0); f < query.Fields; f++ {
		if fields&(1<<f) == 0 {
			continue
		}
		times, n := binary.Uvarint(o.tf[at:])
		at += n
		switch k := int32(min(times, mostTimes)); {
		case fieldSet&query.Of(f) == 0:
		case f == query.Content:
			content = k
		default:
			other += weightOf(f) * k
		}
	}
	return content, other
}
