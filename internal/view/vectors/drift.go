package vectors

import (
	"context"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/vector"
)

// Drift is by how much the vectors' files lag behind the index, as both
// stand: nothing is read but these, and nothing is changed. What is missing, stale
// or too much is made good by the next flush or search. Memories and assemblies
// count alike.
type Drift struct {
	Missing int64 // an embedding without a vector
	Stale   int64 // another vector than the embedding's
	Ghosts  int64 // a vector without an embedding
	Misfits int64 // embeddings of another dimension, which have no vector
	Older   int64 // documents with an embedding by the model before: a re-embedding is rewriting them
	Without int64 // memories without an embedding, be it that it is pending or that there is no content
	Unknown int64 // lines from before there were vectors: only their documents know
	Pending int64 // what changed since the index was written; a search sees it all the same
}

// Compare compares the vectors with the index.
func (vs *Vectors) Compare(ctx context.Context) (Drift, error) {
	var d Drift
	if err := vs.engine.BeginUse(); err != nil {
		return d, err
	}
	defer vs.engine.EndUse()
	if err := vs.engine.CatchUp(ctx); err != nil {
		return d, err
	}
	idx := vs.engine.State().Set()
	if idx == nil {
		return d, errs.ErrClosed
	}
	defer idx.Release()
	d.Pending = int64(len(vs.engine.State().Changes(idx.LSN(), 1<<62)))
	set, err := vector.Load(vs.engine.Env().FS, vs.engine.Env().Dir, uuid.UUID(vs.engine.Log().UUID()).String(), nil)
	if err != nil {
		return d, err
	}
	defer set.Release()
	if set.LSN() > idx.LSN() {
		return d, nil // they have what the index does not yet know
	}
	for _, kind := range []vector.Kind{vector.Memories, vector.Assemblies} {
		if err := vs.driftOf(ctx, kind, idx, set, &d); err != nil {
			return d, err
		}
	}
	return d, nil
}

func (vs *Vectors) driftOf(ctx context.Context, kind vector.Kind, idx *index.Set, set *vector.Set, d *Drift) error {
	model := vs.engine.State().ModelBefore(idx.LSN())
	right := int64(0) // keys of the set that have an embedding
	for it, err := range idx.Range(kindSection(kind), index.Span{}) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		dims := lineDimension(it.Value)
		if dims == 0 && kind == vector.Memories {
			d.Without++
		}
		if dims == 0 && !model.Switching() {
			continue
		}
		line, err := index.ParseLine(it.Value)
		if err != nil {
			return err
		}
		has, err := set.ID(kind, string(it.Key))
		if err != nil {
			return err
		}
		if has != 0 {
			right++
		}
		switch {
		case model.Older(line.Version, line.VectorNumber()):
			d.Older++
		case dims == 0:
			if has != 0 {
				right-- // a ghost
			}
		case has == 0 && dims == index.UnknownDimension:
			d.Unknown++
		case has == 0 && set.Exists() && dims != set.Dim():
			d.Misfits++
		case has == 0:
			d.Missing++
		case has != line.VectorNumber():
			d.Stale++
		}
	}
	d.Ghosts += set.Count(kind) - right
	return nil
}
