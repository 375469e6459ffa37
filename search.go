package varve

import (
	"context"
	"time"

	"github.com/varve-db/varve/internal/meter"
	"github.com/varve-db/varve/internal/search"
	"github.com/varve-db/varve/memstore"
)

// MostBoost is the most that Query.Recency and Query.Importance may be.
const MostBoost = search.MostBoost

// Query is a search: exactly one of Vector, Like and Text must be set, or Text and Vector.
type Query struct {
	// Vector finds memories by their embeddings; it must have their dimension. The score is the
	// cosine, or 1/(1+d²) in a store whose metric is l2.
	Vector []float32
	// Model is the name of the model that made Vector, if known, as in Options.EmbedModel. If the
	// store's vectors are by another model, the error is a *ModelError that names both (ErrModel):
	// even with the same dimension, the scores would be meaningless.
	Model string
	// Like is the id of a memory: Search finds the memories with the most similar embeddings,
	// without the memory itself.
	Like string
	// Text finds memories by words: of their content, of tags, category, key, title, speaker, author,
	// name and caption in their metadata, and of the date. Words are English stems without accents,
	// and words that are in every text do not count, except in a condition or where there are no others.
	// A memory is also found by what the ones before
	// and behind it in its session say. The grammar: "a phrase", rom* (words that begin so), +must,
	// -not, tag:travel (a field), tag:a OR tag:b (one of both). A query never fails to parse. The
	// score is BM25F over all memories, at least 0 and without an upper bound. With Vector as well, the best 200 of each
	// are ranked together, by the sum of two scores from 0 to 1; behind them all others follow with the score
	// 0, those by words before those by vector.
	Text string
	// Kinds are the kinds of documents to find; none means all of them, in one ranking. Notes are found by Text, not by
	// Vector and Like. Each of their sections counts as a text: what is below a heading, or a part of that of about 2,000
	// characters, with the path and the headings above it as its title. A section is also found by what those before and
	// behind it say. A note is one hit: that of its best section. Filters pass a note by its path, for an id, by the time
	// of its last change, and by its session, tags and metadata. A note that is no text is not found.
	Kinds      []Kind
	Share      float64 // the weight of Vector where Text is given too, whose weight is 1; 0 means 0.25
	RankFusion bool    // with both: 61/(60 + the place) instead of each side's scores (reciprocal rank fusion)
	// MaxRareTerms, if not 0, takes Text without the grammar, and however long, and looks for its rarest words.
	MaxRareTerms int

	// Recency and Importance, from 0 (nothing) to MostBoost, raise the scores of the best 200 memories by up
	// to so many times themselves: with 0.5 a score of 4 becomes 6 at most; one below 0 is divided instead.
	// Recency counts in full for what happens now or later, and half as much for what happened a HalfLife
	// ago (0 means 30 days); of Importance as much as quickrecal_score is, at most 1. What is behind the best
	// 200 stays behind them. MinScore is about the raised scores, and pages continue one another as far as
	// time between them changes no order.
	Recency    float64
	HalfLife   time.Duration
	Importance float64

	// PerSession is the maximum number of hits of one session; 0 means any. It looks at the best 10,000,
	// so that Limit and Offset together are at most that.
	PerSession int

	Explain  bool // Hit.Explanation; a search by words takes twice as long
	Fragment int  // maximum number of bytes of Hit.Fragment, up to 65,536, of the content's first MiB; 0 omits it

	// Note, if not nil, is called with each note on how Text was understood, once: that no memory has
	// the word in the field of tag:latest, for example, so that both are words.
	Note func(note string)

	Limit    int     // maximum number of hits; 0 means 10
	Offset   int     // number of best hits to skip
	MinScore float64 // hits with a lower score are omitted; 0 omits none

	// Trim, if not nil, is called with each hit's memory as soon as it is read: what it removes is
	// not held until Search returns. A memory may be read more than once.
	Trim func(*Memory)
	// Held, if more than 0, bounds the bytes of the documents of all hits together: the Memory of a hit
	// beyond it, which is marked as Trimmed, has only ID, Version and times. Documents may be as
	// large as max_memory_bytes, each.
	Held int64
}

// Hit is a memory or a note found by Search.
type Hit struct {
	ID     string  // of a note its path
	Score  float64 // a greater score is nearer
	Memory Memory
	Note   *NoteSection // the place in a note; nil for a memory

	Words, Vector float64 // of a search by both, what either side gave, from 0 to 1

	Trimmed bool // Memory has only ID, Version and times, or Note no Text: see Query.Held

	Explanation *Explanation // with Query.Explain
	Fragment    *Fragment    // with Query.Fragment
}

type (
	Explanation = memstore.Explanation // what a score is made of
	WordShare   = memstore.WordShare   // what a word adds to it
	Fragment    = memstore.Fragment    // the piece of a content, or of a section, with the most words of the query
	NoteSection = memstore.NoteSection // the place in a note
	Kind        = memstore.Kind        // of what a search finds
)

// The kinds of documents that a search finds.
const (
	KindMemory = memstore.KindMemory
	KindNote   = memstore.KindNote
)

// Search finds memories and notes that pass the filters, best first, those with the same score by id (but see Text). A
// search by vector reads every vector of the memories that pass, and with filters holds about 300 bytes of
// each that it compares; one by words takes about 20 bytes for each memory while it runs.
//
// Memories that cannot be read do not keep the others from being found: the error names those that were to be
// read, for a filter or because they are among the best, and the hits are those among the others. Concurrent writes may
// or may not be seen; memories that are deleted by the end are omitted.
func (st *Store) Search(ctx context.Context, q Query, filters ...Filter) ([]Hit, error) {
	meters := st.inner.Engine.Env().Meters
	began := meters.Begin(meter.Search)
	found, err := st.inner.Search.Memories(ctx, search.Query(q), filtersOf(ctx, st.inner.Engine, filters))
	meters.End(meter.Search, began, err != nil)
	var hits []Hit
	for _, h := range found {
		hits = append(hits, Hit(h))
	}
	return hits, err
}

// AssemblyHit is an assembly found by Search.
type AssemblyHit struct {
	ID       string
	Score    float64 // as Hit's
	Assembly Assembly
}

// Search finds assemblies by their composite embeddings: those nearest to q.Vector, or to the
// composite of the assembly q.Like, without that assembly. A Query with Text is refused; assemblies
// have no text to search.
func (as Assemblies) Search(ctx context.Context, q Query) ([]AssemblyHit, error) {
	found, err := as.st.inner.Search.Assemblies(ctx, search.Query(q))
	var hits []AssemblyHit
	for _, h := range found {
		hits = append(hits, AssemblyHit(h))
	}
	return hits, err
}
