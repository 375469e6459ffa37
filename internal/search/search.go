package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/view/meanings"
	"github.com/varve-db/varve/internal/view/vectors"
	view "github.com/varve-db/varve/internal/view/words"
	"github.com/varve-db/varve/internal/words"
	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/vector"
)

// Search answers queries over a store.
type Search struct {
	engine   *engine.Engine
	vectors  *vectors.Vectors
	words    *view.Query
	sections *view.Query // the index of the words of notes
	meanings *meanings.Query
	orders   *view.Orders
}

// New returns the search of a store.
func New(eng *engine.Engine, vs *vectors.Vectors, words, sections *view.Query, near *meanings.Query,
	orders *view.Orders) *Search {
	return &Search{engine: eng, vectors: vs, words: words, sections: sections, meanings: near, orders: orders}
}

// Query describes a search. Either exactly one of Vector, Like and Text is set, or both Text and Vector are set.
type Query struct {
	// Vector finds memories by their embeddings, which must have the same dimension. The score is the cosine
	// similarity, or 1/(1+d²) in a store whose metric is l2.
	Vector []float32
	// Model is the name of the model of Vector, if known, as in Options.EmbedModel. If the store's vectors are by
	// another model, the search fails with a *ModelError (ErrModel) that names both: even with equal dimensions, the
	// scores would be meaningless.
	Model string
	// Like is the id of a memory: the search finds memories with similar embeddings, without that memory itself.
	Like string
	// Text finds memories by words; see package internal/words for the definition of a word, the grammar (Parse) and
	// the score.
	Text string
	// Kinds are the kinds of documents that the search finds; none means all. Notes are found as sections, and not by
	// Like.
	Kinds []memstore.Kind
	// Share is the weight of Vector in a query that has Text too; the weight of Text is 1. 0 means 0.25.
	Share float64
	// RankFusion makes a query with both Text and Vector add 61/(60 + rank) of each side in place of the scores.
	RankFusion bool
	// MaxRareTerms, if above 0, reads Text as plain words without the grammar, and uses only that many of them: the
	// rarest.
	MaxRareTerms int

	// Recency and Importance raise the scores of the best 200, each by at most that multiple of the score. Recency is
	// multiplied by 2^(−age/HalfLife), where HalfLife 0 means 30 days; Importance by quickrecal_score, limited to 0 to
	// 1.
	Recency    float64
	HalfLife   time.Duration
	Importance float64

	// PerSession, if above 0, is the maximum number of hits of one session: the best ones.
	PerSession int

	Explain  bool // fill Hit.Explanation
	Fragment int  // the maximum size of Hit.Fragment in bytes; 0: no fragment

	// Note, if not nil, is called with each note on how Text was interpreted.
	Note func(note string)

	Limit    int     // the number of hits; 0 means 10
	Offset   int     // number of best hits to skip
	MinScore float64 // omit hits with a lower score; 0: no minimum

	// Trim, if not nil, is called with each hit's memory as soon as it is read; data that it removes is not held until
	// Search returns. A memory may be read more than once.
	Trim func(*memstore.Memory)
	// Held, if above 0, bounds the total size in bytes of the documents of all hits. A hit beyond it is marked as
	// Trimmed, and its Memory has only ID, Version and times. Each document may be as large as max_memory_bytes.
	Held int64
}

// Hit is a memory or a note that a search has found.
type Hit struct {
	ID     string  // for a note, its path
	Score  float64 // a greater score is a better match
	Memory memstore.Memory
	Note   *memstore.NoteSection // best section of the note; nil: the hit is a memory
	// Scores of the two sides, from 0 to 1, in a search by words and a vector.
	Words, Vector float64

	Trimmed bool // Memory is incomplete, or Note has no Text: see Query.Held

	Explanation *memstore.Explanation
	Fragment    *memstore.Fragment
}

// The limits of a Query.
const (
	defaultHits = 10
	MostHits    = 1_000_000 // maximum of Limit + Offset, because the ids of so many hits are held in memory
	// number of the best hits among which PerSession selects; also the maximum of Limit + Offset with
	// PerSession
	mostVaried = 10_000
)

