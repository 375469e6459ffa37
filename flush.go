package varve

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// flusher turns what is durable in the log into files and index. Any process
// may do it for all; the holder of flush.lock does.
type flusher struct {
	files     *docfile.Flusher
	workers   int
	kick      chan struct{}
	unflushed atomic.Int64         // changes of this process since the last round
	commits   atomic.Int64         // by this process, where rounds are counted by them: System.Rounds
	beat      atomic.Int64         // when this process last said that it lives, where nothing runs in the background
	rest      atomic.Bool          // the last round left something to do
	quiet     atomic.Bool          // nobody wrote during the last round in the background
	uptime    func() time.Duration // by which processes tell each other to rest; nil: there is none

	// Of the goroutine in the background: see lookAtParked.
	parked      int
	parkedPause time.Duration
	parkedDue   time.Time

	// Under flush.lock.
	backupAt  time.Time      // of the newest index backup
	leftovers bool           // tmp/ may hold what killed processes left
	aside     []docfile.Edit // by this round, and by those before it that failed
	dooming   bool           // this round overwrites what it replaces of the index: see flushOverwriting
	unlinked  []string       // of that, what was not overwritten since a purge failed
	unpurged  atomic.Bool    // a purge was cut after it had deleted: what this round displaces is overwritten behind it
	failed    atomic.Int64   // rounds in a row
	lagging   lag
}

// flushWorkers is how many goroutines put files in place: more than two gained
// nothing on any file system that was tried.
const flushWorkers = 2

func (f *flusher) init(st *Store) error {
	f.workers = flushWorkers
	if st.engine.Env.System.Inline {
		f.workers = 1
	}
	f.kick = make(chan struct{}, 1)
	if f.uptime = st.engine.Env.System.Uptime; f.uptime == nil && !st.engine.Env.System.Inline {
		f.uptime = vfs.Uptime()
	}
	st.async.init()
	var err error
	f.files, err = docfile.NewFlusher(docfile.Options{
		Layout: st.layout, Token: st.engine.Token, Clock: st.engine.Env.Clock, Workers: f.workers, Limit: places.StoredMost,
		Keeps: st.keepsDisplaced, Leaves: st.purgesIn, Places: st.places, InPlace: st.inPlace,
	})
	return err
}

func (f *flusher) close() error {
	if f.files == nil {
		return nil
	}
	return f.files.Close()
}

// changed counts changes and starts a round when there are enough.
func (f *flusher) changed(st *Store, n int) {
	before := f.unflushed.Add(int64(n)) - int64(n)
	threshold := int64(st.engine.Settings.Now().FlushAfter())
	if before < threshold && before+int64(n) >= threshold {
		select {
		case f.kick <- struct{}{}:
		default:
		}
	}
}

// Flush makes the files and the index durable up to what was committed before
// the call, by whatever process. What it costs depends on what has changed, not
// on how much there is: the index may be left in two files, see Compact.
func (st *Store) Flush(ctx context.Context) error { return st.flushNow(ctx, mergeFlush) }

// Compact is Flush, and leaves all of the index in memory_index.json, for those
// who read it with other tools. It writes the whole index.
func (st *Store) Compact(ctx context.Context) error { return st.flushNow(ctx, mergeAlways) }

func (st *Store) flushNow(ctx context.Context, m merge) error {
	if err := st.engine.Begun(); err != nil {
		return err
	}
	defer st.engine.Ended()
	if err := st.engine.Writable(); err != nil {
		return err
	}
	if !st.background() {
		st.sweepUp(ctx)
	}
	return st.flush(ctx, m)
}

// merge says when a round writes the index.
type merge int

const (
	mergeWhenDue merge = iota
	mergeFlush         // what has changed, in a delta or, when that is due, a new base
	mergeAlways        // all of it into a new base
	mergeFiles         // as mergeWhenDue, and nothing waits for its file
	mergeClosing       // so that the next open has little to replay
)

