package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/view/vectors"
	view "github.com/varve-db/varve/internal/view/words"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/vector"
)

// Search answers queries.
type Search struct {
	engine  *engine.Engine
	vectors *vectors.Vectors
	words   *view.Query
	orders  *view.Orders
}

// New returns the search of a store.
func New(eng *engine.Engine, vs *vectors.Vectors, words *view.Query, orders *view.Orders) *Search {
	return &Search{engine: eng, vectors: vs, words: words, orders: orders}
}

// Query is what is looked for: exactly one of Vector, Like and Text, or Text and Vector.
type Query struct {
	// Vector finds memories by their embeddings, which have its dimension. The
	// score is the cosine, or 1/(1+d²) in a store whose metric is l2.
	Vector []float32
	// Model is the name of what made Vector, if it is known, as Options.EmbedModel has
	// it. Where the store's vectors are by another one it is a *ModelError that names
	// both (ErrModel): of one dimension, the scores would mean nothing.
	Model string
	// Like is the id of a memory: Search finds those whose embeddings are like its
	// own, without itself.
	Like string
	// Text finds memories by words; see package internal/words for what a word is, the grammar
	// (Parse) and the score.
	Text string
	// Share is the weight of Vector where Text is given as well, whose weight is 1; 0 means 0.25.
	Share float64
	// RankFusion, of a query with both, adds 61/(60 + the place) of either side instead of its scores.
	RankFusion bool
	// MaxRareTerms, if more than 0, takes Text without the grammar, and only so many of its words: the
	// rarest.
	MaxRareTerms int

	// Recency and Importance raise the scores of the best 200, by so many times themselves at most: Recency the
	// more the later it happened, half as much a HalfLife ago (30 days when 0); Importance by
	// quickrecal_score, of which 1 is the most that counts.
	Recency    float64
	HalfLife   time.Duration
	Importance float64

	// PerSession, if more than 0, is how many hits of one session there are at most: the best.
	PerSession int

	Explain  bool // Hit.Explanation
	Fragment int  // how many bytes Hit.Fragment has at most; 0: there is none

	// Note, if not nil, is called with each note on how Text was read.
	Note func(note string)

	Limit    int     // how many hits, 10 when 0
	Offset   int     // hits that are left out at the top
	MinScore float64 // hits below it are left out; 0: none is

	// Trim, if not nil, is called with each hit's memory as soon as it is read: what it
	// takes out is not held until Search returns. A memory may be read more than once.
	Trim func(*memstore.Memory)
	// Held, if more than 0, bounds the bytes of the documents of all hits together: the Memory of a hit
	// beyond it, which is marked as Trimmed, has only ID, Version and times. Documents may be as
	// large as max_memory_bytes, each.
	Held int64
}

// Hit is a memory that was found.
type Hit struct {
	ID     string
	Score  float64 // greater is nearer
	Memory memstore.Memory
	// Of a search by words and a vector: what either side gave, from 0 to 1.
	Words, Vector float64

	Trimmed bool // Memory was not kept: see Query.Held

	Explanation *memstore.Explanation
	Fragment    *memstore.Fragment
}

// The limits of a Query.
const (
	defaultHits = 10
	MostHits    = 1_000_000 // Limit and Offset together; their ids lie in memory
	mostVaried  = 10_000    // among how many of the best PerSession looks; Limit and Offset with it
)

