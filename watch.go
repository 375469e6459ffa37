package varve

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/wal"
)

// Change is one committed change of one memory or one assembly, by whatever process.
type Change struct {
	LSN      uint64    // the version that it made; the changes of a batch have rising ones
	Next     uint64    // where to go on: Watch(ctx, Next)
	Time     time.Time // of the commit
	Kind     string    // "memory" or "assembly"
	ID       string
	Deleted  bool
	Memory   Memory   // as it was written; zero when deleted
	Assembly Assembly // likewise
	More     bool     // the batch goes on in the next change
}

// Watch yields every change from a position on, in the order of their commits, each
// once, and then waits for more until ctx ends, which is the last error, the store is
// closed, or the loop is left. Where to start: at Stats().Durable for what is to come,
// at the Next of the last change seen to go on, at PositionAt a time, at 0 for as far
// back as log and archive reach.
//
// It reads as the loop asks for it, and keeps nothing from being released: a loop that
// is slow is read for from the archive, and once that has moved on the error is a
// *TruncatedError, whose Oldest is the oldest position that still works: list the
// memories, then watch from there. Changes of one commit come only once all of them
// are read, however slow the loop is. Who goes on later and wants whole commits keeps the
// Next of a change without More.
//
// A change that cannot be decoded is yielded with an error, and the next ones follow. Any
// other error is the last.
func (st *Store) Watch(ctx context.Context, from uint64, filters ...WatchFilter) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		w := &watcher{st: st}
		for _, f := range filters {
			f(&w.filters)
		}
		err := w.begin(ctx, from)
		for err == nil {
			err = w.read(ctx)
			for _, e := range w.list {
				if !yield(st.changeOf(e)) {
					return
				}
				if ctx.Err() != nil {
					err = ctx.Err()
					break
				}
			}
		}
		yield(Change{}, err)
	}
}

// watched is an entry that passed the filters.
type watched struct {
	wal.Entry
	kind *engine.Kind
	next wal.LSN
	more bool // another one of the batch passed as well
}

// watcher is one loop over changes. Between two of its steps, while the loop's body
// runs, it is no operation of the store: that may be closed.
type watcher struct {
	st      *Store
	filters watchFilters
	at      wal.LSN // everything before is in list, or was yielded
	list    []watched
}

// begin finds where to read from.
func (w *watcher) begin(ctx context.Context, from wal.LSN) error {
	st := w.st
	if err := st.engine.Begun(); err != nil {
		return err
	}
	defer st.engine.Ended()
	if err := st.engine.Sight(ctx); err != nil {
		return err
	}
	to := st.engine.Log.Durable()
	if from > to {
		return fmt.Errorf("%w: position %d, and the log of %s ends at %d: is it of another store?", errs.ErrInvalid, from, st.engine.Env.Dir, to)
	}
	var err error
	w.at, err = st.engine.Log.Past().From(ctx, from, to)
	return err
}

// watchBytes is how much is read at once; more where one commit has more.
const watchBytes = 1 << 20

// read fills list with the changes of some more commits, and waits for the first of
// them. With an error, list has those before it.
func (w *watcher) read(ctx context.Context) error {
	for w.list = w.list[:0]; len(w.list) == 0; {
		at := w.at
		if err := w.readMore(ctx); err != nil {
			return err
		}
		if w.at > at {
			continue
		}
		if err := w.st.awaitBeyond(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

// readMore reads some of what is durable by now, if there is any.
func (w *watcher) readMore(ctx context.Context) error {
	st := w.st
	if err := st.engine.Begun(); err != nil {
		return err
	}
	defer st.engine.Ended()
	to := st.engine.Log.Durable()
	if w.at >= to {
		return ctx.Err()
	}
	if w.at >= st.engine.Log.Spilled() {
		err := w.collect(ctx, to, st.engine.Log.Scan(ctx, w.at))
		if !errors.Is(err, errs.ErrTruncated) {
			return err
		}
		// Released under the reader: the archive has it.
	}
	return w.collect(ctx, to, st.engine.Log.History(ctx, w.at))
}

// collect takes whole batches, those up to a position or as many as are read at once.
func (w *watcher) collect(ctx context.Context, to wal.LSN, entries iter.Seq2[wal.Entry, error]) error {
	whole, bytes := len(w.list), 0 // of the list, up to the end of a batch
	for e, err := range entries {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			w.list = w.list[:whole]
			return err
		}
		if k := w.st.engine.Kinds.Of(e.Key); k != nil && w.filters.pass(ctx, w.st, k, &e) {
			bytes += int(e.Size)
			w.list = append(w.list, watched{Entry: e, kind: k, next: e.LSN + e.Size, more: true})
		}
		if e.More {
			continue
		}
		w.at = e.LSN + e.Size
		if whole < len(w.list) {
			whole = len(w.list)
			w.list[whole-1].next, w.list[whole-1].more = w.at, false
		}
		if bytes >= watchBytes {
			return nil
		}
	}
	w.at = max(w.at, to) // what stands at the end is the log's own
	return nil
}

// The pauses between two looks at what other processes have committed, where nobody
// can be woken.
const (
	watchFirst = time.Millisecond
	watchMost  = 20 * time.Millisecond
)

// awaitBeyond returns once the log is durable beyond a position. While it sleeps the
// store may be closed.
func (st *Store) awaitBeyond(ctx context.Context, from uint64) error {
	looked := st.engine.Env.Clock()
	for pause := watchFirst; ; pause = min(2*pause, watchMost) {
		if err := st.engine.Begun(); err != nil {
			return err
		}
		moved := st.engine.Log.Moved()
		err := st.engine.MovedSince()
		if err == nil {
			err = st.engine.Log.CatchUp(ctx)
		}
		durable := st.engine.Log.Durable()
		if now := st.engine.Env.Clock(); err == nil && durable <= from && (now.Sub(looked) >= engine.MovedLook || now.Before(looked)) {
			looked, err = now, st.engine.Log.InPlace()
		}
		st.engine.Ended()
		if err != nil || durable > from {
			return err
		}
		if moved == nil {
			err = st.engine.Env.Sleep(ctx, pause)
		} else {
			select {
			case <-moved:
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		if err != nil {
			return err
		}
	}
}

// changeOf decodes what was written.
func (st *Store) changeOf(e watched) (Change, error) {
	c := Change{Kind: e.kind.Noun, LSN: e.LSN, Next: e.next, Time: e.Time, ID: e.Key[1:], Deleted: e.Delete, More: e.more}
	if e.Delete {
		return c, nil
	}
	v, err := st.versionOf(e.kind, e.Entry)
	if err != nil {
		return c, err
	}
	doc := engine.Version{LSN: e.LSN, Doc: v.Document}
	if e.kind == st.engine.Kinds.Assemblies {
		c.Assembly, err = st.engine.DecodeAssembly(c.ID, doc)
	} else {
		c.Memory, err = st.engine.Decode(c.ID, doc)
	}
	return c, err
}

// PositionAt is where the first change begins that was committed at a time or later:
// from there on Watch yields them. A *TruncatedError when log and archive do not reach
// back to that time.
func (st *Store) PositionAt(ctx context.Context, t time.Time) (uint64, error) {
	if err := st.engine.Begun(); err != nil {
		return 0, err
	}
	defer st.engine.Ended()
	if err := st.engine.Sight(ctx); err != nil {
		return 0, err
	}
	return st.engine.Log.Past().Since(ctx, t, st.engine.Log.Durable())
}
