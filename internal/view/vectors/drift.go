package vectors

import (
	"context"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/vector"
)

// Drift reports how far the vector files lag behind the index at this moment. The comparison reads only the vector
// files and the index, and changes nothing. The next flush or search corrects missing, stale and ghost vectors.
// Memories and assemblies are counted together.
type Drift struct {
	Missing int64 // embeddings without a vector
	Stale   int64 // vectors that differ from the embedding
	Ghosts  int64 // vectors without an embedding
	Misfits int64 // embeddings of another dimension, which have no vector
	Older   int64 // documents with an embedding by the previous model, which a re-embedding is rewriting
	Without int64 // memories without an embedding: pending, or without content
	Unknown int64 // index lines from before vectors were introduced: only the documents show whether they have one
	Pending int64 // changes since the index was written; searches include them
}

// Compare compares the vector files with the index. If the files are newer than the index, only the field Pending of
// the result is set.
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
		return d, nil // the files are newer than the index
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
	right := int64(0) // number of keys in set that have an embedding
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
