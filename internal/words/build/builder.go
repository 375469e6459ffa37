package build

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/varve-db/varve/internal/turns"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/order"
	"github.com/varve-db/varve/internal/words/query"
)

// Doc is a document as it is found.
type Doc struct {
	ID      string
	LSN     uint64 // its version
	Session string
	Time    int64 // when it happened, in microseconds since 1970; NoTime: not known
	Texts   []query.Text
	Terms   []byte // of the texts, by Analyse, in the place of them
	order.Line
}

// Compare sorts documents as a segment does.
func (d *Doc) Compare(o *Doc) int {
	x, y := Row{Session: d.Session, Time: d.Time, ID: d.ID}, Row{Session: o.Session, Time: o.Time, ID: o.ID}
	return x.Compare(&y)
}

// NoTime is the time of a document that cannot be read.
const NoTime = math.MinInt64

// Bytes is what a document takes, about.
func (d *Doc) Bytes() int {
	n := len(d.ID) + len(d.Session) + len(d.Terms) + 100
	for _, t := range d.Texts {
		n += len(t.Text) + 24
	}
	return n
}

// Analyse puts the terms of the texts into their place: for each a byte field·2 + pair, a byte its
// length, and its bytes. What a Builder makes of it is the same.
func (d *Doc) Analyse(an *analyzer.Analyzer) {
	d.Terms = make([]byte, 0, d.Bytes())
	d.each(an, func(term []byte, in query.Field, pair bool, _ *analyzer.Term) {
		head := byte(in) << 1
		if pair {
			head |= 1
		}
		d.Terms = append(append(d.Terms, head, byte(len(term))), term...)
	})
	d.Texts = nil
}

// each visits the terms.
func (d *Doc) each(an *analyzer.Analyzer, visit func(term []byte, in query.Field, pair bool, of *analyzer.Term)) {
	for _, t := range d.Texts {
		an.EachTerm([]byte(t.Text), func(term []byte, pair bool, of *analyzer.Term) { visit(term, t.Field, pair, of) })
	}
	for b := d.Terms; len(b) > 0 && d.Texts == nil; {
		end := 2 + int(b[1])
		visit(b[2:end], query.Field(b[0]>>1), b[0]&1 != 0, nil)
		b = b[end:]
	}
}

// Builder makes a segment of documents, none of which has the id of another.
type Builder struct {
	an    *analyzer.Analyzer
	rows  []Row
	terms map[string]*term
	seen  []*analyzer.Term
	slab  []term // of which terms are taken
	size  int
	turns turns.Turns

	now   []*term                // the terms of the document that is added
	times [][query.Fields]uint32 // of those that are in other fields than the content: how often in each
}

// term is where a term is in the documents before, in the order of Add: of each document uvarint
// (document − document before)·2 + plain, and where it is not plain the fields, as a segment has them.
type term struct {
	list    []byte
	last    int32  // the last document
	n       int32  // documents
	content uint32 // how often it is in the content of the document that is added
	other   int32  // where it is in times, behind 0
}

// slabTerms is how many terms are made at a time, at most.
const slabTerms = 512

// NewBuilder makes one for an analyzer.
func NewBuilder(an *analyzer.Analyzer) *Builder {
	return &Builder{an: an, terms: map[string]*term{}}
}

// Rows is how many documents were added.
func (b *Builder) Rows() int { return len(b.rows) }

// Size is about how many bytes the builder takes.
func (b *Builder) Size() int { return b.size }

// Add adds a document.
func (b *Builder) Add(d *Doc) {
	r := Row{ID: d.ID, Session: d.Session, LSN: d.LSN, Time: d.Time, Line: d.Line}
	if n := len(b.rows); n > 0 && b.rows[n-1].Session == r.Session {
		r.Session = b.rows[n-1].Session
	}
	d.each(b.an, func(word []byte, in query.Field, pair bool, of *analyzer.Term) {
		if in == query.Content && !pair {
			r.Length++
		}
		if of != nil && of.Of == b {
			b.count(of.At.(*term), in)
			return
		}
		at := b.term(word)
		if of != nil { // from here on a word need not be looked up twice
			of.Of, of.At = b, at
			b.seen = append(b.seen, of)
		}
		b.count(at, in)
	})
	b.end(r)
	b.turns.Give() // a segment is made beside commits, which should not wait for all of it
}