// closingSpill is how many entries a clean close leaves to the next replay.
const closingSpill = 1000

func (st *Store) flushClosing(ctx context.Context) error {
	if err := st.engine.Sight(ctx); err != nil {
		return err
	}
	if !st.engine.Rotten.Load() && st.engine.Log.Flushed() >= st.engine.Log.Durable() && st.engine.State.Overlay().Len() <= closingSpill && !st.engine.Log.Distrusted() {
		c, err := st.engine.Log.Checkpoint()
		if err == nil && c.Attested.LSN == st.engine.Log.Durable() {
			return nil
		}
	}
	if err := st.engine.Log.LockFlush(ctx); err != nil {
		return err
	}
	defer st.engine.Log.UnlockFlush()
	st.flusher.files.Last()
	return st.flushLocked(context.WithoutCancel(ctx), mergeClosing) // ctx is how long the lock is waited for
}

func (st *Store) flush(ctx context.Context, m merge) error {
	if err := st.engine.Log.LockFlush(ctx); err != nil {
		return err
	}
	defer st.engine.Log.UnlockFlush()
	return st.flushLocked(ctx, m)
}

// flushLocked is a round, and after a purge that was cut, or beside one, what the round
// replaces of the index is overwritten.
func (st *Store) flushLocked(ctx context.Context, m merge) error {
	st.lookForPurge()
	if st.engine.Log.Overwrites() {
		return st.flushOverwriting(ctx, m)
	}
	return st.flushRound(ctx, m)
}

// flushRound is a round: what changed since flushed is put into files, these
// are made durable, then the index if it is due, and only then the marks move.
func (st *Store) flushRound(ctx context.Context, m merge) error {
	began := st.engine.Env.Clock()
	st.flusher.unflushed.Store(0)
	n, spilled, err := st.round(ctx, m)
	if vfs.IsDiskFull(err) && st.flusher.failed.CompareAndSwap(0, 1) {
		st.endPurge(ctx)                   // what it displaced takes room
		n, spilled, err = st.round(ctx, m) // as what is repeated: deletions first
		st.flusher.failed.Store(0)
	}
	if err == nil && m == mergeAlways {
		err = st.vectors.Merge(ctx)
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) { // it was given up, or the store is being closed
		st.flusher.failed.Add(1)
		return err
	}
	err = st.engine.Env.Explain(err)
	st.engine.Health.Flushed(st.engine.Env.Clock(), err)
	st.watchSpace()
	if err != nil {
		st.flusher.failed.Add(1)
		st.engine.Env.Logger.Error("flush failed; it will be tried again", "err", err)
		st.engine.Env.Event(env.Event{Kind: env.EventFlushError, Err: err})
		return err
	}
	st.flusher.failed.Store(0)
	st.adoptRound(ctx)
	if n > 0 || spilled {
		st.engine.Env.Event(env.Event{Kind: env.EventFlush, Count: n, LSN: st.engine.Log.Flushed(), Took: st.engine.Env.Clock().Sub(began)})
	}
	return nil
}

