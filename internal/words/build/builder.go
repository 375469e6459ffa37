package build

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/order"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/internal/yield"
)

// Doc is a document to be indexed.
type Doc struct {
	ID      string
	LSN     uint64 // version of the document
	Session string
	Time    int64 // time at which it happened, in microseconds since 1970; NoTime: unknown
	Texts   []query.Text
	Terms   []byte // the terms of Texts, made by Analyse, which replace Texts
	order.Line
}

// Compare compares documents by the order of rows in a segment.
func (d *Doc) Compare(o *Doc) int {
	x, y := Row{Session: d.Session, Time: d.Time, ID: d.ID}, Row{Session: o.Session, Time: o.Time, ID: o.ID}
	return x.Compare(&y)
}

// NoTime is the value of Doc.Time for a document whose time is unknown, because the document cannot be read.
const NoTime = math.MinInt64

// Bytes returns the approximate size of a document in memory, in bytes.
func (d *Doc) Bytes() int {
	n := len(d.ID) + len(d.Session) + len(d.Terms) + 100
	for _, t := range d.Texts {
		n += len(t.Text) + 24
	}
	return n
}

// Analyse replaces Texts by Terms. Terms has for each term one byte with the field, shifted left by 1, whose lowest bit
// is 1 if the term is quiet (see Analyzer.Each); one byte with the length of the term; and the term. From Terms,
// Builder.Add adds the same terms as from Texts.
func (d *Doc) Analyse(an *analyzer.Analyzer) {
	d.Terms = make([]byte, 0, d.Bytes())
	for _, t := range d.Texts {
		an.Each([]byte(t.Text), func(term []byte, quiet bool) {
			head := byte(t.Field) << 1
			if quiet {
				head |= 1
			}
			d.Terms = append(append(d.Terms, head, byte(len(term))), term...)
		})
	}
	d.Texts = nil
}

// Builder makes segments of documents, one segment after the other.
type Builder struct {
	an    *analyzer.Analyzer
	rows  []Row
	words vocabulary
	used  []int32 // numbers, in the vocabulary, of the terms that the added documents have
	size  int
	turns yield.Turns

	field query.Field            // field of the text that is being read
	now   []*term                // terms of the document that is being added
	times [][query.Fields]uint32 // counts per field, for terms of that document in other fields than the content
	many  uint32                 // number of words in the content of that document
}

// mostKept is the maximum number of words that a builder keeps from one segment to the next. mostHeld is the maximum
// capacity, in terms of one document, of the slices that it keeps.
const (
	mostKept = 1 << 16
	mostHeld = 1 << 12
)

// NewBuilder returns a builder for an analyzer.
func NewBuilder(an *analyzer.Analyzer) *Builder {
	return &Builder{an: an, words: newVocabulary()}
}

// Analyzer returns the analyzer of the builder.
func (b *Builder) Analyzer() *analyzer.Analyzer { return b.an }

// Rows returns the number of documents added to the current segment.
func (b *Builder) Rows() int { return len(b.rows) }

// Size returns the approximate size in memory of the added documents, in bytes.
func (b *Builder) Size() int { return b.size }

// Add adds a document. No other document of the segment may have the same id.
func (b *Builder) Add(d *Doc) {
	r := Row{ID: d.ID, Session: d.Session, LSN: d.LSN, Time: d.Time, Line: d.Line}
	if n := len(b.rows); n > 0 && b.rows[n-1].Session == r.Session {
		r.Session = b.rows[n-1].Session
	}
	for _, t := range d.Texts {
		b.field = t.Field
		b.an.Words([]byte(t.Text), b.word, b.term)
	}
	for of := d.Terms; len(of) > 0 && d.Texts == nil; {
		end := 2 + int(of[1])
		b.field = query.Field(of[0] >> 1)
		b.term(of[2:end], of[0]&1 != 0)
		of = of[end:]
	}
	b.end(r)
	b.turns.Give() // segments are built while commits run, and a commit should not wait for a whole segment
}

// word counts an occurrence of the word w in the current field of the document that is being added. It counts the term
// of the word, or nothing if the word is not indexed.
func (b *Builder) word(w []byte) {
	if len(w) > analyzer.MostTerm {
		if w = b.an.Term(w); len(w) > 0 {
			b.term(w, false)
		}
		return
	}
	n := b.words.number(w)
	t := b.words.at(n)
	if t.as == 0 { // the term of the word is looked up once, then remembered
		switch of := b.an.Term(w); {
		case len(of) == 0:
			t.as = dropped
		case bytes.Equal(of, w):
			t.as = 1 + n
		default:
			t.as = 1 + b.words.number(of)
		}
	}
	if t.as > 0 {
		b.count(t.as-1, false, false)
	}
}

// term counts an occurrence of a term in the current field of the document that is being added; see Analyzer.Each for
// quiet.
func (b *Builder) term(word []byte, quiet bool) {
	b.count(b.words.number(word), quiet, analyzer.Once(word, quiet))
}

