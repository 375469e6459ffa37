package words

import (
	"bytes"
	"encoding/binary"
	"sort"

	"github.com/varve-db/varve/internal/words/analyzer"
)

// entry is a term in the dictionary of a segment, with the position of the term's postings.
type entry struct {
	term []byte // bytes of the term, valid until the next read
	df   int    // number of rows that have the term, dead ones included
	from int    // offset in the segment of the term's postings
	to   int
}

// dictionary iterates over the terms of a segment.
type dictionary struct {
	s    *Segment
	next int // number of the next term
	at   int // offset of the next term
	post int // offset of the postings of the next term
	term []byte
}

func (d *dictionary) uvarint() (uint64, error) {
	end := d.s.at[secDictionary+1]
	// A number has at most 10 bytes.
	if err := d.s.check(d.at, min(d.at+binary.MaxVarintLen64, end)); err != nil {
		return 0, err
	}
	v, n := binary.Uvarint(d.s.b[d.at:end])
	if n <= 0 {
		return 0, broken("invalid number in the dictionary at byte %d", d.at)
	}
	d.at += n
	return v, nil
}

// seek moves to the beginning of a block of terms.
func (d *dictionary) seek(block int) error {
	off, err := d.s.column32(secBlockAt, block)
	if err != nil {
		return err
	}
	d.next, d.at, d.term = block*termBlock, d.s.at[secDictionary]+int(off), d.term[:0]
	if d.at >= d.s.at[secDictionary+1] {
		return broken("impossible offset of block %d of the dictionary: %d", block, off)
	}
	return nil
}

// read returns the next term; ok is false after the last one.
func (d *dictionary) read() (e entry, ok bool, err error) {
	if d.next >= d.s.terms {
		return entry{}, false, nil
	}
	if d.next%termBlock == 0 {
		post, err := d.uvarint()
		if err != nil {
			return entry{}, false, err
		}
		if post > uint64(d.s.at[secPostings+1]-d.s.at[secPostings]) {
			return entry{}, false, broken("impossible offset of the postings of term %d: %d", d.next, post)
		}
		d.post, d.term = d.s.at[secPostings]+int(post), d.term[:0]
	}
	var v [2]uint64
	for i := range v {
		if v[i], err = d.uvarint(); err != nil {
			return entry{}, false, err
		}
	}
	end := d.s.at[secDictionary+1]
	if v[0] > uint64(len(d.term)) || v[1] > uint64(end-d.at) || v[0]+v[1] > 4*analyzer.MostTerm {
		return entry{}, false, broken("term %d has an impossible length: %d shared bytes and %d more", d.next,
			v[0], v[1])
	}
	if err := d.s.check(d.at, d.at+int(v[1])); err != nil {
		return entry{}, false, err
	}
	d.term = append(d.term[:v[0]], d.s.b[d.at:d.at+int(v[1])]...)
	d.at += int(v[1])
	for i := range v {
		if v[i], err = d.uvarint(); err != nil {
			return entry{}, false, err
		}
	}
	if v[0] == 0 || v[0] > uint64(d.s.Rows) || v[1] > uint64(d.s.at[secPostings+1]-d.post) {
		return entry{}, false, broken("term %d has impossible sizes: %d postings in %d bytes", d.next, v[0], v[1])
	}
	e = entry{term: d.term, df: int(v[0]), from: d.post, to: d.post + int(v[1])}
	d.post, d.next = e.to, d.next+1
	return e, true, nil
}

// from returns an iterator at the first term that is not less than term.
func (s *Segment) from(term []byte) (*dictionary, error) {
	d := &dictionary{s: s}
	if s.terms == 0 {
		return d, nil
	}
	var err error
	block := sort.Search((s.terms+termBlock-1)/termBlock, func(i int) bool {
		e := d.seek(i)
		var first entry
		if e == nil {
			first, _, e = d.read()
		}
		if e != nil && err == nil {
			err = e
		}
		return e != nil || bytes.Compare(first.term, term) > 0
	})
	if err != nil {
		return nil, err
	}
	if err := d.seek(max(block-1, 0)); err != nil {
		return nil, err
	}
	for {
		was := *d
		was.term = bytes.Clone(d.term)
		e, ok, err := d.read()
		if err != nil {
			return nil, err
		}
		if !ok {
			return d, nil
		}
		if bytes.Compare(e.term, term) >= 0 {
			*d = was
			return d, nil
		}
	}
}

// lookup returns the entry of a term, and reports whether the segment has the term.
func (s *Segment) lookup(term []byte) (entry, bool, error) {
	d, err := s.from(term)
	if err != nil {
		return entry{}, false, err
	}
	e, ok, err := d.read()
	return e, ok && bytes.Equal(e.term, term), err
}
