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

// Vectors are the vectors of a store as this process uses them. The view that searches use is created by the
// first search, so puts and deletes do not pay for it.
type Vectors struct {
	engine *engine.Engine

	Lock engine.CtxMutex // guards view, upTo, by and of
	view *vector.View
	upTo wal.LSN       // the overlay of view has all changes below this position
	by   uint64        // value of index.Model.Since for the model of the view's vectors
	of   engine.Tables // base and delta of the index with which view was opened

	damaged atomic.Bool // a search found damage: verify the files, and rebuild them if necessary

	Mu     sync.Mutex
	Heal   Healed
	looked looked
	Known  atomic.Int64 // copy of looked.dim for callers that must not wait for Mu

	side computedIndex

	host Host
}

// Host has the functions that Vectors calls in the packages above it: the embedder and the committer.
type Host interface {
	// Embedder returns the name of the model of this process's embedder, or "" if it has none.
	Embedder() string
	// OlderComposite returns the composite embedding of an assembly that was last written under an older
	// model.
	OlderComposite(ctx context.Context, model *index.Model, p *engine.Parsed) ([]float32, error)
}

// New returns the vectors of a store. It reads no file.
func New(eng *engine.Engine, host Host) *Vectors {
	return &Vectors{engine: eng, host: host, Lock: engine.NewMutex()}
}

// Damaged returns a flag that a search sets when it finds damage in the vector files. The next flush then verifies the
// files, and rebuilds them if necessary.
func (vs *Vectors) Damaged() *atomic.Bool { return &vs.damaged }

// Computed returns the index of the file vector_index/reembed, which is used while a re-embedding rewrites the
// documents after a switch of the model.
func (vs *Vectors) Computed() *computedIndex { return &vs.side }

// Healed records how far the last call of CompleteBy has completed the vector files. The index does not record this. So
// Healed is used only while the index in the field of is the current one.
type Healed struct {
	of   engine.Tables
	view wal.LSN // position of the vector files
	upTo wal.LSN // position up to which the files were complete
}

// Close releases the mapped vector files.
func (vs *Vectors) Close() error {
	if vs.view == nil {
		return nil
	}
	err := vs.view.Release()
	vs.view = nil
	return err
}

// ErrBehind means that an operation must start again, because the data that it used was replaced. Causes are: a newer
// index has replaced the index of a view and the log between the two indexes was released, so the overlay of the view
// cannot be updated; the model was changed; the files are damaged.
var ErrBehind = errors.New("a newer index has replaced the index of the vectors in memory")

// View returns the vectors as of now. The caller must release the view.
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
	return nil, fmt.Errorf("vectors: the log is released faster than the overlay can read it: %w", last)
}

// fillView updates the view to the position up to which the log is applied. The caller holds vs.Lock.
func (vs *Vectors) fillView(ctx context.Context) error {
	set := vs.engine.State().Set()
	if set == nil {
		return errs.ErrClosed
	}
	of := engine.TablesOf(set)
	_ = set.Release() // the tables are only compared by address
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

// reshaped reports whether config.json now requires another metric or dimension than the view has.
func (vs *Vectors) reshaped(view *vector.View) bool {
	model := vs.Model()
	metric, dim := vs.Shape(view.Set(), &model)
	return metric != view.Metric() || dim != 0 && view.Dim() != 0 && dim != view.Dim()
}

// overlayVector applies a log entry to a view's overlay. If the embedding of a document has another dimension than the
// view, the document has no vector in the view.
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

// KindOf returns the kind of vectors for a kind of documents, given by the first letter of its log keys; false
// if such documents have no vectors.
func KindOf(key byte) (vector.Kind, bool) {
	if k := kind.Lettered(key); k != nil && k.Vectors {
		return k.VectorKind(), true
	}
	return 0, false
}

// frameNumber returns the vector number that the index line in the log entry at position pos gives: the number of
// the vector that the entry adds or keeps.
func frameNumber(rec *record.View, pos wal.LSN) (int64, error) {
	line, err := index.ParseLine(rec.Line)
	if err != nil {
		return 0, fmt.Errorf("the index line in log entry %d is invalid: %w", pos, err)
	}
	line.Version = pos
	return line.VectorNumber(), nil
}

// openView loads the existing vector files, completes them, and starts with an empty overlay. The caller holds
// vs.Lock. Vectors that cannot be written, because the store is open read-only or the disk is full, stay on
// the heap.
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
			return fmt.Errorf("%w: the vectors are still incomplete after several attempts", ErrBehind)
		}
		switch err := vs.Complete(ctx); {
		case err == nil:
		case ctx.Err() != nil, errors.Is(err, errs.ErrClosed), errors.Is(err, errs.ErrTruncated),
			errors.Is(err, engine.ErrMoved):
			return err
		default:
			vs.engine.Env().Logger.Warn("the vector files could not be completed; this search keeps the missing "+
				"vectors in memory", "err", err)
			inHeap = true
		}
	}
}

