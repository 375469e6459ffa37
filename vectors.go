package varve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// vectors is what this process has of the vectors. Nothing of it exists before
// the first search: putting and deleting pays nothing for it.
type vectors struct {
	engine *engine.Engine

	lock engine.CtxMutex // for these
	view *vector.View
	upTo wal.LSN       // below which the view's overlay has everything since
	by   uint64        // index.Model.Since of what its vectors are made by
	of   engine.Tables // of the index that from was found with

	rotten atomic.Bool // a search met damage: they are to be verified, and made anew if need be

	mu     sync.Mutex
	heal   healed
	looked looked
	known  atomic.Int64 // looked.dim, for who must not wait for mu

	side computedIndex

	// What stands above gives these.

	embedder func() string // the name of what this process asks for embeddings, "" when it asks nothing
	// older is the composite of an assembly that was composed under an older model.
	older func(ctx context.Context, model *index.Model, p *engine.Parsed) ([]float32, error)
}

// healed remembers that the vectors were compared with an index that does not say
// itself which of them are complete.
type healed struct {
	of   engine.Tables
	view wal.LSN // of the vectors
	upTo wal.LSN // as of which they were complete
}

func (vs *vectors) close() error {
	if vs.view == nil {
		return nil
	}
	err := vs.view.Release()
	vs.view = nil
	return err
}

// errBehind: the overlay cannot be filled any more, for the index that stands now
// took in what lies between.
var errBehind = errors.New("the index has gone on")

