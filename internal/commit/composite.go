package commit

import (
	"errors"
	"fmt"
	"slices"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// Compose sets the composite embedding of an assembly a from the embeddings of its members. prev is the previous
// version of a, or nil. If the list of members and all members are unchanged, the composite stays. As long as no
// member has ever had a vector, Compose keeps the composite that the caller has set, because an import may have no
// other source.
func (j *Joint) Compose(a, prev *assembly.Assembly) error {
	if prev != nil && len(a.HyperbolicEmbedding) == 0 {
		a.HyperbolicEmbedding = prev.HyperbolicEmbedding
	}
	if prev != nil && j.hasSameMembers(a, prev) && !j.model.Older(prev.Version, 0) {
		if len(prev.CompositeEmbedding) > 0 && !slices.Equal(a.CompositeEmbedding, prev.CompositeEmbedding) {
			a.CompositeEmbedding = prev.CompositeEmbedding
			j.curve(a)
		}
		return nil
	}
	dim, failed := j.Dimension()
	if failed != nil {
		return failed
	}
	counted := false
	composite, odd := assembly.Composite(dim, func(yield func([]float32) bool) {
		for _, id := range a.MemoryIDs {
			var v []float32
			if v, failed = j.vector(id); failed != nil {
				failed = fmt.Errorf("member %s: %w", human.Quote(id), failed)
				return
			}
			counted = counted || len(v) > 0
			if !yield(v) {
				return
			}
		}
	})
	if failed == nil && !counted && prev != nil {
		counted, failed = j.counted(prev)
	}
	if failed != nil || !counted {
		return failed
	}
	if odd > 0 {
		j.st.engine.Env().Logger.Warn("members whose embedding has another dimension do not count in the composite",
			"assembly", a.ID, "members", odd)
	}
	a.CompositeEmbedding = composite
	j.curve(a)
	return nil
}

// Dimension returns the dimension of the store's vectors; the composite ignores members whose embedding has another
// dimension. If the caller holds flush.lock, or the store is switching to another model, Dimension does not search for
// the dimension, and returns 0 if it is not known. The reason: the holder of flush.lock must not wait for other
// goroutines that search for the dimension, because they may wait for flush.lock.
func (j *Joint) Dimension() (int, error) {
	if j.Held == nil && !j.model.Switching() {
		dim, _, err := j.st.vectors.Dimension(j.ctx)
		return dim, err
	}
	if dim := j.st.vectors.DecidedDimension(&j.model); dim != 0 {
		return dim, nil
	}
	return int(j.st.vectors.Known.Load()), nil
}

// fits returns an error if the composite embedding that a caller has set has another dimension than the store's
// vectors: the store would count the composite as indexed, but no search would find it. A composite that is
// computed from members, or that is the same as in the previous version prev, is not checked. If no vector has
// decided the dimension yet, this composite decides it; see fitVectors.
func (j *Joint) fits(a, given, prev *assembly.Assembly) error {
	n := len(a.CompositeEmbedding)
	if j.Held != nil || n == 0 || !slices.Equal(a.CompositeEmbedding, given.CompositeEmbedding) ||
		prev != nil && slices.Equal(a.CompositeEmbedding, prev.CompositeEmbedding) {
		return nil
	}
	dim, decided, err := j.st.vectors.Dimension(j.ctx)
	if err != nil {
		return err
	}
	if dim == 0 {
		dim = j.writtenDimension()
	}
	if decided != (wal.Precondition{}) {
		j.out.preconditions = append(j.out.preconditions, decided)
	}
	if dim != 0 && n != dim {
		return &errs.FieldError{Field: "composite_embedding", Value: fmt.Sprintf("of %d dimensions", n),
			Limit: fmt.Sprintf("%d dimensions, like the store's vectors", dim), Err: vector.ErrDimension}
	}
	return nil
}

// writtenDimension returns the dimension of the vectors that the commit's operations write, or 0 if they write no
// vectors. fitVectors has ensured that all these vectors have the same dimension.
func (j *Joint) writtenDimension() int {
	dim := 0
	for _, c := range j.memories {
		dim = max(dim, len(c.Vector))
	}
	return dim
}

// misfit reports whether the composite embedding of an assembly has another dimension than the store's
// vectors, and so is not indexed.
func (j *Joint) misfit(a *assembly.Assembly) (bool, error) {
	n := len(a.CompositeEmbedding)
	if n == 0 {
		return false, nil
	}
	dim, err := j.Dimension()
	if dim == 0 {
		dim = j.writtenDimension()
	}
	return dim != 0 && dim != n, err
}

// hasSameMembers reports whether the assembly a has the same members as its previous version prev, and this commit
// changes none of these members.
func (j *Joint) hasSameMembers(a, prev *assembly.Assembly) bool {
	return slices.Equal(a.MemoryIDs, prev.MemoryIDs) && !slices.ContainsFunc(a.MemoryIDs, func(id string) bool {
		_, ok := j.memories[id]
		return ok
	})
}

// counted reports whether any member of prev, the previous version of an assembly, had a vector.
func (j *Joint) counted(prev *assembly.Assembly) (bool, error) {
	if len(prev.CompositeEmbedding) == 0 {
		return false, nil
	}
	for _, id := range prev.MemoryIDs {
		if v, known, err := j.stored(id); err != nil || known && len(v) > 0 {
			return true, err
		}
		v, _, err := j.st.vectors.NewestVector(j.ctx, &j.model, id)
		if err != nil && !errors.Is(err, vectors.ErrBehind) || len(v) > 0 {
			return true, err
		}
	}
	return false, nil
}

// curve recomputes the composite embedding's point in hyperbolic space from the new composite, if the assembly
// has one.
func (j *Joint) curve(a *assembly.Assembly) {
	switch {
	case len(a.CompositeEmbedding) == 0:
		a.HyperbolicEmbedding = nil
	case len(a.HyperbolicEmbedding) > 0:
		a.HyperbolicEmbedding = memstore.Hyperbolic(a.CompositeEmbedding)
	}
}

// vector returns the embedding that a memory will have after this commit; nil if the memory will not exist or
// cannot be read.
func (j *Joint) vector(id string) ([]float32, error) {
	if c, ok := j.memories[id]; ok {
		return c.Vector, nil
	}
	v, older, err := j.st.vectors.NewestVector(j.ctx, &j.model, id)
	if errors.Is(err, vectors.ErrBehind) {
		v, older, err = nil, false, nil // the memory and this assembly were rewritten meanwhile: the commit will conflict
	}
	if older || err != nil {
		return v, err
	}
	v, _, err = j.stored(id)
	return v, err
}

// stored returns the current embedding of a memory. known is false if the memory cannot be read or does not exist.
func (j *Joint) stored(id string) (vector []float32, known bool, err error) {
	cm := j.st
	if place, err := cm.engine.State().Find(kind.Memories.Letter, id); err == nil && place.InLog {
		if _, view, err := cm.engine.Frame(j.ctx, cm.engine.Kinds().Memories, id, place.Version); err == nil {
			return view.Vector(nil), true, nil
		}
	}
	v, err := j.Load(j.ctx, cm.engine.Kinds().Memories, id)
	if err == nil {
		p, err := cm.engine.Kinds().Memories.Parse(v.Doc, id)
		return p.Vector, err == nil, nil
	}
	if errors.Is(err, errs.ErrNotFound) || errors.Is(err, errs.ErrCorrupt) {
		err = nil
	}
	return nil, false, err
}