// Memories finds memories that pass the filters, the best first, those of one score by id.
func (s *Search) Memories(ctx context.Context, q Query, f engine.Filters) ([]Hit, error) {
	if err := q.validate(); err != nil {
		return nil, err
	}
	if err := s.engine.BeginUse(); err != nil {
		return nil, err
	}
	defer s.engine.EndUse()
	if err := s.engine.CatchUp(ctx); err != nil {
		return nil, err
	}
	n, least := q.Offset+q.limit(), q.MinScore
	if q.boosts() && q.PerSession > 0 {
		n = max(n, window) // so many are ranked in any case
	}
	if least == 0 {
		least = math.Inf(-1)
	}
	told := map[string]bool{}
	var had []Hit // what the last pass found, where another follows it
	var hadUnread error
	for more, again := 0, 0; ; {
		hits, full, gone, unread, err := s.searchOnce(ctx, &q, &f, n+more, least, told)
		// Others of the same sessions kept them out.
		if q.PerSession > 0 && err == nil && full && len(hits) < q.limit() && n+more < mostVaried {
			more = min(4*(n+more), mostVaried) - n
			continue
		}
		// Those that went between the ranking and the reading did.
		if q.PerSession == 0 && err == nil && full && gone > 0 && len(hits) < q.limit() && again < goneTries {
			had, hadUnread = hits, unread.join()
			more, again = max(more, spare(gone)), again+1
			continue
		}
		// Those that turned out to be unreadable kept others out.
		if kept := unread.count(); err == nil && full && kept > more && len(hits) < q.limit() && kept <= MostUnreadable {
			more = kept
			continue
		}
		switch {
		case err != nil && again > 0 && ended(ctx, err) == nil: // what it is like may have gone as well
			return had, hadUnread
		case err != nil:
			return nil, err
		}
		return hits[:min(len(hits), q.limit())], unread.join()
	}
}

// goneTries bounds how often a search begins again since memories expired, were deleted or left its filters
// while it ranked them: then there are fewer hits than asked for.
const goneTries = 2

// spare is how many more are ranked where so many went: as many may go again.
func spare(gone int) int { return 2*gone + 8 }

// searchOnce finds the n best and reads those behind the offset; full says that there
// may be more of them, gone how many were there no more.
func (s *Search) searchOnce(ctx context.Context, q *Query, f *engine.Filters, n int,
	least float64, told map[string]bool) (hits []Hit, full bool, gone int, unread unreadable, err error) {
	var list []found
	var as asked
	if q.boosts() {
		list, err = s.boosted(ctx, q, f, n, least, &unread, &as)
	} else {
		list, err = s.ranked(ctx, q, f, n, least, &unread, &as)
	}
	if err != nil {
		return nil, false, 0, unread, err
	}
	as.tell(q, told)
	full = len(list) == n
	skip, sessions, held := q.Offset, map[string]int{}, int64(0)
	if q.PerSession == 0 {
		list, skip = list[min(skip, len(list)):], 0
	}
	for _, h := range list {
		if q.PerSession > 0 && len(hits) == q.limit() {
			break
		}
		m, size, err := s.sized(ctx, h.ID)
		switch {
		case ended(ctx, err) != nil:
			return nil, false, 0, unread, ended(ctx, err)
		case errors.Is(err, errs.ErrNotFound), err == nil && !f.Still(&m):
			gone++
		case err != nil:
			unread.add(err)
		case q.PerSession > 0 && !q.few(sessions, m.Session()):
		case skip > 0:
			skip--
		default:
			hit := Hit{ID: h.ID, Score: h.Score, Words: h.words, Vector: h.vector}
			if q.Explain {
				hit.Explanation = as.explained(&h, &m)
			}
			if q.Fragment > 0 {
				hit.Fragment = fragmentOf(m.Content, as.query, as.analyzer, q.Fragment)
			}
			if q.Trim != nil {
				q.Trim(&m)
			}
			if hit.Memory = m; q.Held > 0 && size > q.Held-held {
				hit.Trimmed, hit.Memory = true, bare(&m)
			} else {
				held += size
			}
			hits = append(hits, hit)
		}
	}
	return hits, full, gone, unread, nil
}

// ranked finds the n best by what the query has.
func (s *Search) ranked(ctx context.Context, q *Query, f *engine.Filters, n int, least float64, bad *unreadable,
	a *asked) ([]found, error) {
	switch {
	case q.Text != "" && q.Vector != nil:
		return s.both(ctx, q, f, n, least, bad, a)
	case q.Text != "":
		return s.byWords(ctx, q, f, n, least, bad, a)
	case q.Like != "":
		return s.searchLike(ctx, q.Like, f, n, least, bad)
	}
	return s.nearest(ctx, q.Vector, f, n, least, bad, q.Model)
}

// few counts a hit of a session, and says whether it is one of the first. Without a session each stands alone.
func (q *Query) few(seen map[string]int, session string) bool {
	if session == "" {
		return true
	}
	seen[session]++
	return seen[session] <= q.PerSession
}

func (q *Query) limit() int {
	if q.Limit == 0 {
		return defaultHits
	}
	return q.Limit
}

