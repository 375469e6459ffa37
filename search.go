package varve

import (
	"context"
	"time"

	"github.com/varve-db/varve/internal/meter"
	"github.com/varve-db/varve/internal/search"
	"github.com/varve-db/varve/memstore"
)

// MostBoost is the maximum of Query.Recency and Query.Importance.
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
	// Text finds memories by words: of their content, of tags, category, key, title, speaker, author, name and caption
	// in their metadata, and of the date. Words are English stems without accents, and words that are in every text do
	// not count, except in a condition or if there are no others. A memory is also found by the words of the memories
	// before and after it in its session. The grammar: "a phrase", rom* (words that begin with it), +must, -not,
	// tag:travel (a field), tag:a OR tag:b (either). A query never fails to parse. The score is BM25F over all
	// memories, at least 0 and without an upper bound. With Vector as well, the best 200 of each are ranked together,
	// by the sum of two scores from 0 to 1; all others follow with the score 0, those by words before those by vector.
	Text string
	// Kinds are the kinds of documents to find; none means all of them, in one ranking. Notes are not found by Like,
	// and are found by Vector only if their sections have vectors: a store with Options.Embed and EmbedModel makes
	// these in the background, and Vectors.EmbedPending makes them at once. Each section of a note counts as a text:
	// the lines below a heading, or a part of these of about 2,000 characters, with the path and the headings above it
	// as its title. A section is also found by the words of the sections before and after it. A note is one hit: that
	// of its best section. Filters select a note by its path, instead of an id, by the time of its last change, and by
	// its session, tags (also those of its front matter) and metadata. A note that is not valid UTF-8, or contains NUL,
	// is not found.
	Kinds []Kind
	Share float64 // weight of Vector in a query with both Vector and Text, where Text has the weight 1; 0 means 0.25
	// with Vector and Text: use the scores 61/(60 + rank) of reciprocal rank fusion in place of each side's own scores
	RankFusion bool
	// MaxRareTerms, if not 0, reads Text, of any length, without the grammar, and searches only for that many of its
	// words, the rarest ones.
	MaxRareTerms int

	// Recency and Importance, from 0 (no effect) to MostBoost, raise the scores of the best 200 memories by up to that
	// multiple: with 0.5 a score of 4 becomes 6 at most; a score below 0 is divided instead. Recency counts in full for
	// a memory of now or later, and half as much for one of a HalfLife ago (0 means 30 days). Importance is weighted by
	// quickrecal_score, at most 1. Memories behind the best 200 stay behind them. MinScore applies to the raised
	// scores. Pages continue one another unless the time between them changes the order.
	Recency    float64
	HalfLife   time.Duration
	Importance float64

	// PerSession is the maximum number of hits from one session; 0 means unlimited. It is applied to the best 10,000
	// hits, so Limit and Offset together are at most 10,000.
	PerSession int

	Explain  bool // fills Hit.Explanation; a search by words takes twice as long
	Fragment int  // maximum number of bytes of Hit.Fragment, up to 65,536, from the content's first MiB; 0 omits it

	// Note, if not nil, is called once with each note on how Text was understood: for example, that no memory has the
	// word in the field of tag:latest, so that both are words.
	Note func(note string)

	Limit    int     // maximum number of hits; 0 means 10
	Offset   int     // number of best hits to skip
	MinScore float64 // hits with a lower score are omitted; 0 omits none

	// Trim, if not nil, is called with each hit's memory as soon as it is read: what it removes is not held until
	// Search returns. A memory may be read more than once.
	Trim func(*Memory)
	// Held, if more than 0, bounds the bytes of the documents of all hits together: the Memory of a hit beyond the
	// bound, which is marked as Trimmed, has only ID, Version and times. Each document may be as large as
	// max_memory_bytes.
	Held int64
}

// Hit is a memory or a note found by Search.
type Hit struct {
	ID     string  // the path of a note
	Score  float64 // a greater score is a better match
	Memory Memory
	Note   *NoteSection // the place in a note; nil: the hit is a memory

	Words, Vector float64 // of a search by both: the score of either side, from 0 to 1

	Trimmed bool // Memory has only ID, Version and times, or Note has no Text: see Query.Held

	Explanation *Explanation // set only with Query.Explain
	Fragment    *Fragment    // set only with Query.Fragment
}

type (
	Explanation = memstore.Explanation // the parts of a score
	WordShare   = memstore.WordShare   // the contribution of a word to a score
	Fragment    = memstore.Fragment    // the part of a content, or of a section, with the most words of the query
	NoteSection = memstore.NoteSection // the place in a note
	Kind        = memstore.Kind        // a kind of document that a search finds
)

// The kinds of documents that a search finds.
const (
	KindMemory = memstore.KindMemory
	KindNote   = memstore.KindNote
)

// Search returns the memories and notes that match q and pass the filters, the best first. Results with the same score
// are ordered by id (but see Query.Text). A search by vector reads the vector of every memory that passes; with filters
// it uses about 300 bytes of working space for each of them. A search by words uses about 20 bytes for each memory.
//
// If a memory cannot be read, the others are still found. The error names the memories that could not be read although
// a filter needed them or they are among the best; the hits are from the others. Concurrent writes may or may not be
// seen. Memories that are deleted before the search ends are left out.
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
	Score    float64 // as in Hit
	Assembly Assembly
}

// Search finds assemblies by their composite embeddings: those nearest to q.Vector, or to the
// composite of the assembly q.Like, without that assembly. A Query with Text is refused; assemblies
// have no text to search.
func (asm Assemblies) Search(ctx context.Context, q Query) ([]AssemblyHit, error) {
	found, err := asm.st.inner.Search.Assemblies(ctx, search.Query(q))
	var hits []AssemblyHit
	for _, h := range found {
		hits = append(hits, AssemblyHit(h))
	}
	return hits, err
}
