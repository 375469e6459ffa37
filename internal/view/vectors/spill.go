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

// Spill writes the vectors as of log position pos, before the index is written, and records in target the position
// up to which the vectors are complete. idx is the current index; list has the changes since that index.
//
// Vectors are derived data. If Spill cannot write them, the index is written without them, and records that it is
// unknown up to which position they are complete. The next caller that needs the vectors compares them with the
// index.
func (vs *Vectors) Spill(ctx context.Context, held *wal.Held, idx *index.Set, pos wal.Mark, list []index.Change,
	always bool, target *index.Target) error {
	at, dim, err := vs.Write(ctx, held, idx, pos, list, always)
	switch {
	case err == nil:
		target.Vectors, target.Dimension, target.VectorsKnown = at, dim, true
		vs.engine.Health().VectorsFailed(nil)
		return nil
	case ctx.Err() != nil:
		return err
	}
	vs.engine.Env().Logger.Warn("cannot write the vectors; a later round completes them", "err", err)
	vs.engine.Env().Event(env.Event{Kind: env.EventVectorsSkipped, Path: vector.Folder, Err: err})
	vs.engine.Health().VectorsFailed(err)
	return nil
}

// Complete writes the vectors that the files lack now. It is for a caller that needs all vectors although the last
// flush could not write them.
func (vs *Vectors) Complete(ctx context.Context) error {
	return vs.CompleteBy(ctx, func(held *wal.Held, idx *index.Set, to wal.Mark, list []index.Change) (wal.LSN, error) {
		at, _, err := vs.Write(ctx, held, idx, to, list, false)
		return at, err
	})
}

// CompleteBy takes flush.lock and calls the function write with the current index, the position of the log, and the
// changes between the two. write returns the position up to which it has completed the vector files; CompleteBy
// records that position.
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

// completeOver does what CompleteBy does, with the index that is mapped now.
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

// Merge writes all vectors into one pair of files. The index must have just been written.
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

// Write brings the vector files up to log position pos. If always is true, Write writes all vectors, otherwise
// only the changes. It returns the position up to which the vectors are complete, and their dimension.
func (vs *Vectors) Write(ctx context.Context, held *wal.Held, idx *index.Set, pos wal.Mark, list []index.Change,
	always bool) (wal.LSN, int, error) {
	// What an index from before a switch of the model records no longer holds (see Cover): the switch may make vectors
	// due, and a search may have written vectors, to which the deletions in list apply.
	if at, dim,
		known := index.Vectors(idx); known && at == 0 && !always && !vs.damaged.Load() && !anyVector(list) &&
		idx.LSN() > vs.Model().Since {
		return 0, dim, nil // there are no vectors, and the changes bring none
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
	at, dim, err := vs.WriteOver(ctx, held, set, why, idx, pos, list, always)
	if err == nil && at == 0 && why == nil {
		err = vs.dropOlderVectors()
	}
	if err != nil && why == nil && errors.Is(err, errs.ErrCorrupt) && vs.engine.Settings().Now().MayRepair() {
		at, dim, err = vs.WriteOver(ctx, held, set, err, idx, pos, list, always)
	}
	if err == nil {
		vs.damaged.Store(false)
	}
	return at, dim, err
}

// dropOlderVectors removes the files of the previous model if the current model has no vectors to replace them: nothing
// uses them, and purged data must not stay in them.
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

// WriteOver writes changes over the existing vector files set. If cause is not nil, cause is the reason why these
// files are unusable, and WriteOver rewrites all vectors. The existing files stay until the new ones are in place.
//
// If a switch of the model ends meanwhile, the vectors computed for the switch are removed, because the documents
// have them now. Those documents are newer than pos, so WriteOver starts again with the current log position.
func (vs *Vectors) WriteOver(ctx context.Context, held *wal.Held, set *vector.Set, cause error, idx *index.Set,
	pos wal.Mark, list []index.Change, always bool) (wal.LSN, int, error) {
	for tries := 0; ; tries++ {
		at, dim, err := vs.tryWriteOver(ctx, held, set, cause, idx, pos, list, always)
		if !errors.Is(err, ErrBehind) || tries == 3 || ctx.Err() != nil {
			return at, dim, err
		}
		pos = vs.engine.Log().AppliedMark()
		if list, _, err = vs.engine.StateAt(ctx, idx.LSN(), pos.LSN); err != nil {
			return 0, 0, err
		}
	}
}

func (vs *Vectors) tryWriteOver(ctx context.Context, _ *wal.Held, set *vector.Set, cause error, idx *index.Set,
	to wal.Mark, list []index.Change, always bool) (wal.LSN, int, error) {
	if cause != nil {
		set = vector.Empty()
	}
	began, model := vs.engine.Env().Clock(), vs.Model()
	if set.Exists() && set.LSN() <= model.Since {
		set = vector.Empty() // the model was changed since they were loaded
	}
	_, complete := vs.Cover(set, idx)
	complete = complete && cause == nil
	// Either a search completed the vectors beyond to, or the model was changed since.
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
		_, named, _ := index.Vectors(idx) // a store keeps its dimension when its last vector is deleted
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
	// No delta is written over a base of the same position: nothing was written since, but the index was rebuilt.
	if always || set.MergeDue(vs.engine.Env().System.SmallVectors) || !set.HasDelta() && set.LSN() == to.LSN {
		write = vector.WriteBase
	}
	w, err := write(set, target, plan)
	if err != nil {
		return 0, 0, fmt.Errorf("writing the vectors: %w",
			vs.engine.Env().IOError("writing", filepath.Join(vs.engine.Env().Dir, vector.Folder), err))
	}
	took := vs.engine.Env().Clock().Sub(began)
	if cause != nil {
		vs.engine.Env().Logger.Warn("rebuilt the vectors", "why", cause, "vectors", w.Vectors)
		vs.engine.Env().Event(env.Event{Kind: env.EventVectorsRebuilt, Path: w.Name, LSN: w.LSN, Bytes: w.Size,
			Count: int(w.Vectors), Took: took, Err: cause})
	} else {
		vs.engine.Env().Event(env.Event{Kind: env.EventVectors, Path: w.Name, LSN: w.LSN, Bytes: w.Size,
			Count: int(w.Vectors), Took: took})
	}
	return w.LSN, p.dim, nil
}

// anyVector reports whether any change in the list adds a vector, or may add one.
func anyVector(list []index.Change) bool {
	for i := range list {
		if c := &list[i]; !c.Deleted && lineDimension(c.Finished) != 0 {
			return true
		}
	}
	return false
}

var lineDimensionMember = []byte(`,"dimension":`)

// lineDimension returns the dimension of the vector according to an index line. It returns UnknownDimension if the line
// does not record a dimension. It searches for the text of the JSON member's name, which cannot occur inside a JSON
// string.
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

// vectorOf appends to dst the vector of the document in a log entry.
func vectorOf(e *wal.Entry, dst []float32) ([]float32, error) {
	rec, err := state.Read(e)
	if err != nil {
		return dst, fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	return rec.Vector(dst), nil
}
