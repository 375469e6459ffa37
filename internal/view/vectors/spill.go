package vectors

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// Spill writes the vectors as of a mark, before the index does, and tells
// the index which ones are complete as of it. idx is the index that stands, list
// what changed since.
//
// They are derived: when they cannot be written the index goes on without, and says that it is
// unknown which are complete. A caller that needs them then compares.
func (vs *Vectors) Spill(ctx context.Context, held *wal.Held, idx *index.Set, to wal.Mark, list []index.Change,
	always bool, target *index.Target) error {
	at, dim, err := vs.Write(ctx, held, idx, to, list, always)
	switch {
	case err == nil:
		target.Vectors, target.Dimension, target.VectorsKnown = at, dim, true
		vs.engine.Health().VectorsFailed(nil)
		return nil
	case ctx.Err() != nil:
		return err
	}
	vs.engine.Env().Logger.Warn("the vectors could not be written; they are made complete later", "err", err)
	vs.engine.Env().Event(env.Event{Kind: env.EventVectorsSkipped, Path: vector.Folder, Err: err})
	vs.engine.Health().VectorsFailed(err)
	return nil
}

// Complete makes the vectors complete as of now, because somebody needs them
// and the last round could not, or did not know.
func (vs *Vectors) Complete(ctx context.Context) error {
	return vs.CompleteBy(ctx, func(held *wal.Held, idx *index.Set, to wal.Mark, list []index.Change) (wal.LSN, error) {
		at, _, err := vs.Write(ctx, held, idx, to, list, false)
		return at, err
	})
}

