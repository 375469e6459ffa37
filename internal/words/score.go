package words

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/varve-db/varve/internal/words/query"

	"github.com/varve-db/varve/internal/words/bitset"
)

// The constants of the score; see the package comment.
const (
	k1           = 1.2
	lengthShare  = 0.4 // the constant b of the package comment
	shareBefore  = 0.5
	shareBehind  = 0.2
	sessionShare = 0.3
	sessionBest  = 3
)

// Hit is a document found by a search.
type Hit struct {
	At    Ref
	ID    string
	LSN   uint64
	Score float64
	Parts Parts
}

// Parts are the summands of a score.
type Parts struct {
	Own     float64 // part of the score that comes from the words of the document and of its neighbours
	Session float64 // part of the score that comes from the document's session, including the document
	Self    bool    // the document itself, not only a neighbour, has a word of the query
}

// Filter selects rows. It does not change scores: statistics always cover all documents.
type Filter struct {
	Session *string // only rows of this session; nil: of all sessions
	// From and Before bound the time in microseconds since 1970: From ≤ time < Before. nil: no bound.
	From, Before *int64
	Prefix       string // prefix that ids must have
	Rarest       int    // number of words of the query to use: the rarest ones; 0: all
	// Only has the allowed rows by part; in a part without a set, all rows are allowed.
	Only map[uint64]bitset.Set
	// Judged reports whether Session, From, Before and Prefix do not apply to the rows of a part, because accept
	// decides about these rows. nil: they apply to every part.
	Judged func(part uint64) bool

	// Each calls do for 0 to n-1, possibly in parallel. If it is nil, the calls are made one after the other.
	Each func(n int, do func(i int) error) error
}

func (f *Filter) judges(part uint64) bool { return f.Judged != nil && f.Judged(part) }

func inTurn(n int, fn func(i int) error) error {
	for i := range n {
		if err := fn(i); err != nil {
			return err
		}
	}
	return nil
}

// scratch is the working memory of a search for one part. It is pooled.
type scratch struct {
	*layout
	links  *links // the links of the part; nil: Part.links is used
	linked []int  // the result of links.indexes
	some   bool   // only the rows in the field in are searched; otherwise all
	in     spans  // whole sessions, and rows without a session

	narrowed bool       // only the rows in the field only can be hits; otherwise all
	only     bitset.Set // as in Filter

	// Per row: the count of the current term in the content, and its weight in other fields. They are filled only if a
	// part has odd rows.
	content, other []int32
	filled         bool

	mark    bitset.Set // the rows in now
	score   []float64  // per row: the score of the terms so far
	touched []uint32   // rows with a score
	// Odd rows that the current term adds to the score of, because the row or a neighbour has the term.
	now    []uint32
	must   []uint16 // per row: number of the required words and groups that it has
	not    bitset.Set
	self   bitset.Set         // rows that have a word of the query themselves
	either map[int]bitset.Set // by word of a group: the rows that have it
	posts  []own              // of the current term: the searched rows that have it, ascending
	spare  []own              // room for byRow
	tally                     // tally of the current term, in all rows
	far    []place            // rows of other parts that the current term adds to the score of
	tops   []top              // per session: the best scores of its documents
	shares []float64          // per session: the amount that it adds to the scores of its documents
}

// own has the count and the weight of a term in the row itself, without what the row's neighbours add.
type own struct {
	row            uint32
	content, other int32
}

var pool sync.Pool

func newScratch(lay *layout, rows, sessions int) *scratch {
	s, _ := pool.Get().(*scratch)
	if s == nil {
		s = &scratch{}
	}
	if cap(s.score) < rows {
		s.content, s.other, s.score, s.mark = make([]int32, rows), make([]int32, rows), make([]float64, rows),
			bitset.New(rows)
	}
	if cap(s.tops) < sessions {
		s.tops, s.shares = make([]top, sessions), make([]float64, sessions)
	}
	s.layout, s.links, s.linked, s.some, s.in = lay, nil, nil, false, nil
	s.content, s.other, s.score, s.mark = s.content[:rows], s.other[:rows], s.score[:rows], s.mark[:(rows+63)/64]
	s.tops, s.shares = s.tops[:sessions], s.shares[:sessions]
	return s
}

