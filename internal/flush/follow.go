package flush

import (
	"context"
	"errors"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/views"
	"github.com/varve-db/varve/wal"
)

// An index of millions of documents takes seconds to write, and updating the views from it, such as the words of tens
// of thousands of documents, takes longer. Files need not wait for either: a background round starts this work beside
// the rounds that follow, under the same hold of flush.lock. Meanwhile no other index is written, tmp/ is not swept,
// and the log keeps what index and views still read. A round that empties tmp/, or overwrites for a purge, waits for
// the work. If an index is due at its end, the next hold, which begins at once, writes it. While a purge waits for the
// lock there are no further rounds.
//
// Work beside rounds moves no mark; the flusher does that afterwards, between two rounds (then).

// following is background work of a flusher that runs while further rounds run, and the function that is called after
// the work.
type following struct {
	done chan struct{}
	then func() error // called after the work has ended, between two rounds; nil: nothing is called
}

// start begins work in the background, while further rounds run. After the work has ended, the flusher calls the
// function next between two rounds.
func (fl *Flusher) start(work func(), next func() error) {
	f := &following{done: make(chan struct{}), then: next}
	fl.following = f
	go func() {
		defer close(f.done)
		work()
	}()
}

// arrived is called after background work has ended. It calls the function that was passed to start as next, which may
// start other background work.
func (fl *Flusher) arrived() error {
	f := fl.following
	fl.following = nil
	if f.then == nil {
		return nil
	}
	return f.then()
}

// followed waits until all background work has ended.
func (fl *Flusher) followed() (err error) {
	for fl.following != nil {
		<-fl.following.done
		err = errors.Join(err, fl.arrived())
	}
	return err
}

// spillBeside reports whether a round may write its index in the background, while further rounds run. The round itself
// rebuilds a damaged index. It also writes a small index itself, because that is faster than updating the checkpoint a
// second time.
func (fl *Flusher) spillBeside(m Merge) bool {
	set := fl.engine.State().Set()
	if set == nil {
		return false
	}
	defer set.Release()
	return m == MergeWhenDue && fl.beside && !fl.dooming && !small(set) && !fl.engine.Damaged().Load()
}

// writeBeside writes an index in the background, while further rounds run. All versions that the index names are
// durably in files. If a file has a newer version, that version is also in the log.
func (fl *Flusher) writeBeside(ctx context.Context, held *wal.Held, s *spilling) {
	var err error
	fl.start(func() {
		defer s.set.Release()
		if err = fl.vectors.Spill(ctx, held, s.set, s.to, s.list, false, &s.target); err == nil {
			err = fl.write(ctx, s, false)
		}
	}, func() error {
		if errors.Is(err, errs.ErrCorrupt) && fl.engine.Settings().Now().MayRepair() {
			fl.engine.Damaged().Store(true) // the next round rebuilds it
			return nil
		}
		if err == nil {
			err = fl.spilledTo(ctx, held, s.to)
		}
		return fl.indexed(ctx, err)
	})
}

// indexed records that an index was written. If err is not nil, the index could not be written: then the next attempt
// is delayed, longer after each failure, and files continue to be written.
func (fl *Flusher) indexed(ctx context.Context, err error) error {
	if givenUp(ctx, err) {
		return err
	}
	if err == nil {
		if fl.indexErr != nil { // perhaps nothing is written from here on
			fl.engine.Health().Flushed(fl.engine.Env().Clock(), nil)
		}
		fl.indexStands()
		return nil
	}
	fl.indexErr = fl.engine.Env().Explain(err)
	fl.indexFails++
	fl.indexAfter.Store(int64(time.Since(fl.made) + min(time.Duration(fl.indexFails)*FlushEvery, 30*time.Second)))
	fl.tell(fl.indexErr)
	return nil
}

// indexStands records that writing an index succeeded: it resets the number of failures.
func (fl *Flusher) indexStands() {
	fl.indexErr, fl.indexFails = nil, 0
	fl.indexAfter.Store(0)
}

// indexWaits reports whether the next attempt to write an index is still delayed after failures.
func (fl *Flusher) indexWaits() bool { return int64(time.Since(fl.made)) < fl.indexAfter.Load() }

// spilledTo sets the position Spilled in the checkpoint to mark, after an index was written in the background. It then
// maps that index and does the work that follows: see follow.
func (fl *Flusher) spilledTo(ctx context.Context, held *wal.Held, mark wal.Mark) error {
	c, err := fl.engine.Log().Checkpoint()
	if err != nil {
		return err
	}
	if err := fl.engine.Log().SetCheckpoint(held, c.Flushed, mark, c.Mtimes); err != nil {
		return err
	}
	if err := fl.mapIndex(held); err != nil {
		return err
	}
	fl.follow(ctx, held)
	return nil
}