// count counts an occurrence of a term, given by its number, in the current field of the document that is being added.
// If quiet is true, or the term is a stop word, the occurrence does not add to the length of the content. If once is
// true, or the term is a stop word, the term counts at most once per field.
func (b *Builder) count(number int32, quiet, once bool) {
	at := b.words.at(number)
	if at.content == 0 && at.other == 0 {
		b.now = append(b.now, at)
		if at.n == 0 {
			b.used = append(b.used, number)
			b.size += int(at.size) + 96
		}
	}
	n := &at.content
	if b.field != query.Content {
		if at.other == 0 {
			b.times = append(b.times, [query.Fields]uint32{})
			at.other = int32(len(b.times))
		}
		n = &b.times[at.other-1][b.field]
	} else if !quiet && !at.common {
		b.many++
	}
	if *n < MostTimes && !((once || at.common) && *n > 0) {
		*n++
	}
}

// end completes the document that is being added: it adds r as the document's row, and encodes the document's postings.
func (b *Builder) end(r Row) {
	doc := int32(len(b.rows))
	for _, t := range b.now {
		var times [query.Fields]uint32
		if t.other > 0 {
			times = b.times[t.other-1]
		}
		times[query.Content] = t.content
		if t.n == 0 {
			t.list = t.first[:0]
		}
		was := len(t.list)
		t.list = appendTimes(t.list, uint64(doc-t.last)<<1, &times)
		t.last, t.content, t.other = doc, 0, 0
		t.n++
		b.size += len(t.list) - was
	}
	r.Length = b.many
	b.now, b.times, b.many = b.now[:0], b.times[:0], 0
	b.rows = append(b.rows, r)
	b.size += len(r.ID) + 112
}

// appendTimes appends a posting to list: delta, and the counts of the term per field in times. The lowest bit of delta
// must be 0; appendTimes sets it, and omits the counts, if the term occurs once, in the content.
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

// postings appends the postings of t to list. rank maps the order of Add to rows; the result is not sorted by row.
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

// PollEvery is the number of rows or terms after which a build or a merge checks whether its context has ended.
const PollEvery = 256

// formatOf returns the format of segments with the terms of an analyzer. Programs that know only the first version of
// the terms cannot read bitmaps.
func formatOf(an *analyzer.Analyzer) uint32 {
	if an.Version() == analyzer.FirstTerms {
		return Sparse
	}
	return Format
}

// Segment returns the segment of the added documents, and empties the builder. It returns nil if no documents were
// added.
func (b *Builder) Segment() []byte {
	w, _ := b.Writer(context.Background())
	return w.Bytes()
}

// Writer returns a writer with the segment of the added documents, or nil if no document was added, and empties the
// builder. The builder keeps the words that it knows. When ctx ends, Writer ends with the error of ctx, and the builder
// must not be used any more.
func (b *Builder) Writer(ctx context.Context) (*Writer, error) {
	if len(b.rows) == 0 {
		return nil, nil
	}
	order := make([]uint32, len(b.rows))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(x, y uint32) int { return b.rows[x].Compare(&b.rows[y]) })
	rank := make([]uint32, len(order))
	w := NewWriter(ctx, len(b.rows), b.an.Print(), formatOf(b.an))
	for r, doc := range order {
		rank[doc] = uint32(r)
		w.Row(&b.rows[doc])
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var list []Posting
	for n, t := range b.sorted(w.step) {
		if n%PollEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		list = t.postings(slices.Grow(list[:0], int(t.n)), rank)
		slices.SortFunc(list, func(x, y Posting) int { return cmp.Compare(x.Row, y.Row) })
		w.Term(b.words.bytes(t), list)
		t.list, t.n, t.last = nil, 0, -1 // the writer has it
	}
	b.rows, b.used, b.size = nil, nil, 0
	if b.words.known > mostKept {
		b.words, b.now = newVocabulary(), nil // b.now has pointers into the old vocabulary
	}
	if max(cap(b.now), cap(b.times)) > mostHeld {
		b.now, b.times = nil, nil
	}
	return w, nil
}

// sorted returns the terms of the added documents, sorted by their bytes. It calls step for each term and for each
// comparison.
func (b *Builder) sorted(step func()) []*term {
	type keyed struct {
		head uint64 // the first 8 bytes: enough to compare most terms without a read of the others
		t    *term
	}
	list := make([]keyed, len(b.used))
	for i, n := range b.used {
		step()
		t := b.words.at(n)
		var head [8]byte
		copy(head[:], b.words.bytes(t))
		list[i] = keyed{binary.BigEndian.Uint64(head[:]), t}
	}
	slices.SortFunc(list, func(x, y keyed) int {
		step()
		if c := cmp.Compare(x.head, y.head); c != 0 {
			return c
		}
		return bytes.Compare(b.words.bytes(x.t), b.words.bytes(y.t))
	})
	terms := make([]*term, len(list))
	for i := range list {
		terms[i] = list[i].t
	}
	return terms
}
