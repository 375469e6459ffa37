package varve

import (
	"context"

	"github.com/varve-db/varve/internal/search"
)

// Query is what Search looks for: exactly one of Vector, Like and Text.
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
	// Text finds memories whose content has one of its words, in any case. The
	// score is BM25 over the memories that pass the filters, at least 0 and without
	// an upper end; see package text for what a word is.
	Text string

	Limit    int     // how many hits, 10 when 0
	Offset   int     // hits that are left out at the top
	MinScore float64 // hits below it are left out; 0: none is

	// Trim, if not nil, is called with each hit's memory as soon as it is read: what it
	// takes out is not held until Search returns. A memory may be read more than once.
	Trim func(*Memory)
}

// Hit is a memory that was found.
type Hit struct {
	ID     string
	Score  float64 // greater is nearer
	Memory Memory
}

// Search finds memories that pass the filters, the best first, those of one
// score by id. It reads every vector, or every content, of a memory that passes;
// in memory that depends on Limit and Offset, not on the store. Only by vector and
// through filters it holds, for as long as it runs, the ids of the memories that it
// compared or asked about: some 300 bytes each, of all at worst.
//
// Memories that cannot be read do not keep the others from being found: then
// the error says which, and the hits are those among the others. What is written
// meanwhile is seen or not; what is gone by the end is left out.
func (st *Store) Search(ctx context.Context, q Query, filters ...Filter) ([]Hit, error) {
	found, err := st.search.Memories(ctx, search.Query(q), filtersOf(filters))
	var hits []Hit
	for _, h := range found {
		hits = append(hits, Hit(h))
	}
	return hits, err
}

// AssemblyHit is an assembly that was found.
type AssemblyHit struct {
	ID       string
	Score    float64 // as Hit's
	Assembly Assembly
}

// Search finds assemblies by their composite embeddings: those nearest to
// q.Vector, or to the composite of the assembly q.Like, without itself. A Query
// with Text is refused; assemblies have no text that is searched.
func (as Assemblies) Search(ctx context.Context, q Query) ([]AssemblyHit, error) {
	found, err := as.st.search.Assemblies(ctx, search.Query(q))
	var hits []AssemblyHit
	for _, h := range found {
		hits = append(hits, AssemblyHit(h))
	}
	return hits, err
}