// clear resets the data of the current term.
func (s *scratch) clear() {
	if s.filled {
		for _, o := range s.posts {
			s.content[o.row], s.other[o.row] = 0, 0
		}
	}
	for _, r := range s.now {
		s.mark[r>>6] = 0
	}
	s.now, s.filled = s.now[:0], false
}

// release zeroes the scratch and returns it to the pool.
func (s *scratch) release() {
	s.clear()
	for _, r := range s.touched {
		s.score[r] = 0
		s.tops[s.session(r)] = top{}
	}
	s.layout, s.links, s.in, s.only = nil, nil, nil, nil
	if cap(s.score) > 4<<20 { // more than about 64 MiB is not kept
		return
	}
	s.touched, s.posts, s.far = s.touched[:0], s.posts[:0], s.far[:0]
	s.must, s.not, s.self, s.either = nil, nil, nil, nil
	pool.Put(s)
}

// search is the state of one search in a set.
type search struct {
	*Set
	ctx     context.Context
	query   *query.Query
	filter  *Filter
	each    func(n int, do func(i int) error) error
	avg     float64      // mean length of the documents, in words
	docs    float64      // number of documents
	norms   [256]float64 // by length: the result of norm
	counts  []int        // per word that is searched in all fields: the number of documents that have it
	used    map[int]bool // the words that are searched; nil: all
	tallies [][]tally    // per word: its tally in each part; nil if it is not known yet
	// Per word that counts as a name: number of documents that have it in the name field; otherwise 0.
	named []int

	// The following fields belong to one pass over the words of the query.
	scratch  []*scratch
	mustHave uint16
	odd      bool    // some part has odd rows
	at       int     // index of the current word
	looked   int     // number of words that some document has
	nearby   float64 // result of nearbyOf for the last word that was found
	partial  bool    // not all words were searched for yet
	watch    *watch
}

// Search returns the best documents: at most n, the best first, and sorted by id if their scores are equal. They
// pass the filter and have a score of at least minScore. If accept is not nil, Search calls accept for the
// documents in this order, and returns only those for which accept returns true.
func (v *Set) Search(ctx context.Context, q *query.Query, f Filter, n int, minScore float64,
	accept func(Hit) (bool, error)) ([]Hit, error) {
	return v.search(ctx, q, &f, n, minScore, accept, usual)
}

func (v *Set) search(ctx context.Context, q *query.Query, f *Filter, n int, minScore float64,
	accept func(Hit) (bool, error), limits pruning) ([]Hit, error) {
	if docs, _ := v.Docs(); docs == 0 || n <= 0 {
		return nil, nil
	}
	s, err := v.prepare(ctx, q, f)
	if err != nil {
		return nil, err
	}
	defer s.release()
	return s.best(n, minScore, accept, limits)
}

func (s *search) release() {
	for _, c := range s.scratch {
		c.release()
	}
	s.scratch = nil
}

// prepare returns a search for a query. It has counted the documents that have each word, but it has not scored any
// document yet.
func (v *Set) prepare(ctx context.Context, q *query.Query, f *Filter) (*search, error) {
	docs, length := v.Docs()
	s := &search{Set: v, ctx: ctx, query: q, filter: f, docs: float64(docs), each: f.Each}
	if f.Each == nil {
		s.each = inTurn
	}
	s.avg = max(float64(length)/float64(docs), 1/float64(docs))
	for i := range s.norms {
		s.norms[i] = s.norm(uint32(i))
	}
	if err := s.names(); err != nil {
		return nil, err
	}
	s.used = s.rarest(f.Rarest)
	return s, nil
}

