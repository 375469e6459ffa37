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
	lock ctxMutex // for these
	view *vector.View
	upTo wal.LSN // below which the view's overlay has everything since
	by   uint64  // index.Model.Since of what its vectors are made by
	of   tables  // of the index that from was found with

	rotten atomic.Bool // a search met damage: they are to be verified, and made anew if need be

	mu     sync.Mutex
	heal   healed
	looked looked
	known  atomic.Int64 // looked.dim, for who must not wait for mu
}

// healed remembers that the vectors were compared with an index that does not say
// itself which of them are complete.
type healed struct {
	of   tables
	view wal.LSN // of the vectors
	upTo wal.LSN // as of which they were complete
}

// ctxMutex is a mutex whose waiters honour their context.
type ctxMutex struct{ held chan struct{} }

func newMutex() ctxMutex { return ctxMutex{make(chan struct{}, 1)} }

func (s ctxMutex) lock(ctx context.Context) error {
	select {
	case s.held <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s ctxMutex) unlock() { <-s.held }

func (v *vectors) close() error {
	if v.view == nil {
		return nil
	}
	err := v.view.Release()
	v.view = nil
	return err
}

// errBehind: the overlay cannot be filled any more, for the index that stands now
// took in what lies between.
var errBehind = errors.New("the index has gone on")

// vectorView is the vectors as of now, with a reference for the caller.
func (st *Store) vectorView(ctx context.Context) (*vector.View, error) {
	v := &st.vectors
	if err := v.lock.lock(ctx); err != nil {
		return nil, err
	}
	defer v.lock.unlock()
	var last error
	for range findTries {
		if err := st.sight(ctx); err != nil {
			return nil, err
		}
		last = st.fillView(ctx)
		if last == nil && v.view.Retain() {
			return v.view, nil
		}
		switch {
		case last == nil, errors.Is(last, errBehind):
		case errors.Is(last, errs.ErrTruncated), errors.Is(last, errMoved):
			_ = st.refresh()
		default:
			return nil, last
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("vectors: the log is released faster than it can be read: %w", last)
}

// fillView brings the view up to what is applied; v.lock is held.
func (st *Store) fillView(ctx context.Context) error {
	v := &st.vectors
	set := st.state.Set()
	if set == nil {
		return errs.ErrClosed
	}
	of := tablesOf(set)
	_ = set.Release() // the pointers are only compared
	if v.view == nil || of != v.of || st.vectorsBy().Since != v.by || st.reshaped(v.view) {
		if err := st.openView(ctx); err != nil {
			return err
		}
	}
	at := st.log.Applied()
	if at == v.upTo {
		return nil
	}
	list := st.state.Changes(v.upTo, 1<<62)
	model := st.vectorsBy()
	if st.state.From() > v.upTo || model.Since != v.by {
		v.of = tables{}
		return errBehind
	}
	r := st.log.Reader()
	for _, c := range list {
		e, err := r.At(ctx, c.Pos)
		if err != nil {
			return err
		}
		if err := st.overlayVector(ctx, v.view, &e, &model); err != nil {
			return st.vectorFault(err)
		}
	}
	v.upTo = at
	return nil
}

// reshaped says that config.json wants other vectors than a view has.
func (st *Store) reshaped(view *vector.View) bool {
	model := st.vectorsBy()
	metric, dim := st.vectorShape(view.Set(), &model)
	return metric != view.Metric() || dim != 0 && view.Dim() != 0 && dim != view.Dim()
}

// overlayVector tells a view of an entry. A vector that does not fit leaves its
// memory without one.
func (st *Store) overlayVector(ctx context.Context, view *vector.View, e *wal.Entry, model *index.Model) error {
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
		if embedding, err = st.olderVector(ctx, model, st.kinds.kindOf(e.Key), e.Key[1:], e.LSN); err != nil {
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
func (st *Store) openView(ctx context.Context) error {
	inHeap := st.writable() != nil
	for tries := 0; ; tries++ {
		idx := st.state.Set()
		if idx == nil {
			return errs.ErrClosed
		}
		done, err := st.tryView(ctx, idx, inHeap)
		err = errors.Join(err, idx.Release())
		if done || err != nil {
			return err
		}
		if tries == 3 {
			return fmt.Errorf("%w: the vectors do not become complete", errBehind)
		}
		switch err := st.healVectors(ctx); {
		case err == nil:
		case ctx.Err() != nil, errors.Is(err, errs.ErrClosed), errors.Is(err, errs.ErrTruncated), errors.Is(err, errMoved):
			return err
		default:
			st.env.Logger.Warn("the vectors could not be made complete; this search has the rest in memory", "err", err)
			inHeap = true
		}
	}
}

// tryView is false when the vectors have to be made complete first.
func (st *Store) tryView(ctx context.Context, idx *index.Set, inHeap bool) (done bool, err error) {
	v := &st.vectors
	rotten := v.rotten.Load() && st.settings.Now().MayRepair()
	if rotten && !inHeap {
		return false, v.close()
	}
	var prev *vector.Set
	if v.view != nil {
		prev = v.view.Set()
	}
	set, why := vector.Empty(), error(nil)
	if !rotten {
		if set, why = st.loadVectors(prev); set == nil {
			return false, why
		}
	}
	if why != nil && !st.settings.Now().MayRepair() {
		return false, errors.Join(why, set.Release())
	}
	model := st.vectorsBy()
	if set.Exists() && set.LSN() <= model.Since {
		return false, errors.Join(errBehind, set.Release()) // it was changed while they were loaded
	}
	from, complete := st.vectorsCover(set, idx)
	if !complete && !inHeap {
		return false, set.Release()
	}
	metric, dim := st.vectorShape(set, &model)
	view, err := vector.NewView(set, metric, dim)
	if err != nil {
		return false, errors.Join(st.vectorFault(err), set.Release())
	}
	if !complete {
		from = idx.LSN()
		if err := st.patchView(ctx, view, idx, &model); err != nil {
			return false, errors.Join(st.vectorFault(err), view.Release())
		}
	}
	err = v.close()
	v.view, v.upTo, v.of, v.by = view, from, tablesOf(idx), model.Since
	return true, err
}

// vectorFault is what becomes of an error of the vectors: damage is looked at
// under flush.lock and mended, and then the caller begins again (errBehind).
// v.lock is held.
func (st *Store) vectorFault(err error) error {
	if !errors.Is(err, errs.ErrCorrupt) {
		return err
	}
	if !st.settings.Now().MayRepair() {
		return err
	}
	// Not even the mapped pages of what is sound are kept: they may be the damage.
	if st.vectors.rotten.CompareAndSwap(false, true) {
		st.env.Event(env.Event{Kind: env.EventCorruption, Path: vector.Folder, Err: err})
	}
	return errors.Join(errBehind, st.vectors.close())
}

// loadVectors maps the vectors that stand, an empty set where they cannot be used
// (and why), or nothing when they cannot be read just now.
func (st *Store) loadVectors(prev *vector.Set) (*vector.Set, error) {
	set, err := vector.Load(st.env.FS, st.env.Dir, uuid.UUID(st.log.UUID()).String(), prev)
	if err == nil && set.Exists() && set.LSN() <= st.vectorsBy().Since {
		return vector.Empty(), set.Release() // they are an older model's
	}
	if err == nil {
		if why := st.strangeVectors(set); why != nil {
			return vector.Empty(), errors.Join(why, set.Release())
		}
		return set, nil
	}
	if errors.Is(err, errs.ErrCorrupt) || errors.Is(err, vector.ErrForeign) {
		return vector.Empty(), err
	}
	return nil, st.env.IOError("reading", filepath.Join(st.env.Dir, vector.Folder), err)
}

// strangeVectors says why vectors that are sound cannot be this store's as it is.
func (st *Store) strangeVectors(set *vector.Set) error {
	if !set.Exists() {
		return nil
	}
	end := st.log.AppliedMark()
	switch {
	case set.LSN() > end.LSN && set.LSN() > st.log.Durable():
		return fmt.Errorf("%s covers the log up to %d, which ends at %d", vector.BaseMapping, set.LSN(), end.LSN)
	case set.LSN() == end.LSN && set.Chain() != fmt.Sprintf("%016x", end.Sum):
		return fmt.Errorf("%s was written for a log that differs from this one before %d", vector.BaseMapping, end.LSN)
	}
	// While the log has the place it says what stood before it, and that a frame
	// begins there, unless the log goes on in the next segment.
	if at := set.LSN(); at >= st.log.Spilled() && at < end.LSN {
		m, err := st.log.MarkBefore(context.Background(), at)
		if err == nil && set.Chain() != fmt.Sprintf("%016x", m.Sum) || errors.Is(err, segment.ErrHeader) {
			return fmt.Errorf("%s was written for a log that differs from this one before %d", vector.BaseMapping, at)
		}
	}
	model := st.vectorsBy()
	if metric, dim := st.vectorShape(set, &model); metric != set.Metric() || dim != set.Dim() {
		return fmt.Errorf("%s has %d dimensions, %v, and %s wants %d, %v", vector.BaseMapping, set.Dim(), set.Metric(), settings.Name, dim, metric)
	}
	return nil
}

// vectorShape is the metric and the dimension that the store's vectors are to
// have; 0 where no vector has said so yet.
func (st *Store) vectorShape(set *vector.Set, model *index.Model) (vector.Metric, int) {
	c := st.settings.Now().VectorSettings()
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
func (st *Store) vectorModel(set *vector.Set) string {
	if by := st.state.Model(); by.Name != "" {
		return by.Name
	}
	model := st.settings.Now().VectorsModel()
	if model == "" && st.o.Embed != nil {
		model = st.o.EmbedModel
	}
	return cmp.Or(model, set.Model())
}

// vectorsCover says as of which position the vectors are complete, if they are as
// of the index's at least.
func (st *Store) vectorsCover(set *vector.Set, idx *index.Set) (wal.LSN, bool) {
	if at, _, known := index.Vectors(idx); known && set.LSN() >= at {
		return max(set.LSN(), idx.LSN()), true
	}
	st.vectors.mu.Lock()
	h := st.vectors.heal
	st.vectors.mu.Unlock()
	if h.of == tablesOf(idx) && h.upTo != 0 {
		if set.LSN() == h.view {
			return max(h.upTo, idx.LSN()), true
		}
		if set.LSN() >= max(h.upTo, idx.LSN()) {
			return set.LSN(), true
		}
	}
	return 0, false
}