func (q *Query) validate() error {
	bad := func(field, value, why string) error {
		return &errs.FieldError{Field: "query " + field, Value: value, Err: fmt.Errorf("%w: %s", errs.ErrInvalid, why)}
	}
	given := 0
	for _, is := range []bool{q.Vector != nil, q.Like != "", q.Text != ""} {
		if is {
			given++
		}
	}
	both := given == 2 && q.Like == ""
	switch {
	case given != 1 && !both:
		return bad("", "", "requires exactly one of Vector, Like and Text, or Text and Vector")
	case q.Share != 0 && !both:
		return bad("Share", fmt.Sprint(q.Share), "requires both Vector and Text")
	case q.RankFusion && !both:
		return bad("RankFusion", "true", "requires both Vector and Text")
	case !(q.Share >= 0) || math.IsInf(q.Share, 0):
		return bad("Share", fmt.Sprint(q.Share), "must be 0 or a positive number")
	case q.Limit < 0:
		return bad("Limit", fmt.Sprint(q.Limit), "negative")
	case q.Offset < 0:
		return bad("Offset", fmt.Sprint(q.Offset), "negative")
	case q.MaxRareTerms < 0 || q.MaxRareTerms > query.MostWords:
		return &errs.FieldError{Field: "query MaxRareTerms", Value: fmt.Sprint(q.MaxRareTerms),
			Limit: fmt.Sprintf("0 to %d", query.MostWords), Err: errs.ErrInvalid}
	case q.Fragment < 0 || q.Fragment > MostFragment:
		return &errs.FieldError{Field: "query Fragment", Value: fmt.Sprint(q.Fragment),
			Limit: fmt.Sprintf("0 to %d bytes", MostFragment), Err: errs.ErrInvalid}
	case q.PerSession < 0:
		return bad("PerSession", fmt.Sprint(q.PerSession), "negative")
	case q.PerSession > 0 && (q.Limit > mostVaried || q.Offset > mostVaried-q.limit()):
		return &errs.FieldError{Field: "query Limit and Offset with PerSession",
			Value: fmt.Sprintf("%d and %d", q.Limit, q.Offset), Limit: fmt.Sprint(mostVaried), Err: errs.ErrInvalid}
	case q.MaxRareTerms > 0 && q.Text == "":
		return bad("MaxRareTerms", fmt.Sprint(q.MaxRareTerms), "requires Text")
	case q.Limit > MostHits || q.Offset > MostHits-q.limit():
		return &errs.FieldError{Field: "query Limit and Offset", Value: fmt.Sprintf("%d and %d", q.Limit, q.Offset),
			Limit: fmt.Sprint(MostHits), Err: errs.ErrInvalid}
	case math.IsNaN(q.MinScore) || math.IsInf(q.MinScore, 0):
		return bad("MinScore", fmt.Sprint(q.MinScore), "it must be a number")
	case q.Model != "" && q.Vector == nil:
		return bad("Model", human.Quote(q.Model), "requires Vector")
	case q.Vector != nil && len(q.Vector) == 0:
		return bad("Vector", "", "it has no dimensions")
	}
	for i, x := range q.Vector {
		if x != x || math.IsInf(float64(x), 0) {
			return bad(fmt.Sprintf("Vector[%d]", i), fmt.Sprint(x), "it must be a number")
		}
	}
	if err := q.validateBoosts(); err != nil {
		return err
	}
	if q.Text != "" {
		switch p := q.parsed(analyzer.New(analyzer.None)); {
		case p.Words() == 0:
			return bad("Text", human.Quote(q.Text), "it has no word")
		case p.Size() > query.MostWords && q.MaxRareTerms == 0:
			return tooManyWords(p.Size())
		}
	}
	return nil
}

// parsed is what Text looks for.
func (q *Query) parsed(an *analyzer.Analyzer) *query.Query {
	if q.MaxRareTerms > 0 {
		return query.Plain(q.Text, an)
	}
	return query.Parse(q.Text, an)
}

// parsedIn is parsed with what an index has.
func (q *Query) parsedIn(snap *view.Snapshot) (*query.Query, error) {
	if q.MaxRareTerms > 0 {
		return query.Plain(q.Text, snap.Analyzer), nil
	}
	return query.ParseIn(q.Text, snap.Analyzer, snap.Set.Has)
}

