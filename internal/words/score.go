package words

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"sync"
)

// The figures of the score; see the package comment.
const (
	k1           = 1.2
	lengthShare  = 0.4 // b
	shareBefore  = 0.5
	shareBehind  = 0.2
	sessionShare = 0.3
	sessionBest  = 3
)

// Hit is a document that was found.
type Hit struct {
	At    Ref
	ID    string
	LSN   uint64
	Score float64
	Parts Parts
}

// Parts are what a score is made of.
type Parts struct {
	Own     float64 // of the document and its neighbours
	Session float64 // of its session
}

// Filter chooses rows. Statistics are of all documents, whatever it chooses.
type Filter struct {
	Session *string // of this session, which is not empty
	// From and Before bound the time in microseconds, where they are not nil.
	From, Before *int64
	Prefix       string // of the id
}

// scratch is what a search needs for one part; it is used again.
type scratch struct {
	content []int32   // how often the content of a row has the term that is counted
	other   []int32   // the weight of it in other fields
	mark    bits      // rows in now
	score   []float64 // of the terms so far
	touched []uint32  // rows with a score
	now     []uint32  // rows that the term counts for, by themselves or by a neighbour
	must    []uint16  // how many of the words that must be there a row has
	not     bits
	posts   []own
}

// own is what a row itself has of a term.
type own struct {
	row            uint32
	content, other int32
}

var pool sync.Pool

func newScratch(rows int) *scratch {
	s, _ := pool.Get().(*scratch)
	if s == nil {
		s = &scratch{}
	}
	if cap(s.score) < rows {
		s.content, s.other, s.score, s.mark = make([]int32, rows), make([]int32, rows), make([]float64, rows), make(bits, (rows+63)/64)
	}
	s.content, s.other, s.score, s.mark = s.content[:rows], s.other[:rows], s.score[:rows], s.mark[:(rows+63)/64]
	return s
}

// clear forgets the term that was counted.
func (s *scratch) clear() {
	for _, r := range s.now {
		s.content[r], s.other[r] = 0, 0
		s.mark[r>>6] = 0
	}
	s.now = s.now[:0]
}

// release gives it back, all zero.
func (s *scratch) release() {
	s.clear()
	for _, r := range s.touched {
		s.score[r] = 0
	}
	if cap(s.score) > 4<<20 { // 64 MiB and more are not kept
		return
	}
	s.touched, s.posts, s.must, s.not = s.touched[:0], s.posts[:0], nil, nil
	pool.Put(s)
}

// search is one search in a set.
type search struct {
	*Set
	ctx      context.Context
	scratch  []*scratch
	avg      float64 // length
	docs     float64
	mustHave uint16
	named    []int // of each word that counts as a name, the documents that have it as one; else 0
}

// Search finds the n best documents that score at least least and pass the filter and accept, the
// best first, those of one score by id. accept, which may be nil, is asked in this order.
func (v *Set) Search(ctx context.Context, q *Query, f Filter, n int, least float64, accept func(Hit) (bool, error)) ([]Hit, error) {
	docs, length := v.Docs()
	if docs == 0 || n <= 0 {
		return nil, nil
	}
	s := &search{Set: v, ctx: ctx, docs: float64(docs)}
	s.avg = max(float64(length)/float64(docs), 1/float64(docs))
	for _, p := range v.parts {
		s.scratch = append(s.scratch, newScratch(p.Seg.Rows))
	}
	defer func() {
		for _, c := range s.scratch {
			c.release()
		}
	}()
	if err := s.names(q); err != nil {
		return nil, err
	}
	for i := range q.words {
		if err := s.word(&q.words[i], s.named[i]); err != nil {
			return nil, err
		}
	}
	return s.best(f, n, least, accept)
}

// names finds out which words of the query are names: of documents that have them in the name field.
// Where all that are in a document are names, none is.
func (s *search) names(q *Query) error {
	s.named = make([]int, len(q.words))
	common := false
	for i := range q.words {
		w := &q.words[i]
		if w.not || w.prefix || w.fields != AllFields {
			continue
		}
		df, names, err := s.count(w)
		if err != nil {
			return err
		}
		s.named[i] = names
		common = common || df > 0 && names == 0
	}
	if !common {
		clear(s.named)
	}
	return nil
}

// count is how many live documents have a word, and how many have it in the name field.
func (s *search) count(w *word) (df, names int, err error) {
	for _, p := range s.parts {
		e, ok, err := p.Seg.lookup([]byte(w.term))
		if err != nil {
			return 0, 0, err
		}
		if !ok {
			continue
		}
		err = p.having(&e, func(o one) {
			if df++; o.tf != nil && o.fields()&Of(Name) != 0 {
				names++
			}
		})
		if err != nil {
			return 0, 0, err
		}
	}
	return df, names, nil
}