// pass returns a copy of s for another pass, in which no word was searched for yet. If rows is not nil, the search
// is limited to these rows; rows has one list for each part. The lists must cover whole sessions: since neighbours
// and best scores come from the same session, the search then needs no other rows, and gives these rows the same
// scores as a search of all rows. The caller must release the search, also if pass fails.
func (s *search) pass(rows []spans) (*search, error) {
	is := *s
	is.scratch, is.mustHave, is.looked, is.nearby, is.watch, is.odd = nil, 0, 0, 0, nil, false
	f := s.filter
	for i, p := range s.parts {
		lay, err := p.layout()
		if err != nil {
			return &is, err
		}
		is.odd = is.odd || lay.anyOdd
		c := newScratch(lay, p.Seg.Rows, p.Seg.Sessions)
		is.scratch = append(is.scratch, c)
		c.only, c.narrowed = f.Only[p.ID]
		if rows != nil {
			c.some, c.in = true, rows[i]
			continue
		}
		if f.Session == nil || f.judges(p.ID) {
			continue
		}
		c.some = true
		n, ok, err := p.Seg.FindSession(*f.Session)
		if err == nil && ok && *f.Session != "" {
			var from, to uint32
			from, to, err = p.Seg.RowsOf(n)
			c.in = spans{{from, to}}
		}
		if err != nil {
			return &is, err
		}
	}
	return &is, nil
}

// score searches for all words of the query: it adds up the scores of the documents, and counts the conditions that
// they meet.
func (s *search) score() error {
	for _, not := range [...]bool{true, false} { // excluded rows first: they add nothing to their neighbours
		for i := range s.query.All {
			if s.query.All[i].Not == not && s.uses(i) {
				if err := s.word(i); err != nil {
					return err
				}
			}
		}
	}
	return s.groups(s.query.Either)
}

// uses reports whether word i of the query is searched.
func (s *search) uses(i int) bool { return s.used == nil || s.used[i] }

// names decides which words of the query count as names of persons. Such a word is searched in the name field only.
// These are the words that some document has in the name field. But if every word that was found is such a word, none
// of them counts as a name. Required words and members of groups never count as names.
func (s *search) names() error {
	q := s.query
	s.named, s.counts, s.tallies = make([]int, len(q.All)), make([]int, len(q.All)), make([][]tally, len(q.All))
	common := false
	for i := range q.All {
		w := &q.All[i]
		if w.Not || w.Prefix || w.Fields != query.AllFields {
			continue
		}
		all, err := s.count(w)
		if err == nil {
			err = s.ctx.Err()
		}
		if err != nil {
			return err
		}
		of := sumOf(all)
		df, names := of.df, of.names
		s.tallies[i] = all
		common = common || df > 0 && names == 0
		if s.counts[i] = df; !w.Must && !w.Either {
			s.named[i] = names
		}
	}
	if !common {
		clear(s.named)
	}
	for i, n := range s.named {
		for k, t := range s.tallies[i] {
			if n > 0 {
				s.tallies[i][k] = t.asName()
			}
		}
	}
	return nil
}