func tooManyWords(n int) error {
	return &errs.FieldError{Field: "query Text", Value: fmt.Sprintf("of %d different words and phrases", n),
		Limit: fmt.Sprint(query.MostWords), Err: errs.ErrInvalid}
}

// found is a memory that was found and is not read yet.
type found struct {
	ID            string
	Score         float64
	words, vector float64 // of both
	similarity    float64 // by vector
	recency       float64 // what boosts added
	importance    float64
	parts         words.Parts
	shares        []words.Share
}

// unreadable collects the errors of memories that could not be read.
type unreadable struct {
	errs []error
	more int
}

// MostUnreadable is how many of them are named.
const MostUnreadable = 16

func (u *unreadable) add(err error) {
	if len(u.errs) < MostUnreadable {
		u.errs = append(u.errs, err)
	} else {
		u.more++
	}
}

// also adds those of another one.
func (u *unreadable) also(o *unreadable) {
	for _, err := range o.errs {
		u.add(err)
	}
	u.more += o.more
}

func (u *unreadable) count() int { return len(u.errs) + u.more }

func (u *unreadable) join() error {
	if len(u.errs) == 0 {
		return nil
	}
	if u.more > 0 {
		return errors.Join(append(u.errs, fmt.Errorf("and %d more: run memctl verify", u.more))...)
	}
	return errors.Join(u.errs...)
}

// searchLike finds what is like a memory, without itself.
func (s *Search) searchLike(ctx context.Context, id string, f *engine.Filters, n int, least float64,
	bad *unreadable) ([]found, error) {
	m, err := s.get(ctx, id)
	if err != nil {
		return nil, err
	}
	for range engine.FindTries {
		model := s.vectors.Model()
		var v []float32
		if v, err = s.vectors.EmbeddingNow(ctx, &model, s.engine.Kinds().Memories, id, m.Version,
			m.Embedding); !errors.Is(err, vectors.ErrBehind) {
			m.Embedding = v
			break
		}
		if m, err = s.get(ctx, id); err != nil { // it was rewritten meanwhile
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	if len(m.Embedding) == 0 {
		return nil, &errs.FieldError{Field: "query Like", Value: human.Quote(id),
			Err: fmt.Errorf("%w: this memory has no embedding", errs.ErrInvalid)}
	}
	if vector.Norm(m.Embedding) == 0 {
		return nil, &errs.FieldError{Field: "query Like", Value: human.Quote(id),
			Err: fmt.Errorf("%w: the embedding of this memory is all zero, so nothing is similar to it: compute it again "+
				"(memctl reindex), or search by words", errs.ErrInvalid)}
	}
	list, err := s.nearest(ctx, m.Embedding, f, n+1, least, bad, "")
	for i := range list {
		if list[i].ID == id {
			list = append(list[:i], list[i+1:]...)
			break
		}
	}
	return list[:min(n, len(list))], err
}

// ended is the error with which a search ends where a memory was read with err; nil where it goes on with the
// others.
func ended(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errs.ErrClosed):
		return err
	}
	return nil
}

func (s *Search) get(ctx context.Context, id string) (memstore.Memory, error) {
	m, _, err := s.sized(ctx, id)
	return m, err
}

// sized is get, with the size of the document.
func (s *Search) sized(ctx context.Context, id string) (memstore.Memory, int64, error) {
	v, err := s.engine.Get(ctx, s.engine.Kinds().Memories, id)
	if err != nil {
		return memstore.Memory{}, 0, err
	}
	m, err := s.engine.Decode(id, v)
	return m, int64(len(v.Doc)), err
}

// bare returns what a hit that is not held has of its memory.
func bare(m *memstore.Memory) memstore.Memory {
	return memstore.Memory{ID: m.ID, Version: m.Version, Timestamp: m.Timestamp, CreatedAt: m.CreatedAt,
		UpdatedAt: m.UpdatedAt, ExpiresAt: m.ExpiresAt}
}

// Scanners is how many goroutines read vectors, or documents.
func (s *Search) Scanners() int {
	if s.engine.Env().System.Inline {
		return 1
	}
	return min(runtime.GOMAXPROCS(0), 16)
}
