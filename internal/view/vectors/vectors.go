package vectors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// Vectors is what this process has of the vectors. Nothing of it exists before
// the first search: putting and deleting pays nothing for it.
type Vectors struct {
	engine *engine.Engine

	Lock engine.CtxMutex // for these
	view *vector.View
	upTo wal.LSN       // below which the view's overlay has everything since
	by   uint64        // index.Model.Since of what its vectors are made by
	of   engine.Tables // of the index that from was found with

	damaged atomic.Bool // a search met damage: they are to be verified, and rebuilt if need be

	Mu     sync.Mutex
	Heal   Healed
	looked looked
	Known  atomic.Int64 // looked.dim, for who must not wait for mu

	side computedIndex

	host Host
}

// Host is what Vectors calls back: the embedder and the committer, which stand above it.
type Host interface {
	// Embedder returns the name of what this process asks for embeddings, "" if it asks nothing.
	Embedder() string
	// OlderComposite returns the composite of an assembly that was composed under an older model.
	OlderComposite(ctx context.Context, model *index.Model, p *engine.Parsed) ([]float32, error)
}

// New returns the vectors of a store.
func New(eng *engine.Engine, host Host) *Vectors {
	return &Vectors{engine: eng, host: host, Lock: engine.NewMutex()}
}

// Damaged reports whether a search met damage: the vectors are verified in the next round, and rebuilt if need be.
func (vs *Vectors) Damaged() *atomic.Bool { return &vs.damaged }

// Computed returns the vectors that are computed beside the model of today.
func (vs *Vectors) Computed() *computedIndex { return &vs.side }

// Healed remembers that the vectors were compared with an index that does not say
// itself which of them are complete.
type Healed struct {
	of   engine.Tables
	view wal.LSN // of the vectors
	upTo wal.LSN // as of which they were complete
}

// Close lets go what this process has mapped.
func (vs *Vectors) Close() error {
	if vs.view == nil {
		return nil
	}
	err := vs.view.Release()
	vs.view = nil
	return err
}

// ErrBehind says that the overlay cannot be filled any more, since the current index took in what
// is between.
var ErrBehind = errors.New("the index has gone on")