// word adds the scores of one word of the query. names is how many documents have it as a name, if it
// is to count as one.
func (s *search) word(w *word, names int) error {
	fields := w.fields
	if names > 0 {
		fields = Of(Name)
	}
	df := 0
	for i, c := range s.scratch {
		c.posts = c.posts[:0]
		if err := s.collect(i, w, fields); err != nil {
			return err
		}
		df += len(c.posts)
	}
	if w.not {
		for _, c := range s.scratch {
			for _, o := range c.posts {
				c.not = c.not.with(o.row, len(c.score))
			}
		}
		return nil
	}
	if w.must {
		s.mustHave++
		for _, c := range s.scratch {
			if c.must == nil {
				c.must = make([]uint16, len(c.score))
			}
			for _, o := range c.posts {
				c.must[o.row]++
			}
		}
	}
	d := float64(min(float64(df)*(1+shareBefore+shareBehind), s.docs))
	if names > 0 {
		d = float64(df)
	}
	idf := math.Log(1 + (s.docs-d+0.5)/(d+0.5))
	for i, c := range s.scratch {
		for _, o := range c.posts {
			if err := s.spread(place{i, o.row}, o); err != nil {
				return err
			}
		}
	}
	for i, c := range s.scratch {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		for _, r := range c.now {
			x, err := s.weight(place{i, r})
			if err != nil {
				return err
			}
			if c.score[r] == 0 {
				c.touched = append(c.touched, r)
			}
			c.score[r] += float64(idf * float64(float64((k1+1)*x)/(x+k1)))
		}
	}
	for _, c := range s.scratch {
		c.clear()
	}
	return nil
}

// weight is w of the package comment. The conversions keep a processor from computing two steps in one,
// which would give other bits.
func (s *search) weight(at place) (float64, error) {
	own, err := s.inContent(at)
	if err != nil {
		return 0, err
	}
	x := own + float64(float64(s.scratch[at.part].other[at.row])/unit)
	for _, side := range [...]struct {
		before bool
		share  float64
	}{{true, shareBefore}, {false, shareBehind}} {
		to, ok, err := s.next(at, side.before)
		if err != nil {
			return 0, err
		}
		if !ok || s.scratch[to.part].content[to.row] == 0 {
			continue
		}
		c, err := s.inContent(to)
		if err != nil {
			return 0, err
		}
		x += float64(side.share * c)
	}
	return x, nil
}

// inContent is c of the package comment.
func (s *search) inContent(at place) (float64, error) {
	tf := s.scratch[at.part].content[at.row]
	if tf == 0 {
		return 0, nil
	}
	lengths, err := s.parts[at.part].Seg.section(secLength)
	if err != nil {
		return 0, err
	}
	return float64(tf) / ((1 - lengthShare) + float64(lengthShare*float64(float64(binary.LittleEndian.Uint32(lengths[4*at.row:]))/s.avg))), nil
}

// collect reads the postings of a word in one part: the live rows that have it, counted, and their
// weights.
func (s *search) collect(i int, w *word, fields FieldSet) error {
	p, c := s.parts[i], s.scratch[i]
	take := func(o one) {
		if content, other := o.times(fields); content > 0 || other > 0 {
			c.posts = append(c.posts, own{o.row, content, other})
		}
	}
	if !w.prefix {
		e, ok, err := p.Seg.lookup([]byte(w.term))
		if err != nil || !ok {
			return err
		}
		return p.having(&e, take)
	}
	d, err := p.Seg.from([]byte(w.term))
	if err != nil {
		return err
	}
	for {
		e, ok, err := d.read()
		if err != nil {
			return err
		}
		if !ok || len(e.term) < len(w.term) || string(e.term[:len(w.term)]) != w.term {
			break
		}
		if err := p.having(&e, take); err != nil {
			return err
		}
	}
	// A row that has several of the terms counts once.
	slices.SortFunc(c.posts, func(a, b own) int { return cmp.Compare(a.row, b.row) })
	out := c.posts[:0]
	for _, o := range c.posts {
		if n := len(out); n > 0 && out[n-1].row == o.row {
			out[n-1].content = min(out[n-1].content+o.content, 1<<28)
			out[n-1].other = min(out[n-1].other+o.other, 1<<28)
			continue
		}
		out = append(out, o)
	}
	c.posts = out
	return nil
}

// having visits the live rows that have a term.
func (p *Part) having(e *entry, visit func(one)) error {
	posts, err := p.Seg.posts(e)
	if err != nil {
		return err
	}
	for {
		o, ok, err := posts.next()
		if err != nil || !ok {
			return err
		}
		if !p.dead.has(o.row) {
			visit(o)
		}
	}
}

// spread notes what a row has of a term, and that its neighbours have a share of what is in its content.
func (s *search) spread(at place, o own) error {
	s.touch(at)
	c := s.scratch[at.part]
	c.content[at.row], c.other[at.row] = o.content, o.other
	if o.content == 0 {
		return nil
	}
	for _, before := range [...]bool{true, false} {
		to, ok, err := s.next(at, before)
		if err != nil {
			return err
		}
		if ok {
			s.touch(to)
		}
	}
	return nil
}

func (s *search) touch(at place) {
	c := s.scratch[at.part]
	if !c.mark.has(at.row) {
		c.mark = c.mark.with(at.row, len(c.score))
		c.now = append(c.now, at.row)
	}
}