// tryView opens a view that combines the vector files with the index idx. done is false if the vector files must be
// completed first. If inHeap is true, they cannot be completed, and tryView computes the missing vectors in memory.
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
		return false, errors.Join(ErrBehind, set.Release()) // the model was changed while they were loaded
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

// Fault handles err, an error of reading the vector files. If err means damage and repairs are allowed, Fault marks the
// files to be verified and repaired under flush.lock, and returns ErrBehind; the caller then starts again. Otherwise it
// returns err. The caller holds vs.Lock.
func (vs *Vectors) Fault(err error) error {
	if !errors.Is(err, errs.ErrCorrupt) {
		return err
	}
	if !vs.engine.Settings().Now().MayRepair() {
		return err
	}
	// Mapped pages of undamaged files are dropped as well: they may be what is damaged.
	if vs.damaged.CompareAndSwap(false, true) {
		vs.engine.Env().Event(env.Event{Kind: env.EventCorruption, Path: vector.Folder, Err: err})
	}
	return errors.Join(ErrBehind, vs.Close())
}

// Load maps the existing vector files. If the files are unusable, it returns an empty set and the reason. If the files
// cannot be read at the moment, it returns nil and the error. It treats files of an older model as missing, and returns
// an empty set without a reason for them.
func (vs *Vectors) Load(prev *vector.Set) (*vector.Set, error) {
	set, err := vector.Load(vs.engine.Env().FS, vs.engine.Env().Dir, uuid.UUID(vs.engine.Log().UUID()).String(), prev)
	if err == nil && set.Exists() && set.LSN() <= vs.Model().Since {
		return vector.Empty(), set.Release() // they belong to an older model
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

// strangeVectors returns an error that explains why undamaged vector files do not belong to the store in its
// current state, or nil if they do.
func (vs *Vectors) strangeVectors(set *vector.Set) error {
	if !set.Exists() {
		return nil
	}
	end := vs.engine.Log().AppliedMark()
	switch {
	case set.LSN() > end.LSN && set.LSN() > vs.engine.Log().Durable():
		return fmt.Errorf("%s covers the log up to position %d, but the log ends at position %d", vector.BaseMapping,
			set.LSN(), end.LSN)
	case set.LSN() == end.LSN && set.Chain() != fmt.Sprintf("%016x", end.Sum):
		return fmt.Errorf("%s was written for a log that differs from this one before position %d",
			vector.BaseMapping, end.LSN)
	}
	// While the log has the position, it has the checksum before it. A missing frame header there is a difference as
	// well, unless the log continues in the next segment.
	if at := set.LSN(); at >= vs.engine.Log().Spilled() && at < end.LSN {
		m, err := vs.engine.Log().MarkBefore(context.Background(), at)
		if err == nil && set.Chain() != fmt.Sprintf("%016x", m.Sum) || errors.Is(err, segment.ErrHeader) {
			return fmt.Errorf("%s was written for a log that differs from this one before position %d",
				vector.BaseMapping, at)
		}
	}
	model := vs.Model()
	if metric, dim := vs.Shape(set, &model); metric != set.Metric() || dim != set.Dim() {
		return fmt.Errorf("%s has %d dimensions and the metric %v, but %s requires %d and %v", vector.BaseMapping,
			set.Dim(), set.Metric(), settings.Name, dim, metric)
	}
	return nil
}

// Meaningful reports whether vector v can be compared with others. A vector without numbers cannot. Unless the metric
// is L2, a vector of zeros cannot either: it has no direction, so its cosine similarity with every vector is 0.
func (vs *Vectors) Meaningful(v []float32) bool {
	return len(v) > 0 && (vector.Norm(v) > 0 || vs.engine.Settings().Now().VectorSettings().Metric == vector.L2.String())
}

// Shape returns the metric and the dimension that the store's vectors must have; the dimension is 0 if no vector has
// determined it yet.
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

// Recorded returns the model name to record with the vectors: the name from the last switch or from config.json, else
// that of this process's embedder, else the name recorded before.
func (vs *Vectors) Recorded(set *vector.Set) string {
	if by := vs.engine.State().Model(); by.Name != "" {
		return by.Name
	}
	return cmp.Or(vs.engine.Settings().Now().VectorsModel(), vs.host.Embedder(), set.Model())
}

// Cover returns the position up to which the vector files are complete, and whether that is at least the
// position of the index.
//
// Files complete up to a position before model.Since belong to another model. An empty set (LSN 0) is the same
// before and after a switch, but what it lacks differs: a memory without an embedding before the switch may
// have a vector after it, the one that was computed for it.
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