// Memories returns the best memories that pass the filters, the best first. Hits with equal scores are in the order of
// their ids.
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
		n = max(n, window) // that many are ranked in any case
	}
	if least == 0 {
		least = math.Inf(-1)
	}
	told := map[string]bool{}
	var had []Hit // the result of the last pass, if another follows
	var hadUnread error
	for more, again := 0, 0; ; {
		p, err := s.searchOnce(ctx, &q, &f, n+more, least, told)
		hits, full, gone, unread := p.hits, p.full, p.gone, p.unread
		// Other hits of the same sessions displaced hits.
		if q.PerSession > 0 && err == nil && full && len(hits) < q.limit() && n+more < mostVaried {
			more = min(4*(n+more), mostVaried) - n
			continue
		}
		// Memories that disappeared between ranking and reading displaced hits.
		displaced := q.PerSession == 0 && full && gone > 0 && len(hits) < q.limit()
		if err == nil && (displaced || p.changed) && again < goneTries {
			had, hadUnread = hits, unread.join()
			more, again = max(more, spare(gone)), again+1
			continue
		}
		// Memories that could not be read displaced hits.
		if kept := unread.count(); err == nil && full && kept > more && len(hits) < q.limit() && kept <= MostUnreadable {
			more = kept
			continue
		}
		switch {
		case err != nil && again > 0 && ended(ctx, err) == nil: // the memory of Like may have disappeared as well
			return had, hadUnread
		case err != nil:
			return nil, err
		}
		return hits[:min(len(hits), q.limit())], unread.join()
	}
}

// goneTries is the maximum number of times that a search starts again because memories expired, were deleted or no
// longer passed the filters while it ranked them. After that many attempts the search returns fewer hits than
// requested.
const goneTries = 2

// spare returns the number of additional hits that the next attempt ranks after gone hits of an attempt no longer
// existed. It is greater than gone, because further hits may disappear in the meantime.
func spare(gone int) int { return 2*gone + 8 }

// pass is the result of one run of searchOnce.
type pass struct {
	hits    []Hit
	full    bool // there may be more hits
	gone    int  // number of hits that no longer exist or no longer pass the filters
	changed bool // some of these are sections of notes that have a newer version
	unread  unreadable
}

