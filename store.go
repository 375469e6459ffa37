package varve

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// Store is an open store. All methods may be called from several goroutines.
type Store struct {
	engine *engine
	o      Options
	layout docfile.Layout

	flusher flusher
	vectors vectors

	refusals refusals
	drifts   [2]atomic.Pointer[Drift] // by kind
	touched  touched
	sweeper  sweeper
	counts   counts
	commits  committer

	watchingEnds sync.Once
	endsFrom     atomic.Uint64 // from here on all relations that are put are noted
	embedding    embedding
	working      scopes

	stop    context.CancelFunc
	running sync.WaitGroup // in the background
	async   async
}

// Memory is one memory; see package memstore.
type Memory = memstore.Memory

// Open opens the store in a folder, and makes one where there is none. Any
// number of processes may have it open. nil options are the defaults.
func Open(ctx context.Context, dir string, o *Options) (*Store, error) {
	st := &Store{engine: new(engine)}
	if o != nil {
		st.o = *o
	}
	if err := st.o.Validate(); err != nil {
		return nil, err
	}
	st.o.fill()
	st.engine.env = st.o.environment(dir)
	st.engine.settings = settings.New(st.engine.env)
	st.vectors.engine, st.counts.engine = st.engine, st.engine
	cm := &st.commits
	cm.engine, cm.vectors, cm.counts, cm.fit, cm.suits, cm.flush = st.engine, &st.vectors, &st.counts, st.o.VectorFit, st.suits, st
	st.vectors.older = st.commits.olderComposite
	st.vectors.embedder = func() string {
		if st.o.Embed == nil {
			return ""
		}
		return st.o.EmbedModel
	}
	st.engine.cacheBytes, st.engine.unfinished = st.o.CacheBytes, st.o.unfinished
	st.engine.remakeIndex = func(ctx context.Context, start *wal.Start) (*index.Set, string, int, error) {
		return st.remakeFrom(ctx, remake{store: start.UUID, at: wal.Mark{LSN: start.Spilled, Sum: start.Sum}}, start.Past)
	}
	st.engine.judge = st.judgeEdit
	st.engine.dueNow = func() { st.flusher.changed(st, st.engine.settings.Now().FlushAfter()) }
	st.embedding.init()
	st.engine.lasting.init()
	if err := st.open(ctx); err != nil {
		// It may have been moved since this process looked, and what is missing went with it.
		if gone := (*errs.MovedError)(nil); errors.As(st.engine.residence(), &gone) {
			err = gone
		}
		return nil, fmt.Errorf("opening the store %s: %w", dir, err)
	}
	return st, nil
}