// follow does the work that is needed after a new index, or starts it in the background: it updates the views from the
// index, and lets the log release the part that the index covers.
func (fl *Flusher) follow(ctx context.Context, held *wal.Held) {
	work := func() {
		fl.views.Round(ctx, held, true)
		if views.Partly(fl.views, held) {
			return // the next round reads the rest from the log
		}
		fl.release(ctx, held)
	}
	// Raising a feature writes the checkpoint, as each round does. Leftovers of a purge are overwritten after the
	// round, once the views are replaced.
	if !fl.beside || fl.dooming || fl.engine.Log().Features()&wal.FeatureViews == 0 {
		work()
		return
	}
	fl.start(work, nil)
}

// release lets the log release the part that the index covers.
func (fl *Flusher) release(ctx context.Context, held *wal.Held) {
	err := fl.engine.Log().Archive().Release(ctx, held, "index", fl.engine.Log().Spilled())
	if err != nil && ctx.Err() == nil {
		// The log keeps what it could not release; nothing else depends on it.
		fl.engine.Env().Logger.Warn("releasing segments of the log failed", "err", err)
	}
}

// updateViews updates the views in a round that writes no index. If the previous process left the views far behind,
// updating them takes seconds; a background round then updates them while further rounds run.
func (fl *Flusher) updateViews(ctx context.Context, held *wal.Held, m Merge) {
	switch {
	case fl.leaves, fl.wordsLeft && closing(m):
	case fl.beside && m == MergeWhenDue && !fl.dooming && fl.views.Due() &&
		fl.engine.Log().Features()&wal.FeatureViews != 0:
		parts := views.Partly(fl.views, held)
		fl.start(func() {
			if fl.views.Round(ctx, held, false); parts && !views.Partly(fl.views, held) {
				fl.release(ctx, held) // follow has left it to this round
			}
		}, nil)
	default:
		fl.views.Round(ctx, held, m == MergeAlways)
	}
}

// mapIndex maps the index that was just written, because the views are made from it. It calls Engine.KeepUp, which
// waits for a search of this process that is still mapping the previous index. Engine.Refresh alone is not enough,
// because it does not wait: the views would then be made from the previous index, and would keep data that a purge
// removes from the log up to the new index.
func (fl *Flusher) mapIndex(held *wal.Held) error {
	_ = fl.engine.KeepUp(held)
	if fl.engine.State().From() < fl.engine.Log().Spilled() {
		return fl.engine.Refresh()
	}
	return nil
}

// overdue reports whether an index should be written for changes that are already in files. This happens if the views
// were still being updated from the previous index, so that no new index could be written.
func (fl *Flusher) overdue() bool {
	flushed, spilled := fl.engine.Log().Flushed(), fl.engine.Log().Spilled()
	return !fl.indexWaits() && flushed > spilled && int64(flushed-spilled) > fl.engine.Env().System.SpillBytes
}

// flushOn runs a background round or a round of a close, and further rounds while the index and the views of the first
// round are written. When ctx ends, no further round begins; when rounds ends, the current round is canceled too.
func (fl *Flusher) flushOn(ctx, rounds context.Context, held *wal.Held, m Merge) (err error) {
	fl.beside = !fl.engine.Env().System.Inline
	defer func() {
		fl.beside = false
		err = errors.Join(err, fl.followed())
	}()
	pause := time.NewTimer(time.Hour)
	defer pause.Stop()
	beat := time.Now()
	for {
		if now := time.Now(); now.Sub(beat) >= wal.HeartbeatEvery {
			beat = now
			if err := fl.engine.Log().Processes().Heartbeat(); err != nil {
				fl.engine.Env().Logger.Warn("heartbeat", "err", err)
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		began, durable := time.Now(), fl.engine.Log().Durable()
		err = fl.FlushLocked(rounds, held, m)
		if err != nil || fl.following == nil || fl.yields() {
			return err
		}
		wrote := fl.engine.Log().Durable() != durable
		if wrote || fl.More.Load() {
			pause.Reset(RestAfter(max(time.Since(began), time.Millisecond), wrote, fl.More.Load(), fl.full()))
		} else {
			pause.Reset(FlushEvery)
		}
	resting:
		for {
			select {
			case <-fl.following.done:
				if err := fl.arrived(); err != nil || fl.following == nil {
					return err // even if the next index is due: others want the lock too
				}
			case <-fl.urge:
				if fl.unfiled() >= slowFrom {
					break resting
				}
			case l := <-fl.loans:
				if lend(held, l); fl.following == nil { // the borrower has waited for it
					return nil
				}
			case <-pause.C:
				break resting
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}