// CompleteBy has the vectors written as of now, under flush.lock, and
// remembers that they are complete as of then.
func (vs *Vectors) CompleteBy(ctx context.Context,
	write func(*wal.Held, *index.Set, wal.Mark, []index.Change) (wal.LSN, error)) error {
	held, err := vs.engine.Log().LockFlush(ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	if err := vs.engine.CatchUp(ctx); err != nil {
		return err
	}
	for tries := 0; ; tries++ {
		if err = vs.completeOver(ctx, held, write); !errors.Is(err, engine.ErrMoved) || tries == 3 {
			return err
		}
	}
}

// completeOver is CompleteBy over the index that is mapped.
func (vs *Vectors) completeOver(ctx context.Context, held *wal.Held,
	write func(*wal.Held, *index.Set, wal.Mark, []index.Change) (wal.LSN, error)) error {
	idx := vs.engine.State().Set()
	if idx == nil {
		return errs.ErrClosed
	}
	defer idx.Release()
	to := vs.engine.Log().AppliedMark()
	list, _, err := vs.engine.StateAt(ctx, idx.LSN(), to.LSN)
	if err != nil {
		return err
	}
	at, err := write(held, idx, to, list)
	if err != nil {
		return err
	}
	vs.Mu.Lock()
	defer vs.Mu.Unlock()
	vs.Heal = Healed{of: engine.TablesOf(idx), view: at, upTo: to.LSN}
	return nil
}

// Merge leaves all vectors in one pair of files, when the index has just been written.
func (vs *Vectors) Merge(ctx context.Context, held *wal.Held) error {
	idx := vs.engine.State().Set()
	if idx == nil {
		return errs.ErrClosed
	}
	defer idx.Release()
	if at, _, known := index.Vectors(idx); known && at == 0 {
		return nil
	}
	to := vs.engine.Log().AppliedMark()
	list, _, err := vs.engine.StateAt(ctx, idx.LSN(), to.LSN)
	if err == nil {
		_, _, err = vs.Write(ctx, held, idx, to, list, true)
	}
	return err
}

// Write makes the vectors complete as of a mark, by writing no more than
// has changed, and returns the LSN of those that are, and their dimension.
func (vs *Vectors) Write(ctx context.Context, held *wal.Held, idx *index.Set, to wal.Mark, list []index.Change,
	always bool) (wal.LSN, int, error) {
	// What an index from before a change of the model says holds no longer (Cover): vectors may
	// be due by this one, and a search may have written some, which the deletions in list end.
	if at, dim,
		known := index.Vectors(idx); known && at == 0 && !always && !vs.damaged.Load() && !anyVector(list) &&
		idx.LSN() > vs.Model().Since {
		return 0, dim, nil // there is none, and none came
	}
	set, why := vs.Load(nil)
	if set == nil {
		return 0, 0, why
	}
	defer func() { _ = set.Release() }()
	if vs.damaged.Load() {
		for err := range vector.Verify(set) {
			why = err
			break
		}
	}
	if why != nil && !vs.engine.Settings().Now().MayRepair() {
		return 0, 0, why
	}
	at, dim, err := vs.WriteOver(ctx, held, set, why, idx, to, list, always)
	if err == nil && at == 0 && why == nil {
		err = vs.dropOlderVectors()
	}
	if err != nil && why == nil && errors.Is(err, errs.ErrCorrupt) && vs.engine.Settings().Now().MayRepair() {
		at, dim, err = vs.WriteOver(ctx, held, set, err, idx, to, list, always)
	}
	if err == nil {
		vs.damaged.Store(false)
	}
	return at, dim, err
}

// dropOlderVectors removes the files of the model before, where this one has no vectors
// that could take their place: they serve nobody, and what is purged must not stay in them.
func (vs *Vectors) dropOlderVectors() error {
	set, err := vector.Load(vs.engine.Env().FS, vs.engine.Env().Dir, uuid.UUID(vs.engine.Log().UUID()).String(), nil)
	if err != nil {
		return vs.engine.Env().IOError("reading", filepath.Join(vs.engine.Env().Dir, vector.Folder), err)
	}
	older := set.Exists() && set.LSN() <= vs.Model().Since
	if err := set.Release(); err != nil || !older {
		return err
	}
	return vs.engine.Env().IOError("removing", filepath.Join(vs.engine.Env().Dir, vector.Folder),
		vector.Remove(vs.engine.Env().FS, vs.engine.Env().Dir))
}

// WriteOver writes over the existing vectors, or, where why says that they cannot be used, all of
// them again. What stands stays until the new is in place.
//
// A switch to another model may end meanwhile, and what was computed for it is let go then: the
// documents have it. They are behind the mark, so it begins again as of what is applied now.
func (vs *Vectors) WriteOver(ctx context.Context, held *wal.Held, set *vector.Set, why error, idx *index.Set,
	to wal.Mark, list []index.Change, always bool) (wal.LSN, int, error) {
	for tries := 0; ; tries++ {
		at, dim, err := vs.tryWriteOver(ctx, held, set, why, idx, to, list, always)
		if !errors.Is(err, ErrBehind) || tries == 3 || ctx.Err() != nil {
			return at, dim, err
		}
		to = vs.engine.Log().AppliedMark()
		if list, _, err = vs.engine.StateAt(ctx, idx.LSN(), to.LSN); err != nil {
			return 0, 0, err
		}
	}
}

func (vs *Vectors) tryWriteOver(ctx context.Context, _ *wal.Held, set *vector.Set, why error, idx *index.Set,
	to wal.Mark, list []index.Change, always bool) (wal.LSN, int, error) {
	if why != nil {
		set = vector.Empty()
	}
	began, model := vs.engine.Env().Clock(), vs.Model()
	if set.Exists() && set.LSN() <= model.Since {
		set = vector.Empty() // it was changed since they were loaded
	}
	_, complete := vs.Cover(set, idx)
	complete = complete && why == nil
	// a search made them complete, and the round takes a part only; or what makes them has changed since
	if set.LSN() > to.LSN || model.Since >= to.LSN {
		if complete && set.LSN() > to.LSN {
			return set.LSN(), set.Dim(), nil
		}
		var err error
		to = vs.engine.Log().AppliedMark()
		if list, _, err = vs.engine.StateAt(ctx, idx.LSN(), to.LSN); err != nil {
			return 0, 0, err
		}
	}
	p := &vectorPlan{st: vs, ctx: ctx, idx: idx, set: set, model: model}
	if err := p.collect(list, complete); err != nil {
		return 0, 0, err
	}
	metric, dim := vs.Shape(set, &model)
	if p.dim = dim; dim == 0 {
		var err error
		if p.dim, err = p.decide(); err != nil {
			return 0, 0, err
		}
	}
	if p.dim == 0 || len(p.edits[0])+len(p.edits[1]) == 0 && !(always && set.HasDelta()) {
		_, named, _ := index.Vectors(idx) // a store keeps its dimension when its last vector goes
		return set.LSN(), cmp.Or(set.Dim(), named), nil
	}
	plan, err := vector.List(p.edits, p.vector)
	if err != nil {
		return 0, 0, err
	}
	target := vector.Target{
		FS: vs.engine.Env().FS, Dir: vs.engine.Env().Dir,
		Temp: filepath.Join(vs.engine.Env().Dir, "tmp", "index."+vs.engine.Token()+".vectors"),
		Perm: vs.engine.Env().FileMode, FolderPerm: vs.engine.Env().FolderMode,
		Store: uuid.UUID(vs.engine.Log().UUID()).String(), LSN: to.LSN, Chain: to.Sum, Now: vs.engine.Env().Clock(),
		Metric: metric, Dim: p.dim, Model: vs.Recorded(set),
	}
	write := vector.WriteDelta
	// Over a base as of the same position there is no delta: nothing was written since, but the
	// index was rebuilt.
	if always || set.MergeDue(vs.engine.Env().System.SmallVectors) || !set.HasDelta() && set.LSN() == to.LSN {
		write = vector.WriteBase
	}
	w, err := write(set, target, plan)
	if err != nil {
		return 0, 0, fmt.Errorf("writing the vectors: %w",
			vs.engine.Env().IOError("writing", filepath.Join(vs.engine.Env().Dir, vector.Folder), err))
	}
	took := vs.engine.Env().Clock().Sub(began)
	if why != nil {
		vs.engine.Env().Logger.Warn("the vectors were rebuilt", "why", why, "vectors", w.Vectors)
		vs.engine.Env().Event(env.Event{Kind: env.EventVectorsRebuilt, Path: w.Name, LSN: w.LSN, Bytes: w.Size,
			Count: int(w.Vectors), Took: took, Err: why})
	} else {
		vs.engine.Env().Event(env.Event{Kind: env.EventVectors, Path: w.Name, LSN: w.LSN, Bytes: w.Size,
			Count: int(w.Vectors), Took: took})
	}
	return w.LSN, p.dim, nil
}

// anyVector reports whether a change brings a vector, or may.
func anyVector(list []index.Change) bool {
	for i := range list {
		if c := &list[i]; !c.Deleted && lineDimension(c.Finished) != 0 {
			return true
		}
	}
	return false
}

var lineDimensionMember = []byte(`,"dimension":`)

// lineDimension is the dimension that a line names, without reading all of it;
// inside a string this cannot stand. UnknownDimension where it says nothing.
func lineDimension(line []byte) int {
	_, rest, ok := bytes.Cut(line, lineDimensionMember)
	if !ok {
		return index.UnknownDimension
	}
	n := 0
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	d, err := strconv.Atoi(string(rest[:n]))
	if err != nil {
		return index.UnknownDimension
	}
	return d
}

// vectorOf reads the vector that an entry brought.
func vectorOf(e *wal.Entry, dst []float32) ([]float32, error) {
	rec, err := state.Read(e)
	if err != nil {
		return dst, fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	return rec.Vector(dst), nil
}
