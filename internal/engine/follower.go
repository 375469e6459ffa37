package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/wal"
)

// Follower keeps a fold, a view computed from log entries, up to date with the mapped index and the overlay. It reads
// each change once.
//
// The overlay drops the entries that a newer index covers. So the follower reads the changes together with the position
// up to which the index covers the log. If this position shows that the fold is based on an older index, the follower
// starts again with the newer index, at most FindTries times. Each new attempt means that another process has made
// progress.
//
// A rebuilt index may differ from the content of the fold, so after a rebuild the fold starts again with Reset. The
// engine maps a rebuilt index before it updates the number of rebuilds. So With reads that number before it gets the
// index: then the index is never older than the number.
type Follower struct {
	Fold view.Fold
	// Passes reports whether a log entry leaves the fold unchanged if its memory has no time to live. If Passes is nil,
	// every entry may change the fold.
	Passes func(set *index.Set) bool
	// Stale reports whether the source of the fold has changed although no index was written. If Stale is nil, this
	// never happens.
	Stale func() bool

	once  sync.Once
	mu    CtxMutex // guards the following fields; made by once
	of    Tables   // index tables on which the fold is based
	from  wal.LSN  // position up to which that index covers the log
	at    wal.LSN  // position below which the fold has all entries of the log
	built uint64   // number of index rebuilds at the last update of the fold
	valid bool
}

// With updates the fold and calls use once. set is the index on which the fold is based. live is the number of memories
// at the log position of the fold. The fold does not change while use runs.
//
// The fold includes all entries that this process has applied. If the caller needs everything that any process has made
// durable, it calls Engine.CatchUp first. The caller passes an error of With to Engine.DamageOf, which schedules the
// rebuild of a damaged index.
func (f *Follower) With(ctx context.Context, eng *Engine, use func(set *index.Set, live int64) error) error {
	if err := f.lock(ctx); err != nil {
		return err
	}
	defer f.mu.Unlock()
	var last error
	for range FindTries {
		if built := eng.remade.Load(); built != f.built {
			f.built, f.valid = built, false
		}
		set := eng.state.Set()
		if set == nil {
			return errs.ErrClosed
		}
		live, err := f.catchUp(ctx, eng, set)
		if err == nil {
			if err = use(set, live); errors.Is(err, errs.ErrCorrupt) {
				f.valid = false
			}
			return errors.Join(err, set.Release())
		}
		_ = set.Release()
		if ctx.Err() != nil {
			return err // the next call continues; it may apply an entry twice
		}
		f.valid = false // partly applied
		if !errors.Is(err, errs.ErrTruncated) && !errors.Is(err, ErrMoved) {
			return err
		}
		last = err
		_ = eng.Refresh()
	}
	return fmt.Errorf("other processes release the log faster than this process can read it: %w", last)
}

// Forget makes the next call of With start again with an empty fold. The function free releases the resources of the
// fold. If wait is false and With is running, Forget does nothing: With may be waiting for a lock that the caller of
// Forget holds.
func (f *Follower) Forget(wait bool, free func() error) error {
	if wait {
		_ = f.lock(context.Background())
	} else if !f.tryLock() {
		return nil
	}
	defer f.mu.Unlock()
	f.valid = false
	return free()
}

// lock waits until no other goroutine uses the follower. It returns the error of ctx if ctx ends before.
func (f *Follower) lock(ctx context.Context) error {
	f.once.Do(f.init)
	return f.mu.Lock(ctx)
}

// tryLock does what lock does, but does not wait. It returns false if another goroutine uses the follower.
func (f *Follower) tryLock() bool {
	f.once.Do(f.init)
	return f.mu.TryLock()
}

func (f *Follower) init() { f.mu = NewMutex() }

func (f *Follower) catchUp(ctx context.Context, eng *Engine, set *index.Set) (live int64, err error) {
	if of := TablesOf(set); !f.valid || f.of != of || f.Stale != nil && f.Stale() {
		// An index that covers only entries that the fold has already changes nothing. One that covers less may contain
		// anything.
		if !f.valid || set.LSN() > f.at || set.LSN() <= f.from || !f.Fold.Covered(set) {
			f.valid = false // until Reset has ended: an interrupted one may leave a part of the content
			if err := f.Fold.Reset(ctx, set); err != nil {
				return 0, err
			}
			f.at = set.LSN()
		}
		f.of, f.from, f.valid = of, set.LSN(), true
	}
	at := eng.log.Applied()
	live, changes, covered := eng.state.Moment(f.at, f.Passes != nil && f.Passes(set))
	if covered != set.LSN() {
		return 0, ErrMoved // the newer index covers some of them
	}
	r := eng.log.Reader()
	for _, c := range changes {
		e, err := r.At(ctx, c.Pos)
		if err != nil {
			return 0, err
		}
		if err := f.Fold.Apply(ctx, set, &e); err != nil {
			return 0, err
		}
		f.at = c.Pos + 1 // so that a call whose context ends is not repeated
	}
	f.at = max(f.at, at)
	return live, nil
}

// ViewFolder returns the folder in which the view of this name keeps its files; see package internal/views.
func (eng *Engine) ViewFolder(name string) *view.Folder {
	return &view.Folder{
		FS: eng.env.FS, Path: filepath.Join(eng.env.Dir, places.Views, name),
		Temp:     filepath.Join(eng.env.Dir, "tmp", "index."+eng.token),
		FileMode: eng.env.FileMode, FolderMode: eng.env.FolderMode,
		Ready: eng.inPlace,
	}
}
