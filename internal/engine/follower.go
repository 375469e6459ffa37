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

// Follower keeps a fold at what this process knows: the index that is mapped, and the
// overlay that lies over it. It looks at each change once.
//
// The overlay lets go of what a newer index has taken in. So the changes and the position up
// to which the index covers the log are taken in one moment; where that index is not the one
// that the fold goes on over, the look begins again with the newer one, at most FindTries times,
// each time because another process made progress.
//
// An index that was rebuilt may say something else of what the fold has seen: then it begins
// again with Reset. How often that happened is known of the index that is mapped once it is, so it
// is asked before the index is, at each look.
type Follower struct {
	Fold view.Fold
	// Passes says of a fold as it is that what has no time to live does not change it.
	Passes func(set *index.Set) bool
	// Stale reports whether what the fold was read from is another by now, though no index was written; nil: never.
	Stale func() bool

	mu    sync.Mutex
	of    Tables  // of the index that the fold goes on over
	from  wal.LSN // which covers the log up to here
	at    wal.LSN // below which the fold has all
	built uint64  // how often the index was rebuilt by then
	valid bool
}

// With calls use, once, with the index that the fold goes on over; live is how many memories
// there are in that moment. The fold does not change as long as use runs.
//
// It is as of what this process knows. To have all that any process has made durable, call
// Engine.CatchUp before; pass an error through Engine.DamageOf, which has a damaged index rebuilt.
func (f *Follower) With(ctx context.Context, eng *Engine, use func(set *index.Set, live int64) error) error {
	f.mu.Lock()
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
			return err // an entry may come twice: the next look continues
		}
		f.valid = false // half looked at
		if !errors.Is(err, errs.ErrTruncated) && !errors.Is(err, ErrMoved) {
			return err
		}
		last = err
		_ = eng.Refresh()
	}
	return fmt.Errorf("the log is released faster than it can be read: %w", last)
}

// Forget has the next look begin again, with nothing; free releases what the fold has. Without wait
// nothing is done while a look is under way: that may wait for what the caller holds.
func (f *Follower) Forget(wait bool, free func() error) error {
	if !wait && !f.mu.TryLock() {
		return nil
	}
	if wait {
		f.mu.Lock()
	}
	defer f.mu.Unlock()
	f.valid = false
	return free()
}

func (f *Follower) catchUp(ctx context.Context, eng *Engine, set *index.Set) (live int64, err error) {
	if of := TablesOf(set); !f.valid || f.of != of || f.Stale != nil && f.Stale() {
		// What an index takes in that the fold has already changes nothing. One that goes
		// less far may say anything.
		if !f.valid || set.LSN() > f.at || set.LSN() <= f.from || !f.Fold.Covered(set) {
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
		return 0, ErrMoved // the newer one took in some of them
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
	}
	f.at = max(f.at, at)
	return live, nil
}

// ViewFolder is where a view that plugs in has its files; see package internal/views.
func (eng *Engine) ViewFolder(name string) *view.Folder {
	return &view.Folder{
		FS: eng.env.FS, Path: filepath.Join(eng.env.Dir, places.Views, name),
		Temp:     filepath.Join(eng.env.Dir, "tmp", "index."+eng.token),
		FileMode: eng.env.FileMode, FolderMode: eng.env.FolderMode,
	}
}
