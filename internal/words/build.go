package words

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/query"
)

// Doc is a document as it is found.
type Doc struct {
	ID      string
	LSN     uint64 // its version
	Session string
	Time    int64 // when it happened, in microseconds since 1970; NoTime: not known
	Texts   []query.Text
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
	terms map[string]*[]built
	tfs   []byte   // of postings that are not plain
	dirty []string // terms of the document that is added
	now   map[string]*[query.Fields]uint32
	free  []*[query.Fields]uint32
	size  int
}

// built is a posting by the number of the document in the order of Add; tf is where its fields are
// in tfs, 0 where the term is once in the content.
type built struct{ doc, tf uint32 }

// NewBuilder makes one for an analyzer.
func NewBuilder(an *analyzer.Analyzer) *Builder {
	return &Builder{an: an, terms: map[string]*[]built{}, tfs: make([]byte, 1), now: map[string]*[query.Fields]uint32{}}
}

// Rows is how many documents were added.
func (b *Builder) Rows() int { return len(b.rows) }

// Size is about how many bytes the builder takes.
func (b *Builder) Size() int { return b.size }

// Add adds a document.
func (b *Builder) Add(d *Doc) {
	r := row{id: d.ID, session: d.Session, lsn: d.LSN, time: d.Time}
	for _, t := range d.Texts {
		b.an.Each([]byte(t.Text), func(term []byte, pair bool) {
			if t.Field == query.Content && !pair {
				r.length++
			}
			times := b.now[string(term)]
			if times == nil {
				times = b.zero()
				name := string(term)
				b.now[name] = times
				b.dirty = append(b.dirty, name)
			}
			if times[t.Field] < mostTimes {
				times[t.Field]++
			}
		})
	}
	doc := uint32(len(b.rows))
	for _, term := range b.dirty {
		list := b.terms[term]
		if list == nil {
			list = new([]built)
			b.terms[term] = list
			b.size += len(term) + 64
		}
		times := b.now[term]
		*list = append(*list, built{doc, b.encode(times)})
		*times = [query.Fields]uint32{}
		b.free = append(b.free, times)
		b.size += 12
	}
	clear(b.now)
	b.dirty = b.dirty[:0]
	b.rows = append(b.rows, r)
	b.size += len(r.id) + len(r.session) + 64
}

func (b *Builder) zero() *[query.Fields]uint32 {
	if n := len(b.free); n > 0 {
		z := b.free[n-1]
		b.free = b.free[:n-1]
		return z
	}
	return new([query.Fields]uint32)
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
	terms := make([]string, 0, len(b.terms))
	for term := range b.terms {
		terms = append(terms, term)
	}
	slices.Sort(terms)
	var list []posting
	for _, term := range terms {
		list = list[:0]
		for _, p := range *b.terms[term] {
			list = append(list, posting{rank[p.doc], b.tfAt(p.tf)})
		}
		slices.SortFunc(list, func(x, y posting) int { return cmp.Compare(x.row, y.row) })
		w.term([]byte(term), list)
	}
	return w.finish(), nil
}