// rarest returns the indexes of the n rarest words of the query; nil means all words. It puts words that only one
// document has last: if the query was made from that document, these words would only find the same document again.
func (s *search) rarest(n int) map[int]bool {
	if n == 0 {
		return nil
	}
	var list []int
	for i, df := range s.counts {
		if df > 0 {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int {
		a, b = s.counts[a], s.counts[b]
		if a == 1 || b == 1 {
			return cmp.Compare(b, a)
		}
		return cmp.Compare(a, b)
	})
	all := map[int]bool{}
	for _, i := range list[:min(n, len(list))] {
		all[i] = true
	}
	return all
}

// count returns the tallies of the live documents that have a word, by part.
func (s *search) count(w *query.Word) ([]tally, error) {
	all := make([]tally, len(s.parts))
	return all, s.each(len(all), func(i int) (err error) { all[i], err = s.parts[i].tally(w.Term); return err })
}

// tally returns the tally of the live rows of p that have a term.
func (p *Part) tally(term string) (t tally, err error) {
	if t, ok := p.laid.tallyOf(term); ok {
		return t, nil
	}
	e, ok, err := p.Seg.lookup([]byte(term))
	if err != nil || !ok {
		return t, err
	}
	lay, err := p.layout()
	if err != nil {
		return t, err
	}
	err = p.having(&e, func(o one) bool {
		content, other := o.times(query.AllFields)
		t.count(lay, o.row, content > 0)
		t.times.add(content, other, lay.length(o.row))
		if o.fields()&query.Of(query.Name) != 0 {
			t.names++
		}
		return true
	})
	if err == nil && e.df >= tallyLeast {
		p.laid.keep(term, t)
	}
	return t, err
}

// word searches for word i of the query. It adds to the scores of the documents what the word contributes. If the word
// is a condition, it also records which rows meet the condition.
func (s *search) word(i int) error {
	s.at = i
	w, names := &s.query.All[i], s.named[i]
	fields := w.Fields
	if names > 0 {
		fields = query.Of(query.Name)
	}
	err := s.each(len(s.scratch), func(i int) error { return s.collect(i, w, fields) })
	if err != nil {
		return err
	}
	if w.Not {
		for _, c := range s.scratch {
			for _, o := range c.posts {
				c.not = c.not.With(o.row, len(c.score))
			}
		}
		return nil
	}
	if s.tallies[i] == nil {
		s.tallies[i] = make([]tally, len(s.scratch))
		for k, c := range s.scratch {
			s.tallies[i][k] = c.tally
		}
	}
	of := sumOf(s.tallies[i])
	if w.Must {
		s.mustHave++
		for _, c := range s.scratch {
			for _, o := range c.posts {
				c.has(o.row)
			}
		}
	}
	if w.Either {
		s.keepRows()
	}
	if w.Quiet {
		return nil
	}
	idf := s.idf(i, of.df)
	if of.df > 0 {
		s.looked++
		s.nearby = s.nearbyOf(of)
	}
	if err := s.each(len(s.scratch), func(i int) error { return s.spread(i, idf) }); err != nil {
		return err
	}
	for _, c := range s.scratch {
		for _, to := range c.far {
			s.scratch[to.part].touch(to.row)
		}
		c.far = c.far[:0]
	}
	err = s.each(len(s.scratch), func(i int) error {
		c := s.scratch[i]
		if err := s.link(i, len(c.now)); err != nil {
			return err
		}
		for _, r := range c.now {
			x, err := s.weight(c, place{i, r})
			if err != nil {
				return err
			}
			s.add(place{i, r}, x, s.own(c, r), idf)
		}
		return s.ctx.Err()
	})
	for _, c := range s.scratch {
		c.clear()
	}
	return err
}

// idf returns the inverse document frequency of word i of the query, with which the word's scores are multiplied. df
// is the number of documents that have the word.
func (s *search) idf(i, df int) float64 {
	d := float64(min(float64(df)*(1+shareBefore+shareBehind), s.docs))
	if s.named[i] > 0 {
		d = float64(df)
	}
	return math.Log(1 + (s.docs-d+0.5)/(d+0.5))
}

// nearbyOf returns a factor for the scores of documents that do not have the word themselves. t is the tally of
// the word. The factor is used if only one word of the query is found. It is the lowest score of a document with
// the word, divided by the limit of what neighbours can add. The factor makes every document with the word rank
// above all documents without the word.
func (s *search) nearbyOf(t tally) float64 {
	least := math.Inf(1)
	if t.longest > 0 {
		least = 1 / s.norm(t.longest)
	}
	if t.elsewhere {
		least = min(least, 1.0/unit)
	}
	return least / (least + k1)
}

// scores returns the score of row r itself and the share of the row's session. If only one word of the query is found,
// rows that do not have the word, and are found only because of their neighbours, rank below all rows that have it.
func (s *search) scores(c *scratch, r uint32) (own, session float64) {
	own, session = c.score[r], c.of(r)
	if s.looked == 1 && !s.partial && !c.self.Has(r) {
		own = float64(own * s.nearby)
		session = float64(sessionShare * own)
	}
	return own, session
}

// spread adds the weight of the current term to the scores of those rows of part i that have the term, and of their
// neighbours, which get a share of the term's count in the content. Postings are ascending, so the weight of a row
// comes from at most three postings in succession: of the row before it, its own, and of the row behind it. Odd rows
// have neighbours elsewhere: spread only marks them. See the package comment for the weight; the sums are made in the
// order there. The conversions prevent fused multiply-add, which would give different bits.
func (s *search) spread(i int, idf float64) error {
	c := s.scratch[i]
	if len(c.posts) == 0 {
		return s.ctx.Err()
	}
	if c.self == nil {
		c.self = bitset.New(len(c.score))
	}
	c.filled = s.odd
	if err := s.link(i, len(c.posts)); err != nil {
		return err
	}
	add := func(r int, x, own float64) {
		if c.odd.Has(uint32(r)) {
			c.touch(uint32(r))
			return
		}
		s.add(place{i, uint32(r)}, x, own, idf)
	}
	joined := func(r int) bool { return r >= 0 && c.joined.Has(uint32(r)) }
	const none = -3 // not next to any row
	before, ofBefore := none, 0.0
	row, of := int(c.posts[0].row), s.inContent(c, c.posts[0].row, c.posts[0].content)
	for k := range c.posts {
		o := &c.posts[k]
		behind, ofBehind := none, 0.0
		if k+1 < len(c.posts) {
			next := &c.posts[k+1]
			behind, ofBehind = int(next.row), s.inContent(c, next.row, next.content)
		}
		c.self.Put(o.row)
		if c.filled {
			c.content[row], c.other[row] = o.content, o.other
		}
		withBefore, withBehind := joined(row-1), joined(row)
		if of > 0 && withBefore && before != row-1 && (before != row-2 || ofBefore == 0 || !joined(row-2)) {
			add(row-1, float64(shareBehind*of), 0)
		}
		own := of
		if o.other != 0 {
			own += float64(float64(o.other) / unit)
		}
		x := own
		if withBefore && before == row-1 {
			x += float64(shareBefore * ofBefore)
		}
		if withBehind && behind == row+1 {
			x += float64(shareBehind * ofBehind)
		}
		add(row, x, own)
		if of > 0 && withBehind && behind != row+1 {
			x := float64(shareBefore * of)
			if behind == row+2 && joined(row+1) {
				x += float64(shareBehind * ofBehind)
			}
			add(row+1, x, 0)
		}
		if of > 0 && c.odd.Has(o.row) {
			if err := s.touchNeighbours(place{i, o.row}); err != nil {
				return err
			}
		}
		before, ofBefore, row, of = row, of, behind, ofBehind
	}
	return s.ctx.Err()
}

// touchNeighbours marks the neighbours of the row at pos as rows to be scored. It marks only neighbours that are
// odd rows. The row at pos must be an odd row that has the current term in its content.
func (s *search) touchNeighbours(pos place) error {
	c := s.scratch[pos.part]
	for _, before := range [...]bool{true, false} {
		to, ok, err := s.next(pos, before)
		if err != nil {
			return err
		}
		switch {
		case !ok || !s.scratch[to.part].odd.Has(to.row):
		case to.part == pos.part:
			c.touch(to.row)
		default:
			c.far = append(c.far, to)
		}
	}
	return nil
}

// add adds the score of the current term to the score of the row at pos. x is the weight of the term, own is the
// weight without the row's neighbours, and idf is the weight of the word.
func (s *search) add(pos place, x, own, idf float64) {
	if x == 0 {
		return // the link exists on one side only
	}
	c := s.scratch[pos.part]
	if c.score[pos.row] == 0 {
		c.touched = append(c.touched, pos.row)
	}
	adds := float64(idf * float64(float64((k1+1)*x)/(x+k1)))
	c.score[pos.row] += adds
	if s.watch != nil {
		s.watch.note(pos, Share{s.at, adds, 1 - own/x})
	}
}

// weight returns the weight of the current term for the row at pos, including the shares of the row's two neighbours:
// w(t,D) of the package comment. The row must be odd: a neighbour of the row is in another part or after dead rows.
func (s *search) weight(c *scratch, pos place) (float64, error) {
	x := s.own(c, pos.row)
	for _, side := range [...]struct {
		before bool
		share  float64
	}{{true, shareBefore}, {false, shareBehind}} {
		to, ok, err := s.next(pos, side.before)
		if err != nil {
			return 0, err
		}
		if ok {
			in := s.scratch[to.part]
			x += float64(side.share * s.inContent(in, to.row, in.content[to.row]))
		}
	}
	return x, nil
}

// own returns the weight of the current term in row r itself, without the shares of the row's neighbours. Row r must
// be odd; see weight.
func (s *search) own(c *scratch, r uint32) float64 {
	x := s.inContent(c, r, c.content[r])
	if other := c.other[r]; other != 0 {
		x += float64(float64(other) / unit)
	}
	return x
}

// inContent returns the count of a term in the content of row r, divided by the norm of the content's length: c(t,D)
// of the package comment. times is the count.
func (s *search) inContent(c *scratch, r uint32, times int32) float64 {
	if times == 0 {
		return 0
	}
	n := c.length(r)
	if int(n) < len(s.norms) {
		return float64(times) / s.norms[n]
	}
	return float64(times) / s.norm(n)
}

// norm returns the number by which inContent divides the count of a term in a content of length words: 1 for a content
// of average length, more for a longer one.
func (s *search) norm(length uint32) float64 {
	return (1 - lengthShare) + float64(lengthShare*float64(float64(length)/s.avg))
}

// next returns the neighbour of the row at pos, as Set.next does. It returns an error if the search is limited to some
// rows and the neighbour is not one of these: then the segment is damaged.
func (s *search) next(pos place, before bool) (place, bool, error) {
	to, ok, err := s.neighbour(pos, before)
	if c := s.scratch[to.part]; ok && c.some && !c.in.has(to.row) {
		return place{}, false, broken("row %d of part %d has a neighbour in another session",
			pos.row, s.parts[pos.part].ID)
	}
	return to, ok, err
}

// link makes the links of part i, before a search that looks for the neighbours of n rows, unless making them would
// take longer than looking in a map.
func (s *search) link(i, n int) error {
	c, p := s.scratch[i], s.parts[i]
	if c.links != nil || len(p.links) == 0 || n < len(p.links)/linksShare {
		return nil
	}
	l, err := p.laid.linksOf(p)
	if err == nil {
		c.links, c.linked = l, l.indexes(s.Set)
	}
	return err
}

// neighbour returns the same as Set.next.
func (s *search) neighbour(pos place, before bool) (place, bool, error) {
	c, p := s.scratch[pos.part], s.parts[pos.part]
	if c.links == nil {
		return s.Set.next(pos, before)
	}
	part, row, none, has := c.links.of(pos.row, before)
	if !has {
		r, ok, err := p.adjoins(pos.row, before)
		return place{pos.part, r}, ok, err
	}
	if none {
		return place{}, false, nil
	}
	return s.linked(c.linked[part], Ref{Part: c.links.parts[part], Row: row})
}

func (s *scratch) touch(r uint32) {
	if !s.mark.Has(r) {
		s.mark.Put(r)
		s.now = append(s.now, r)
	}
}