func (st *Store) open(ctx context.Context) error {
	if st.o.CacheBytes > 0 {
		c, err := otter.New(&otter.Options[string, *cached]{
			MaximumWeight: uint64(st.o.CacheBytes),
			Weigher:       func(key string, v *cached) uint32 { return uint32(len(key) + len(v.doc) + 128) },
			Executor:      func(fn func()) { fn() },
		})
		if err != nil {
			return err
		}
		st.engine.cache = c
	}
	if err := st.enter(ctx); err != nil {
		return err
	}
	if err := st.newerVectors(); err != nil {
		return err
	}
	var err error
	if st.engine.token, err = st.engine.newToken(); err != nil {
		return err
	}
	st.vectors.lock = newMutex()
	st.layout = docfile.Layout{FS: st.engine.env.FS, Root: st.engine.env.Dir, FileMode: st.engine.env.FileMode, FolderMode: st.engine.env.FolderMode}
	st.engine.kinds = newKinds(st.layout, st.engine.env.NaiveTimes, func() (memstore.Limits, assembly.Limits) {
		c := st.engine.settings.Now()
		return c.MemoryLimits(), c.AssemblyLimits()
	})
	st.working.init(st)
	st.engine.state.Refused = st.refused
	if err := st.flusher.init(st); err != nil {
		return err
	}
	id, err := st.engine.env.UUID()
	if err != nil {
		return err
	}
	st.engine.log, err = wal.Open(ctx, wal.Options{
		FS: st.engine.env.FS, Dir: st.engine.env.Dir, SegmentSize: uint64(st.o.SegmentSize), UUID: id, NewAbove: st.highestKnown,
		Create: !st.engine.env.ReadOnly, ReadOnly: st.engine.env.ReadOnly, LockWait: st.engine.env.LockWait, Inline: st.engine.env.System.Inline, HoldBytes: st.engine.env.System.BacklogBytes,
		FileMode: st.engine.env.FileMode, DirMode: st.engine.env.FolderMode, Clock: st.engine.env.Clock, Nonce: st.engine.env.Nonce,
		Sleep: st.engine.env.System.Sleep, Logger: st.engine.env.Logger, Event: st.engine.env.LogEvent, ArchiveSize: st.engine.env.System.ArchiveBytes,
		Begin: st.engine.begin, Agrees: st.engine.agrees, Current: st.engine.state.Current, Deletion: st.engine.state.DeletionOf, Unchanged: st.engine.state.Unchanged, Also: st.engine.state.Also, Counts: st.engine.state.Counts, Apply: st.engine.state.Apply,
	})
	if err != nil {
		st.engine.state.Close()
		return st.engine.env.Explain(err)
	}
	// It may have been moved while this process waited for open.lock.
	if err := st.engine.residence(); err != nil {
		return errors.Join(err, st.engine.log.Close(), st.engine.state.Close())
	}
	if !st.engine.env.ReadOnly {
		st.watchSpace()
	}
	st.flusher.leftovers = st.engine.log.Report().Recovered
	if st.background() {
		run, stop := context.WithCancel(context.Background())
		st.stop = stop
		st.running.Go(func() { st.run(run) })
		st.running.Go(func() { st.reconcile(run) })
		if st.o.Watcher != nil {
			st.running.Go(func() { st.o.Watcher.Watch(run, &Files{st}) })
		}
		if st.o.Embed != nil {
			st.running.Go(func() { st.runEmbedding(run) })
		}
	}
	return nil
}

// background says whether this handle has goroutines that flush and sweep.
func (st *Store) background() bool {
	return !st.engine.env.ReadOnly && !st.engine.env.NoBackground && !st.engine.env.System.Inline
}

// Close flushes, writes what is needed for the next open to be quick, and lets
// the store go. Operations that are under way finish first. Those that no caller's
// ctx ends any more (PutAsync; working memory whose caller has gone) are given up
// after LockWait, when the log takes nothing: the error names them, and is
// ErrOutcomeUnknown.
func (st *Store) Close() error { return st.close(context.Background(), st.engine.env.LockWait) }

// CloseWithin is Close where a process must end soon: it waits so long, and no longer, for
// locks that others have and for operations that do not move. What then could not be put into
// files is durable in the log, the error says why, and the next flush by whatever process puts
// it there.
func (st *Store) CloseWithin(wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return st.close(ctx, wait)
}

// close waits for locks as long as ctx does.
func (st *Store) close(ctx context.Context, wait time.Duration) error {
	st.engine.closing.Lock()
	was := st.engine.closed.Swap(true)
	st.engine.closing.Unlock()
	if was {
		return nil
	}
	st.embedding.close() // who waits for the embedder stores without it
	unwritten := st.engine.finish(wait)
	if st.stop != nil {
		st.stop()
	}
	st.running.Wait()
	err := unwritten
	if !st.engine.env.ReadOnly && st.engine.log.Damage() == nil {
		if !st.background() {
			st.sweepUp(ctx)
		}
		err = errors.Join(err, st.flushTouched(ctx), st.flushClosing(ctx))
	}
	err = errors.Join(err, st.flusher.close(), st.vectors.close(), st.vectors.side.close(), st.engine.log.Close(), st.engine.state.Close())
	if st.engine.cache != nil {
		st.engine.cache.InvalidateAll()
		st.engine.cache.StopAllGoroutines()
	}
	return err
}