// searchOnce finds the n best hits whose scores are at least minScore, and reads the documents of the hits after
// q.Offset. It reports remarks about the query as asked.tell does; told has the earlier ones.
func (s *Search) searchOnce(ctx context.Context, q *Query, f *engine.Filters, n int,
	minScore float64, told map[string]bool) (p pass, err error) {
	var list []found
	var as asked
	if q.boosts() {
		list, err = s.boosted(ctx, q, f, n, minScore, &p.unread, &as)
	} else {
		list, err = s.ranked(ctx, q, f, n, minScore, &p.unread, &as)
	}
	if err != nil {
		return p, err
	}
	as.tell(q, told)
	p.full = len(list) == n
	skip, sessions, held := q.Offset, map[string]int{}, int64(0)
	if q.PerSession == 0 {
		list, skip = list[min(skip, len(list)):], 0
	}
	for _, h := range list {
		if q.PerSession > 0 && len(p.hits) == q.limit() {
			break
		}
		if h.note {
			of := &as
			if h.asked != nil {
				of = h.asked
			}
			hit, session, size, err := s.noteHit(ctx, q, f, &h, of)
			switch {
			case ended(ctx, err) != nil:
				return p, ended(ctx, err)
			case errors.Is(err, errs.ErrNotFound):
				p.gone, p.changed = p.gone+1, p.changed || errors.Is(err, errChanged)
			case err != nil:
				p.unread.add(err)
			case q.PerSession > 0 && !q.admitHit(sessions, session):
			case skip > 0:
				skip--
			default:
				if q.Held > 0 && size > q.Held-held {
					hit.Trimmed, hit.Note.Text = true, ""
				} else {
					held += size
				}
				p.hits = append(p.hits, hit)
			}
			continue
		}
		m, size, err := s.sized(ctx, h.ID)
		switch {
		case ended(ctx, err) != nil:
			return p, ended(ctx, err)
		case errors.Is(err, errs.ErrNotFound), err == nil && !f.Still(&m):
			p.gone++
		case err != nil:
			p.unread.add(err)
		case q.PerSession > 0 && !q.admitHit(sessions, m.Session()):
		case skip > 0:
			skip--
		default:
			hit := Hit{ID: h.ID, Score: h.Score, Words: h.words, Vector: h.vector}
			if q.Explain {
				hit.Explanation = as.explained(&h, func() []query.Text { return view.DocOf(&m, m.Version, as.from).Texts })
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
			p.hits = append(p.hits, hit)
		}
	}
	return p, nil
}

// ranked returns the n best hits of a query by words, by vector, or by both, whose scores are at least minScore.
func (s *Search) ranked(ctx context.Context, q *Query, f *engine.Filters, n int, minScore float64, bad *unreadable,
	a *asked) ([]found, error) {
	switch {
	case q.Text != "" && q.Vector != nil:
		return s.hybridHits(ctx, q, f, n, minScore, bad, a)
	case q.Text != "":
		return s.byWords(ctx, q, f, n, minScore, bad, a)
	case q.Like != "" && q.finds(memstore.KindMemory):
		return s.searchLike(ctx, q.Like, f, n, minScore, bad)
	}
	return s.byVector(ctx, q, f, n, minScore, bad)
}

// byVector returns the n best hits by the query's Vector whose scores are at least minScore.
func (s *Search) byVector(ctx context.Context, q *Query, f *engine.Filters, n int, minScore float64,
	bad *unreadable) ([]found, error) {
	var list []found
	if q.finds(memstore.KindMemory) {
		var err error
		if list, err = s.nearest(ctx, q.Vector, f, n, minScore, bad, q.Model); err != nil {
			return nil, err
		}
	}
	if !s.findsNotes(q) || s.meanings.Absent() {
		return list, nil
	}
	notes, err := s.nearestSections(ctx, q, f, n, minScore, bad)
	if err != nil {
		return nil, err
	}
	list = append(list, notes...)
	slices.SortFunc(list, compareFound)
	return list[:min(n, len(list))], nil
}

// admitHit counts a hit in a session, and reports whether the hit is among the first PerSession hits of this session.
// seen has the number of hits so far, by session. admitHit always returns true for a hit without a session.
func (q *Query) admitHit(seen map[string]int, session string) bool {
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
		return bad("MinScore", fmt.Sprint(q.MinScore), "must be a finite number")
	case q.Model != "" && q.Vector == nil:
		return bad("Model", human.Quote(q.Model), "requires Vector")
	case q.Vector != nil && len(q.Vector) == 0:
		return bad("Vector", "", "has no dimensions")
	}
	for i, x := range q.Vector {
		if x != x || math.IsInf(float64(x), 0) {
			return bad(fmt.Sprintf("Vector[%d]", i), fmt.Sprint(x), "must be a finite number")
		}
	}
	if err := q.validateBoosts(); err != nil {
		return err
	}
	if err := q.validateKinds(); err != nil {
		return err
	}
	if q.Text != "" {
		switch p := q.parsed(analyzer.New(analyzer.None)); {
		case p.Words() == 0:
			return bad("Text", human.Quote(q.Text), "has no word")
		case p.Size() > query.MostWords && q.MaxRareTerms == 0:
			return tooManyWords(p.Size())
		}
	}
	return nil
}

// parsed returns the text of the query in parsed form. If q.MaxRareTerms is above 0, the text is parsed as words only,
// without the grammar.
func (q *Query) parsed(an *analyzer.Analyzer) *query.Query {
	if q.MaxRareTerms > 0 {
		return query.Plain(q.Text, an)
	}
	return query.Parse(q.Text, an)
}