// term is that of a word.
func (b *Builder) term(word []byte) *term {
	at := b.terms[string(word)]
	if at == nil {
		if len(b.slab) == 0 {
			b.slab = make([]term, min(slabTerms, max(16, len(b.terms))))
		}
		at, b.slab = &b.slab[0], b.slab[1:]
		at.last = -1
		b.terms[string(word)] = at
		b.size += len(word) + 96
	}
	return at
}

// count counts a term in a field of the document that is added.
func (b *Builder) count(at *term, in query.Field) {
	if at.content == 0 && at.other == 0 {
		b.now = append(b.now, at)
	}
	n := &at.content
	if in != query.Content {
		if at.other == 0 {
			b.times = append(b.times, [query.Fields]uint32{})
			at.other = int32(len(b.times))
		}
		n = &b.times[at.other-1][in]
	}
	if *n < MostTimes {
		*n++
	}
}

// end ends a document.
func (b *Builder) end(r Row) {
	doc := int32(len(b.rows))
	for _, t := range b.now {
		var times [query.Fields]uint32
		if t.other > 0 {
			times = b.times[t.other-1]
		}
		times[query.Content] = t.content
		was := len(t.list)
		t.list = appendTimes(t.list, uint64(doc-t.last)<<1, &times)
		t.last, t.content, t.other = doc, 0, 0
		t.n++
		b.size += len(t.list) - was
	}
	b.now, b.times = b.now[:0], b.times[:0]
	b.rows = append(b.rows, r)
	b.size += len(r.ID) + 112
}

// appendTimes appends a posting; the lowest bit of delta is free.
func appendTimes(list []byte, delta uint64, times *[query.Fields]uint32) []byte {
	set := query.FieldSet(0)
	for f, n := range times {
		if n > 0 {
			set |= 1 << f
		}
	}
	if set == query.Of(query.Content) && times[query.Content] == 1 {
		return binary.AppendUvarint(list, delta|1)
	}
	list = binary.AppendUvarint(binary.AppendUvarint(list, delta), uint64(set))
	for _, n := range times {
		if n > 0 {
			list = binary.AppendUvarint(list, uint64(n))
		}
	}
	return list
}

// postings are those of a term, as appended, with the row that each document has.
func (t *term) postings(list []Posting, rank []uint32) []Posting {
	doc := int64(-1)
	for at := 0; at < len(t.list); {
		v, n := binary.Uvarint(t.list[at:])
		at += n
		doc += int64(v >> 1)
		p := Posting{Row: rank[doc]}
		if v&1 == 0 {
			from := at
			set, n := binary.Uvarint(t.list[at:])
			at += n
			for ; set != 0; set &= set - 1 {
				_, n := binary.Uvarint(t.list[at:])
				at += n
			}
			p.TF = t.list[from:at:at]
		}
		list = append(list, p)
	}
	return list
}

// Segment is the segment of what was added; nil where nothing was. The builder is not used again.
func (b *Builder) Segment() []byte { return b.Writer().Bytes() }

// Writer has the segment of what was added; nil where nothing was. The builder is not used again.
func (b *Builder) Writer() *Writer {
	for _, of := range b.seen { // the analyzer stays
		of.Of, of.At = nil, nil
	}
	b.seen = nil
	if len(b.rows) == 0 {
		return nil
	}
	order := make([]uint32, len(b.rows))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(x, y uint32) int { return b.rows[x].Compare(&b.rows[y]) })
	rank := make([]uint32, len(order))
	w := NewWriter(len(b.rows), b.an.Print())
	for r, doc := range order {
		rank[doc] = uint32(r)
		w.Row(&b.rows[doc])
	}
	b.rows = nil
	words := make([]string, 0, len(b.terms))
	for word := range b.terms {
		words = append(words, word)
	}
	slices.Sort(words)
	var list []Posting
	for _, word := range words {
		at := b.terms[word]
		list = at.postings(slices.Grow(list[:0], int(at.n)), rank)
		slices.SortFunc(list, func(x, y Posting) int { return cmp.Compare(x.Row, y.Row) })
		w.Term([]byte(word), list)
		at.list = nil // the writer has it
	}
	return w
}
