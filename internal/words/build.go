package words

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

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
	order.Line
}

// NoTime is the time of a document that cannot be read.
const NoTime = math.MinInt64

// Bytes is what a document takes, about.
func (d *Doc) Bytes() int {
	n := len(d.ID) + len(d.Session) + 100
	for _, t := range d.Texts {
		n += len(t.Text) + 24
	}
	return n
}

// Builder makes a segment of documents, none of which has the id of another.
type Builder struct {
	an    *analyzer.Analyzer
	rows  []row
	terms map[string]*term
	tfs   []byte  // of postings that are not plain
	dirty []*term // those of the document that is added
	size  int
}

// term is where a term is: postings of the documents before, and how often it is in each field of the
// one that is added.
type term struct {
	list  []built
	times [query.Fields]uint32
	now   bool // it is in the one that is added
}

// built is a posting by the number of the document in the order of Add; tf is where its fields are
// in tfs, 0 where the term is once in the content.
type built struct{ doc, tf uint32 }

// NewBuilder makes one for an analyzer.
func NewBuilder(an *analyzer.Analyzer) *Builder {
	return &Builder{an: an, terms: map[string]*term{}, tfs: make([]byte, 1)}
}

// Rows is how many documents were added.
func (b *Builder) Rows() int { return len(b.rows) }

// Size is about how many bytes the builder takes.
func (b *Builder) Size() int { return b.size }

// Add adds a document.
func (b *Builder) Add(d *Doc) {
	r := row{id: d.ID, session: d.Session, lsn: d.LSN, time: d.Time, Line: d.Line}
	for _, t := range d.Texts {
		b.an.Each([]byte(t.Text), func(word []byte, pair bool) {
			if t.Field == query.Content && !pair {
				r.length++
			}
			at := b.terms[string(word)]
			if at == nil {
				at = new(term)
				b.terms[string(word)] = at
				b.size += len(word) + 64 + 4*int(query.Fields)
			}
			if !at.now {
				at.now = true
				b.dirty = append(b.dirty, at)
			}
			if at.times[t.Field] < mostTimes {
				at.times[t.Field]++
			}
		})
	}
	doc := uint32(len(b.rows))
	for _, at := range b.dirty {
		at.list = append(at.list, built{doc, b.encode(&at.times)})
		at.times, at.now = [query.Fields]uint32{}, false
		b.size += 12
	}
	b.dirty = b.dirty[:0]
	b.rows = append(b.rows, r)
	b.size += len(r.id) + len(r.session) + 64
}

func (b *Builder) encode(times *[query.Fields]uint32) uint32 {
	set := query.FieldSet(0)
	for f, n := range times {
		if n > 0 {
			set |= 1 << f
		}
	}
	if set == query.Of(query.Content) && times[query.Content] == 1 {
		return 0
	}
	at := uint32(len(b.tfs))
	b.tfs = binary.AppendUvarint(b.tfs, uint64(set))
	for _, n := range times {
		if n > 0 {
			b.tfs = binary.AppendUvarint(b.tfs, uint64(n))
		}
	}
	return at
}

// tfAt is the encoded fields of a posting.
func (b *Builder) tfAt(at uint32) []byte {
	if at == 0 {
		return nil
	}
	set, n := binary.Uvarint(b.tfs[at:])
	end := int(at) + n
	for ; set != 0; set &= set - 1 {
		_, n := binary.Uvarint(b.tfs[end:])
		end += n
	}
	return b.tfs[at:end:end]
}

// Segment is the segment of what was added; nil where nothing was. The builder is not used again.
func (b *Builder) Segment() ([]byte, error) {
	if len(b.rows) == 0 {
		return nil, nil
	}
	order := make([]uint32, len(b.rows))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(x, y uint32) int { return compareRows(&b.rows[x], &b.rows[y]) })
	rows, rank := make([]row, len(order)), make([]uint32, len(order))
	for r, doc := range order {
		rows[r], rank[doc] = b.rows[doc], uint32(r)
	}
	w := newSegmentWriter(rows, b.an.Print())
	words := make([]string, 0, len(b.terms))
	for word := range b.terms {
		words = append(words, word)
	}
	slices.Sort(words)
	var list []posting
	for _, word := range words {
		list = list[:0]
		for _, p := range b.terms[word].list {
			list = append(list, posting{rank[p.doc], b.tfAt(p.tf)})
		}
		slices.SortFunc(list, func(x, y posting) int { return cmp.Compare(x.row, y.row) })
		w.term([]byte(word), list)
	}
	return w.finish(), nil
}