// parsedIn returns the text of the query, parsed for a search in set with the analyzer of snap. If q.MaxRareTerms is
// above 0, the text is parsed as words only, without the grammar.
func (q *Query) parsedIn(snap *view.Snapshot, set *words.Set) (*query.Query, error) {
	if q.MaxRareTerms > 0 {
		return query.Plain(q.Text, snap.Analyzer), nil
	}
	return query.ParseIn(q.Text, snap.Analyzer, set.Has)
}

func tooManyWords(n int) error {
	return &errs.FieldError{Field: "query Text", Value: fmt.Sprintf("of %d different words and phrases", n),
		Limit: fmt.Sprint(query.MostWords), Err: errs.ErrInvalid}
}

// found is a hit whose document was not read yet: a memory, or a section of a note.
type found struct {
	ID            string // for a note, its path
	note          bool
	section       int // index of the section in the version lsn of the note
	lsn           uint64
	asked         *asked // the query as it was executed for this hit; nil: as for all hits
	Score         float64
	words, vector float64 // scores by words and by vector, in a search by both
	similarity    float64 // similarity to Query.Vector, or to the embedding of the memory Query.Like
	recency       float64 // amounts by which recency and importance raised the score
	importance    float64
	parts         words.Parts
	shares        []words.Share
}

// document identifies the document of a hit: the note at the path id if note is true, otherwise the memory id.
type document struct {
	note bool
	id   string
}

func (h *found) document() document { return document{h.note, h.ID} }

// unreadable collects the errors of memories that could not be read.
type unreadable struct {
	errs []error
	more int
}

// MostUnreadable is the maximum number of errors of unreadable memories that a search returns.
const MostUnreadable = 16

func (u *unreadable) add(err error) {
	if len(u.errs) < MostUnreadable {
		u.errs = append(u.errs, err)
	} else {
		u.more++
	}
}

// pass handles the error err of reading a candidate. It returns the error if the search must end because of it. It
// adds any other error to the list, unless the document was deleted.
func (u *unreadable) pass(ctx context.Context, err error) error {
	if err := ended(ctx, err); err != nil {
		return err
	}
	if !errors.Is(err, errs.ErrNotFound) {
		u.add(err)
	}
	return nil
}

// addAll adds the errors that o has collected to u.
func (u *unreadable) addAll(o *unreadable) {
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
		return errors.Join(append(u.errs, fmt.Errorf("and %d more errors: run memctl verify", u.more))...)
	}
	return errors.Join(u.errs...)
}

// searchLike returns the n memories that are most similar to the memory with the given id, without this memory
// itself. Their scores are at least minScore.
func (s *Search) searchLike(ctx context.Context, id string, f *engine.Filters, n int, minScore float64,
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
	list, err := s.nearest(ctx, m.Embedding, f, n+1, minScore, bad, "")
	for i := range list {
		if list[i].ID == id {
			list = append(list[:i], list[i+1:]...)
			break
		}
	}
	return list[:min(n, len(list))], err
}

// ended returns nil if the search can continue after the error err of reading a memory. Otherwise it returns the error
// with which the search must end.
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

// sized returns the memory with this id, and the size of its document in bytes.
func (s *Search) sized(ctx context.Context, id string) (memstore.Memory, int64, error) {
	v, err := s.engine.Get(ctx, s.engine.Kinds().Memories, id)
	if err != nil {
		return memstore.Memory{}, 0, err
	}
	m, err := s.engine.Decode(id, v)
	return m, int64(len(v.Doc)), err
}

// bare returns a memory with only the id, the version and the times of m. It is the Memory of a hit that is marked as
// Trimmed.
func bare(m *memstore.Memory) memstore.Memory {
	return memstore.Memory{ID: m.ID, Version: m.Version, Timestamp: m.Timestamp, CreatedAt: m.CreatedAt,
		UpdatedAt: m.UpdatedAt, ExpiresAt: m.ExpiresAt}
}

// Scanners returns the number of goroutines that read vectors or documents in a search.
func (s *Search) Scanners() int {
	return s.engine.Env().Readers()
}