func (st *Store) round(ctx context.Context, m merge) (n int, spilled bool, err error) {
	if err := st.engine.Sight(ctx); err != nil {
		return 0, false, err
	}
	st.engine.Settings.Reread()
	c, err := st.engine.Log.Checkpoint()
	if err != nil {
		return 0, false, err
	}
	distrusted := st.engine.Log.Distrusted()
	if distrusted || st.flusher.leftovers || st.engine.Log.Abandoned() {
		if err := st.emptyTemp(ctx); err != nil {
			return 0, false, err
		}
		st.flusher.leftovers = false
		st.engine.Log.Tidied()
	}
	if err := st.sweepTemp(ctx); err != nil {
		st.engine.Env.Logger.Warn("sweeping up after a process that was killed", "err", err) // nothing depends on it
	}
	if distrusted {
		st.flusher.files.Distrust()
	}
	list, to, err := st.due(ctx, m, c)
	if err != nil {
		return 0, false, err
	}
	files := st.filing(ctx, max(c.Flushed.LSN, st.flusher.lagging.filed), distrusted)
	err = files.put(ctx, list)
	before := c.Flushed
	if err == nil {
		c.Flushed, err = files.hold(ctx, c, to, m)
	}
	if err == nil && st.spillDue(m, c) {
		err = st.spill(ctx, c.Flushed, files, m == mergeAlways)
		c.Spilled, spilled = c.Flushed, true
	}
	if err = files.end(err); err != nil {
		st.flusher.lagging = lag{}
		return 0, false, err
	}
	st.keepRefused(ctx, c.Flushed.LSN)
	st.flusher.lagging.filed = to.LSN
	st.flusher.rest.Store(to.LSN < st.engine.Log.AppliedMark().LSN)
	st.endPurge(ctx)
	if len(list) == 0 && !spilled && !distrusted && c.Flushed == before && before.LSN < to.LSN {
		return 0, false, nil // what lags goes on lagging
	}
	if err := st.engine.Log.SetCheckpoint(c.Flushed, c.Spilled, st.folderTimes()); err != nil {
		return len(list), false, err
	}
	if distrusted {
		st.engine.Log.Trust()
	}
	if spilled {
		if err := st.engine.Refresh(); err != nil {
			return len(list), true, err
		}
		if err := st.engine.Log.Forget("index", st.engine.Log.Spilled()); err != nil {
			// The log keeps what it could not let go; nothing else depends on it.
			st.engine.Env.Logger.Warn("releasing the log", "err", err)
		}
	}
	return len(list), spilled, nil
}

// How many files a round in the background takes at most: then the writers have
// the disk for a while. More when nobody writes.
const (
	paceFiles  = 1000
	quietFiles = 4096
)

// due lists what a round puts into files, and up to where the files are the
// truth after it: everything, or in the background a part.
func (st *Store) due(ctx context.Context, m merge, c wal.Checkpoint) ([]index.At, wal.Mark, error) {
	to := st.engine.Log.AppliedMark()
	if st.engine.Log.Distrusted() || st.flusher.failed.Load() > 0 { // what failed is repeated as a whole
		st.flusher.lagging = lag{}
		list := st.engine.State.Changes(c.Flushed.LSN, to.LSN)
		if st.flusher.failed.Load() > 0 {
			makeRoomFirst(list)
		}
		return list, to, nil
	}
	from := max(c.Flushed.LSN, st.flusher.lagging.filed)
	if m != mergeWhenDue {
		return st.engine.State.Changes(from, to.LSN), to, nil
	}
	most := paceFiles
	if st.flusher.quiet.Load() {
		most = quietFiles
	}
	list := st.engine.State.FirstChanges(from, to.LSN, most+1)
	if len(list) <= most {
		return list, to, nil
	}
	to, err := st.engine.Log.MarkBefore(ctx, list[most].Pos)
	return list[:most], to, err
}

// makeRoomFirst orders the changes of a round that is repeated: where the disk is full
// nothing can be put in place before the files of what was deleted are gone, and files in
// the order of the log would wait for them for ever.
func makeRoomFirst(list []index.At) {
	slices.SortStableFunc(list, func(a, b index.At) int {
		switch {
		case a.Deleted == b.Deleted:
			return 0
		case a.Deleted:
			return -1
		}
		return 1
	})
}

// folderTimes are the modification times of the folders after our own last change.
func (st *Store) folderTimes() [wal.Folders]int64 {
	var t [wal.Folders]int64
	for i, k := range st.engine.Kinds.All {
		if info, err := st.engine.Env.FS.Stat(filepath.Clean(k.Path(""))); err == nil {
			t[i] = info.Mtime.UnixNano()
		}
	}
	return t
}

// Wake is told of changes that were committed.
func (st *Store) Wake(changes int) { st.flusher.changed(st, changes) }