// vectorView is the vectors as of now, with a reference for the caller.
func (vs *vectors) vectorView(ctx context.Context) (*vector.View, error) {
	if err := vs.lock.Lock(ctx); err != nil {
		return nil, err
	}
	defer vs.lock.Unlock()
	var last error
	for range engine.FindTries {
		if err := vs.engine.Sight(ctx); err != nil {
			return nil, err
		}
		last = vs.fillView(ctx)
		if last == nil && vs.view.Retain() {
			return vs.view, nil
		}
		switch {
		case last == nil, errors.Is(last, errBehind):
		case errors.Is(last, errs.ErrTruncated), errors.Is(last, engine.ErrMoved):
			_ = vs.engine.Refresh()
		default:
			return nil, last
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("vectors: the log is released faster than it can be read: %w", last)
}

// fillView brings the view up to what is applied; vs.lock is held.
func (vs *vectors) fillView(ctx context.Context) error {
	set := vs.engine.State.Set()
	if set == nil {
		return errs.ErrClosed
	}
	of := engine.TablesOf(set)
	_ = set.Release() // the pointers are only compared
	if vs.view == nil || of != vs.of || vs.vectorsBy().Since != vs.by || vs.reshaped(vs.view) {
		if err := vs.openView(ctx); err != nil {
			return err
		}
	}
	at := vs.engine.Log.Applied()
	if at == vs.upTo {
		return nil
	}
	list := vs.engine.State.Changes(vs.upTo, 1<<62)
	model := vs.vectorsBy()
	if vs.engine.State.From() > vs.upTo || model.Since != vs.by {
		vs.of = engine.Tables{}
		return errBehind
	}
	r := vs.engine.Log.Reader()
	for _, c := range list {
		e, err := r.At(ctx, c.Pos)
		if err != nil {
			return err
		}
		if err := vs.overlayVector(ctx, vs.view, &e, &model); err != nil {
			return vs.vectorFault(err)
		}
	}
	vs.upTo = at
	return nil
}

// reshaped says that config.json wants other vectors than a view has.
func (vs *vectors) reshaped(view *vector.View) bool {
	model := vs.vectorsBy()
	metric, dim := vs.vectorShape(view.Set(), &model)
	return metric != view.Metric() || dim != 0 && view.Dim() != 0 && dim != view.Dim()
}

// overlayVector tells a view of an entry. A vector that does not fit leaves its
// memory without one.
func (vs *vectors) overlayVector(ctx context.Context, view *vector.View, e *wal.Entry, model *index.Model) error {
	kind, ok := vectorKind(e.Key[0])
	if !ok {
		return nil
	}
	rec, err := state.Read(e)
	if err != nil {
		return fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	if e.Delete || rec.Dims() == 0 && !model.Older(e.LSN, 0) {
		return view.Delete(kind, e.Key[1:])
	}
	number, err := frameNumber(&rec, e.LSN)
	if err != nil {
		return err
	}
	embedding := rec.Vector(nil)
	if model.Older(e.LSN, number) {
		if embedding, err = vs.olderVector(ctx, model, vs.engine.Kinds.Of(e.Key), e.Key[1:], e.LSN); err != nil {
			return err
		}
		if len(embedding) == 0 {
			return view.Delete(kind, e.Key[1:])
		}
	}
	err = view.Put(kind, e.Key[1:], number, embedding)
	if errors.Is(err, vector.ErrDimension) {
		return nil
	}
	return err
}

func vectorKind(key byte) (vector.Kind, bool) {
	switch key {
	case record.Memory:
		return vector.Memories, true
	case record.Assembly:
		return vector.Assemblies, true
	}
	return 0, false
}

// frameNumber is the number of the vector that an entry brings or keeps.
func frameNumber(rec *record.View, at wal.LSN) (int64, error) {
	line, err := index.ParseLine(rec.Line)
	if err != nil {
		return 0, fmt.Errorf("line of entry %d: %w", at, err)
	}
	line.Version = at
	return line.VectorNumber(), nil
}

// openView loads the vectors that stand, makes up for what they lack, and lays an
// empty overlay over them; v.lock is held. What cannot be written, because this
// handle may not or the disk is full, lies in the heap.
func (vs *vectors) openView(ctx context.Context) error {
	inHeap := vs.engine.Writable() != nil
	for tries := 0; ; tries++ {
		idx := vs.engine.State.Set()
		if idx == nil {
			return errs.ErrClosed
		}
		done, err := vs.tryView(ctx, idx, inHeap)
		err = errors.Join(err, idx.Release())
		if done || err != nil {
			return err
		}
		if tries == 3 {
			return fmt.Errorf("%w: the vectors do not become complete", errBehind)
		}
		switch err := vs.healVectors(ctx); {
		case err == nil:
		case ctx.Err() != nil, errors.Is(err, errs.ErrClosed), errors.Is(err, errs.ErrTruncated), errors.Is(err, engine.ErrMoved):
			return err
		default:
			vs.engine.Env.Logger.Warn("the vectors could not be made complete; this search has the rest in memory", "err", err)
			inHeap = true
		}
	}
}

// tryView is false when the vectors have to be made complete first.
func (vs *vectors) tryView(ctx context.Context, idx *index.Set, inHeap bool) (done bool, err error) {
	rotten := vs.rotten.Load() && vs.engine.Settings.Now().MayRepair()
	if rotten && !inHeap {
		return false, vs.close()
	}
	var prev *vector.Set
	if vs.view != nil {
		prev = vs.view.Set()
	}
	set, why := vector.Empty(), error(nil)
	if !rotten {
		if set, why = vs.loadVectors(prev); set == nil {
			return false, why
		}
	}
	if why != nil && !vs.engine.Settings.Now().MayRepair() {
		return false, errors.Join(why, set.Release())
	}
	model := vs.vectorsBy()
	if set.Exists() && set.LSN() <= model.Since {
		return false, errors.Join(errBehind, set.Release()) // it was changed while they were loaded
	}
	from, complete := vs.vectorsCover(set, idx)
	if !complete && !inHeap {
		return false, set.Release()
	}
	metric, dim := vs.vectorShape(set, &model)
	view, err := vector.NewView(set, metric, dim)
	if err != nil {
		return false, errors.Join(vs.vectorFault(err), set.Release())
	}
	if !complete {
		from = idx.LSN()
		if err := vs.patchView(ctx, view, idx, &model); err != nil {
			return false, errors.Join(vs.vectorFault(err), view.Release())
		}
	}
	err = vs.close()
	vs.view, vs.upTo, vs.of, vs.by = view, from, engine.TablesOf(idx), model.Since
	return true, err
}

// vectorFault is what becomes of an error of the vectors: damage is looked at
// under flush.lock and mended, and then the caller begins again (errBehind).
// vs.lock is held.
func (vs *vectors) vectorFault(err error) error {
	if !errors.Is(err, errs.ErrCorrupt) {
		return err
	}
	if !vs.engine.Settings.Now().MayRepair() {
		return err
	}
	// Not even the mapped pages of what is sound are kept: they may be the damage.
	if vs.rotten.CompareAndSwap(false, true) {
		vs.engine.Env.Event(env.Event{Kind: env.EventCorruption, Path: vector.Folder, Err: err})
	}
	return errors.Join(errBehind, vs.close())
}

// loadVectors maps the vectors that stand, an empty set where they cannot be used
// (and why), or nothing when they cannot be read just now.
func (vs *vectors) loadVectors(prev *vector.Set) (*vector.Set, error) {
	set, err := vector.Load(vs.engine.Env.FS, vs.engine.Env.Dir, uuid.UUID(vs.engine.Log.UUID()).String(), prev)
	if err == nil && set.Exists() && set.LSN() <= vs.vectorsBy().Since {
		return vector.Empty(), set.Release() // they are an older model's
	}
	if err == nil {
		if why := vs.strangeVectors(set); why != nil {
			return vector.Empty(), errors.Join(why, set.Release())
		}
		return set, nil
	}
	if errors.Is(err, errs.ErrCorrupt) || errors.Is(err, vector.ErrForeign) {
		return vector.Empty(), err
	}
	return nil, vs.engine.Env.IOError("reading", filepath.Join(vs.engine.Env.Dir, vector.Folder), err)
}

// strangeVectors says why vectors that are sound cannot be this store's as it is.
func (vs *vectors) strangeVectors(set *vector.Set) error {
	if !set.Exists() {
		return nil
	}
	end := vs.engine.Log.AppliedMark()
	switch {
	case set.LSN() > end.LSN && set.LSN() > vs.engine.Log.Durable():
		return fmt.Errorf("%s covers the log up to %d, which ends at %d", vector.BaseMapping, set.LSN(), end.LSN)
	case set.LSN() == end.LSN && set.Chain() != fmt.Sprintf("%016x", end.Sum):
		return fmt.Errorf("%s was written for a log that differs from this one before %d", vector.BaseMapping, end.LSN)
	}
	// While the log has the place it says what stood before it, and that a frame
	// begins there, unless the log goes on in the next segment.
	if at := set.LSN(); at >= vs.engine.Log.Spilled() && at < end.LSN {
		m, err := vs.engine.Log.MarkBefore(context.Background(), at)
		if err == nil && set.Chain() != fmt.Sprintf("%016x", m.Sum) || errors.Is(err, segment.ErrHeader) {
			return fmt.Errorf("%s was written for a log that differs from this one before %d", vector.BaseMapping, at)
		}
	}
	model := vs.vectorsBy()
	if metric, dim := vs.vectorShape(set, &model); metric != set.Metric() || dim != set.Dim() {
		return fmt.Errorf("%s has %d dimensions, %v, and %s wants %d, %v", vector.BaseMapping, set.Dim(), set.Metric(), settings.Name, dim, metric)
	}
	return nil
}

// vectorShape is the metric and the dimension that the store's vectors are to
// have; 0 where no vector has said so yet.
func (vs *vectors) vectorShape(set *vector.Set, model *index.Model) (vector.Metric, int) {
	c := vs.engine.Settings.Now().VectorSettings()
	metric, err := vector.ParseMetric(c.Metric)
	if err != nil || c.Metric == "" && set.Exists() {
		metric = set.Metric()
	}
	if d := decidedDimension(model, c.Dimension); d != 0 {
		return metric, d
	}
	return metric, set.Dim()
}

// vectorModel is what is recorded with the vectors: what a switch or config.json says, else
// the embedder of this process, else what was recorded before.
func (vs *vectors) vectorModel(set *vector.Set) string {
	if by := vs.engine.State.Model(); by.Name != "" {
		return by.Name
	}
	return cmp.Or(vs.engine.Settings.Now().VectorsModel(), vs.embedder(), set.Model())
}

// vectorsCover says as of which position the vectors are complete, if they are as
// of the index's at least.
func (vs *vectors) vectorsCover(set *vector.Set, idx *index.Set) (wal.LSN, bool) {
	if at, _, known := index.Vectors(idx); known && set.LSN() >= at {
		return max(set.LSN(), idx.LSN()), true
	}
	vs.mu.Lock()
	h := vs.heal
	vs.mu.Unlock()
	if h.of == engine.TablesOf(idx) && h.upTo != 0 {
		if set.LSN() == h.view {
			return max(h.upTo, idx.LSN()), true
		}
		if set.LSN() >= max(h.upTo, idx.LSN()) {
			return set.LSN(), true
		}
	}
	return 0, false
}
