package varve

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
)

// Line has the properties of a document that the index contains, so that the document's file need not be read. Score
// and Session are set for memories only.
type Line struct {
	ID        string
	Version   uint64
	CreatedAt time.Time
	UpdatedAt time.Time
	ExpiresAt time.Time // time at which the document expires; zero: never
	Score     float64   // quickrecal_score
	Session   string    // "" for none
	Size      int64     // bytes of the document
	By        uint32    // number of the version's writer, see Admin.Writers; 0: unknown
}

// Lines yields the index entries of the memories that pass the filters, ordered by the JSON encoding of their ids. It
// reads no document, and is many times as fast as Memories. A filter that reads documents (see Filter) is refused with
// ErrInvalid. Concurrent writes may or may not be seen.
func (ad Admin) Lines(ctx context.Context, filters ...Filter) iter.Seq2[Line, error] {
	return ad.st.linesOf(ctx, ad.st.inner.Engine.Kinds().Memories, filters)
}

// Lines yields the index entries of the assemblies that pass the filters; see Admin.Lines.
func (asm Assemblies) Lines(ctx context.Context, filters ...Filter) iter.Seq2[Line, error] {
	return asm.st.linesOf(ctx, asm.st.inner.Engine.Kinds().Assemblies, filters)
}

func (st *Store) linesOf(ctx context.Context, k *engine.Kind, filters []Filter) iter.Seq2[Line, error] {
	return engine.Reading(ctx, st.inner.Engine, func(yield func(Line, error) bool) {
		f := filtersOf(ctx, st.inner.Engine, filters)
		if f.Reads() {
			yield(Line{},
				fmt.Errorf("%w: Lines reads only the index, so it cannot filter by category, key, metadata or the "+
					"time of the memory → use Memories", errs.ErrInvalid))
			return
		}
		for l, err := range st.inner.Engine.Lines(ctx, k, f) {
			e := &l.Line
			if !yield(Line{l.ID, e.Version, e.CreatedAt, e.UpdatedAt, e.ExpiresAt, e.Score, e.SessionID, e.Size, e.By}, err) {
				return
			}
		}
	})
}