// View is the vectors as of now, with a reference for the caller.
func (vs *Vectors) View(ctx context.Context) (*vector.View, error) {
	if err := vs.Lock.Lock(ctx); err != nil {
		return nil, err
	}
	defer vs.Lock.Unlock()
	var last error
	for range engine.FindTries {
		if err := vs.engine.CatchUp(ctx); err != nil {
			return nil, err
		}
		last = vs.fillView(ctx)
		if last == nil && vs.view.Retain() {
			return vs.view, nil
		}
		switch {
		case last == nil, errors.Is(last, ErrBehind):
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
func (vs *Vectors) fillView(ctx context.Context) error {
	set := vs.engine.State().Set()
	if set == nil {
		return errs.ErrClosed
	}
	of := engine.TablesOf(set)
	_ = set.Release() // the pointers are only compared
	if vs.view == nil || of != vs.of || vs.Model().Since != vs.by || vs.reshaped(vs.view) {
		if err := vs.openView(ctx); err != nil {
			return err
		}
	}
	at := vs.engine.Log().Applied()
	if at == vs.upTo {
		return nil
	}
	list := vs.engine.State().Changes(vs.upTo, 1<<62)
	model := vs.Model()
	if vs.engine.State().From() > vs.upTo || model.Since != vs.by {
		vs.of = engine.Tables{}
		return ErrBehind
	}
	r := vs.engine.Log().Reader()
	for _, c := range list {
		e, err := r.At(ctx, c.Pos)
		if err != nil {
			return err
		}
		if err := vs.overlayVector(ctx, vs.view, &e, &model); err != nil {
			return vs.Fault(err)
		}
	}
	vs.upTo = at
	return nil
}

// reshaped reports whether config.json wants other vectors than a view has.
func (vs *Vectors) reshaped(view *vector.View) bool {
	model := vs.Model()
	metric, dim := vs.Shape(view.Set(), &model)
	return metric != view.Metric() || dim != 0 && view.Dim() != 0 && dim != view.Dim()
}

// overlayVector tells a view of an entry. A vector that does not fit leaves its
// memory without one.
func (vs *Vectors) overlayVector(ctx context.Context, view *vector.View, e *wal.Entry, model *index.Model) error {
	kind, ok := KindOf(e.Key[0])
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
		if embedding, err = vs.olderVector(ctx, model, vs.engine.Kinds().Of(e.Key), e.Key[1:], e.LSN); err != nil {
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

// KindOf is the kind of vectors of a kind of documents; false where it has none.
func KindOf(key byte) (vector.Kind, bool) {
	if k := kind.Lettered(key); k != nil && k.Vectors {
		return k.VectorKind(), true
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
func (vs *Vectors) openView(ctx context.Context) error {
	inHeap := vs.engine.Writable() != nil
	for tries := 0; ; tries++ {
		idx := vs.engine.State().Set()
		if idx == nil {
			return errs.ErrClosed
		}
		done, err := vs.tryView(ctx, idx, inHeap)
		err = errors.Join(err, idx.Release())
		if done || err != nil {
			return err
		}
		if tries == 3 {
			return fmt.Errorf("%w: the vectors stay incomplete", ErrBehind)
		}
		switch err := vs.Complete(ctx); {
		case err == nil:
		case ctx.Err() != nil, errors.Is(err, errs.ErrClosed), errors.Is(err, errs.ErrTruncated),
			errors.Is(err, engine.ErrMoved):
			return err
		default:
			vs.engine.Env().Logger.Warn("the vectors could not be made complete; this search has the rest in memory", "err", err)
			inHeap = true
		}
	}
}

// tryView is false when the vectors have to be made complete first.
func (vs *Vectors) tryView(ctx context.Context, idx *index.Set, inHeap bool) (done bool, err error) {
	rotten := vs.damaged.Load() && vs.engine.Settings().Now().MayRepair()
	if rotten && !inHeap {
		return false, vs.Close()
	}
	var prev *vector.Set
	if vs.view != nil {
		prev = vs.view.Set()
	}
	set, why := vector.Empty(), error(nil)
	if !rotten {
		if set, why = vs.Load(prev); set == nil {
			return false, why
		}
	}
	if why != nil && !vs.engine.Settings().Now().MayRepair() {
		return false, errors.Join(why, set.Release())
	}
	model := vs.Model()
	if set.Exists() && set.LSN() <= model.Since {
		return false, errors.Join(ErrBehind, set.Release()) // it was changed while they were loaded
	}
	from, complete := vs.Cover(set, idx)
	if !complete && !inHeap {
		return false, set.Release()
	}
	metric, dim := vs.Shape(set, &model)
	view, err := vector.NewView(set, metric, dim)
	if err != nil {
		return false, errors.Join(vs.Fault(err), set.Release())
	}
	if !complete {
		from = idx.LSN()
		if err := vs.patchView(ctx, view, idx, &model); err != nil {
			return false, errors.Join(vs.Fault(err), view.Release())
		}
	}
	err = vs.Close()
	vs.view, vs.upTo, vs.of, vs.by = view, from, engine.TablesOf(idx), model.Since
	return true, err
}

// Fault is what becomes of an error of the vectors: damage is looked at
// under flush.lock and mended, and then the caller begins again (ErrBehind).
// vs.lock is held.
func (vs *Vectors) Fault(err error) error {
	if !errors.Is(err, errs.ErrCorrupt) {
		return err
	}
	if !vs.engine.Settings().Now().MayRepair() {
		return err
	}
	// Not even the mapped pages of what is sound are kept: they may be the damage.
	if vs.damaged.CompareAndSwap(false, true) {
		vs.engine.Env().Event(env.Event{Kind: env.EventCorruption, Path: vector.Folder, Err: err})
	}
	return errors.Join(ErrBehind, vs.Close())
}

// Load maps the vectors that stand, an empty set where they cannot be used
// (and why), or nothing when they cannot be read just now.
func (vs *Vectors) Load(prev *vector.Set) (*vector.Set, error) {
	set, err := vector.Load(vs.engine.Env().FS, vs.engine.Env().Dir, uuid.UUID(vs.engine.Log().UUID()).String(), prev)
	if err == nil && set.Exists() && set.LSN() <= vs.Model().Since {
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
	return nil, vs.engine.Env().IOError("reading", filepath.Join(vs.engine.Env().Dir, vector.Folder), err)
}

// strangeVectors says why vectors that are sound cannot be this store's as it is.
func (vs *Vectors) strangeVectors(set *vector.Set) error {
	if !set.Exists() {
		return nil
	}
	end := vs.engine.Log().AppliedMark()
	switch {
	case set.LSN() > end.LSN && set.LSN() > vs.engine.Log().Durable():
		return fmt.Errorf("%s covers the log up to %d, which ends at %d", vector.BaseMapping, set.LSN(), end.LSN)
	case set.LSN() == end.LSN && set.Chain() != fmt.Sprintf("%016x", end.Sum):
		return fmt.Errorf("%s was written for a log that differs from this one before %d", vector.BaseMapping, end.LSN)
	}
	// While the log has the place it says what stood before it, and that a frame
	// begins there, unless the log goes on in the next segment.
	if at := set.LSN(); at >= vs.engine.Log().Spilled() && at < end.LSN {
		m, err := vs.engine.Log().MarkBefore(context.Background(), at)
		if err == nil && set.Chain() != fmt.Sprintf("%016x", m.Sum) || errors.Is(err, segment.ErrHeader) {
			return fmt.Errorf("%s was written for a log that differs from this one before %d", vector.BaseMapping, at)
		}
	}
	model := vs.Model()
	if metric, dim := vs.Shape(set, &model); metric != set.Metric() || dim != set.Dim() {
		return fmt.Errorf("%s has %d dimensions, %v, and %s wants %d, %v", vector.BaseMapping, set.Dim(), set.Metric(),
			settings.Name, dim, metric)
	}
	return nil
}

// Meaningful reports whether a vector is an embedding: one of zeros has no direction, so that by the cosine nothing is
// similar to it.
func (vs *Vectors) Meaningful(v []float32) bool {
	return len(v) > 0 && (vector.Norm(v) > 0 || vs.engine.Settings().Now().VectorSettings().Metric == vector.L2.String())
}

// Shape is the metric and the dimension that the store's vectors are to
// have; 0 where no vector has said so yet.
func (vs *Vectors) Shape(set *vector.Set, model *index.Model) (vector.Metric, int) {
	c := vs.engine.Settings().Now().VectorSettings()
	metric, err := vector.ParseMetric(c.Metric)
	if err != nil || c.Metric == "" && set.Exists() {
		metric = set.Metric()
	}
	if d := decidedDimension(model, c.Dimension); d != 0 {
		return metric, d
	}
	return metric, set.Dim()
}

// Recorded is what is recorded with the vectors: what a switch or config.json says, else
// the embedder of this process, else what was recorded before.
func (vs *Vectors) Recorded(set *vector.Set) string {
	if by := vs.engine.State().Model(); by.Name != "" {
		return by.Name
	}
	return cmp.Or(vs.engine.Settings().Now().VectorsModel(), vs.host.Embedder(), set.Model())
}

// Cover says as of which position the vectors are complete, if they are as
// of the index's at least.
//
// Vectors found complete as of a position up to model.Since are another model's. An empty set (LSN
// 0) is the same before a change of the model and behind it, but what it lacks is not: memories
// that had no embedding before the change have a vector behind it, the one that was computed for
// them.
func (vs *Vectors) Cover(set *vector.Set, idx *index.Set) (wal.LSN, bool) {
	since := vs.Model().Since
	if at, _, known := index.Vectors(idx); known && set.LSN() >= at {
		if up := max(set.LSN(), idx.LSN()); up > since {
			return up, true
		}
	}
	vs.Mu.Lock()
	h := vs.Heal
	vs.Mu.Unlock()
	if h.of == engine.TablesOf(idx) && h.upTo != 0 {
		if up := max(h.upTo, idx.LSN()); set.LSN() == h.view && up > since {
			return up, true
		}
		if set.LSN() >= max(h.upTo, idx.LSN()) {
			return set.LSN(), true
		}
	}
	return 0, false
}
