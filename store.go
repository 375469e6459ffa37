package varve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/edits"
	"github.com/varve-db/varve/internal/embedding"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/purge"
	"github.com/varve-db/varve/internal/remake"
	"github.com/varve-db/varve/internal/retention"
	"github.com/varve-db/varve/internal/search"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/space"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view/counts"
	"github.com/varve-db/varve/internal/view/scopes"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/internal/views"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// Store is an open store. All methods may be called from several goroutines.
type Store struct {
	engine *engine.Engine
	o      Options

	flusher flush.Flusher
	views   views.Views
	vectors vectors.Vectors

	kept    retention.Retention
	edits   edits.Edits
	history history.History
	purging purge.Purger
	search  search.Search
	counts  counts.Counts
	commits commit.Committer

	embedding embedding.Embedding
	working   scopes.Scopes

	stop    context.CancelFunc
	running sync.WaitGroup // in the background
	async   async
	remove  func() error // see openBeside
}

// noticing is how long Open waits for other processes to notice that the log they have open was removed. They look
// every second.
const noticing = 5 * time.Second

// Memory is one memory; see package memstore.
type Memory = memstore.Memory

// Open opens the store in a folder, and creates one if there is none. Any number of processes may
// have it open. nil options are the defaults.
func Open(ctx context.Context, dir string, o *Options) (*Store, error) {
	st, err := openOnce(ctx, dir, o)
	// Files of the log may have been removed under a process that has not noticed yet: the store can be opened
	// when that process has.
	for began := time.Now(); (errors.Is(err, ErrReplaced) || wal.IsLeaving(err)) && time.Since(began) < noticing; {
		if serr := vfs.Sleep(ctx, noticing/100); serr != nil {
			return nil, errors.Join(err, serr)
		}
		st, err = openOnce(ctx, dir, o)
	}
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrNoStore) && !errors.Is(err, ErrMoved) {
		st, err = openOnce(ctx, dir, o) // it may have been moved away and back meanwhile
	}
	if o != nil && o.ReadOnly && (errors.Is(err, ErrNoStore) || errors.Is(err, ErrCorrupt)) {
		return openBeside(ctx, dir, *o, err)
	}
	return st, err
}

// absolute makes a path that leads to the same folder after the process has changed its working directory.
func absolute(dir string) (string, error) { return filepath.Abs(dir) }

// target is absolute for a folder that is to be made or filled.
func target(dir string) (string, error) {
	dir, err := absolute(dir)
	return vfs.FolderGiven(dir), err
}

func openOnce(ctx context.Context, dir string, o *Options) (*Store, error) {
	st := &Store{engine: new(engine.Engine)}
	if o != nil {
		st.o = *o
	}
	if err := st.o.Validate(); err != nil {
		return nil, err
	}
	st.o.fill()
	dir, err := absolute(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	st.engine.Env = st.o.environment(dir)
	if err := st.engine.Env.Hold(); err != nil {
		return nil, fmt.Errorf("opening the store %s: %w", dir, err)
	}
	st.engine.Settings = settings.New(st.engine.Env)
	st.vectors.Engine, st.counts.Engine = st.engine, st.engine
	cm := &st.commits
	cm.Engine, cm.Vectors, cm.Counts, cm.Fit, cm.Suits, cm.Flush = st.engine, &st.vectors, &st.counts, st.o.VectorFit, st.embedding.Suits, &st.flusher
	ed := &st.edits
	ed.Engine, ed.Vectors, ed.Commits, ed.Flusher = st.engine, &st.vectors, &st.commits, &st.flusher
	em := &st.embedding
	em.Engine, em.Vectors, em.Commits = st.engine, &st.vectors, &st.commits
	em.Call, em.Batch, em.Model, em.Fit, em.Limit = st.o.Embed, st.o.EmbedBatch, st.o.EmbedModel, st.o.VectorFit, st.o.EmbedTimeout
	em.Init(st.o.EmbedService)
	cm.Embeds = em.Call != nil
	st.kept.Engine, st.kept.Commits, st.kept.Counts, st.kept.Uptime = st.engine, &st.commits, &st.counts, &st.working
	st.kept.Init()
	pu := &st.purging
	pu.Engine, pu.Vectors, pu.Commits, pu.Flusher, pu.Scopes, pu.Retention, pu.History = st.engine, &st.vectors, &st.commits, &st.flusher, &st.working, &st.kept, &st.history
	pu.Containing = st.Assemblies().Containing
	st.history.Engine = st.engine
	st.search.Engine, st.search.Vectors = st.engine, &st.vectors
	st.views.Engine, st.views.Makers = st.engine, views.All
	if st.o.env.Views != nil {
		st.views.Makers = st.o.env.Views
	}
	fl := &st.flusher
	fl.Engine, fl.Vectors, fl.Views, fl.Scopes = st.engine, &st.vectors, &st.views, &st.working
	fl.Remake = remake.Maker{Engine: st.engine, Vectors: &st.vectors, Views: &st.views, Restored: st.o.restored}
	fl.Judge, fl.Upkeep, fl.Parked = st.edits.AdoptAside, st.kept.Upkeep, st.edits.LookAtParked
	st.vectors.Older = st.commits.OlderComposite
	st.vectors.Embedder = func() string {
		if em.Call == nil {
			return ""
		}
		return em.Model
	}
	st.engine.Unfinished = st.o.unfinished
	st.engine.RemakeIndex = func(ctx context.Context, start *wal.Start) (*index.Set, string, int, error) {
		return st.flusher.Remake.From(ctx, remake.Want{Store: start.UUID, At: wal.Mark{LSN: start.Spilled, Sum: start.Sum}}, start.Past)
	}
	st.engine.Judge = st.edits.JudgeEdit
	st.engine.DueNow = func() { st.flusher.Wake(st.engine.Settings.Now().FlushAfter()) }
	st.engine.Init()
	st.counts.Init()
	if err := st.open(ctx); err != nil {
		defer st.engine.Env.Release()
		// It may have been moved since this process looked, and what is missing went with it.
		if gone := (*errs.MovedError)(nil); errors.As(st.engine.Residence(), &gone) {
			err = gone
		}
		return nil, fmt.Errorf("opening the store %s: %w", dir, err)
	}
	return st, nil
}

func (st *Store) open(ctx context.Context) error {
	cache, err := engine.NewCache(st.o.CacheBytes)
	if err != nil {
		return err
	}
	st.engine.Cache = cache
	if m, is := vfs.Unfinished(st.engine.Env.FS, st.engine.Env.Dir); is && st.o.restored == nil {
		if vfs.IsMount(st.engine.Env.FS, st.engine.Env.Dir) { // whose content no restore removes
			return fmt.Errorf("%w: the %s that filled %s was killed, so it may lack documents: remove what is in it, and run that again", ErrInvalid, m.Kind, st.engine.Env.Dir)
		}
		return fmt.Errorf("%w: the %s that made %s was killed, so the folder may lack documents, and the next %s removes it: run that again; to use what is there, rename the folder",
			ErrInvalid, m.Kind, st.engine.Env.Dir, m.Kind)
	}
	if err := st.engine.Enter(ctx, st.o.MustExist); err != nil {
		return err
	}
	if err := st.engine.Env.Hold(); err != nil { // the folder may have come to its path just now
		return fmt.Errorf("opening %s: %w", st.engine.Env.Dir, err)
	}
	if err := st.engine.NewerVectors(); err != nil {
		return err
	}
	if st.engine.Token, err = st.engine.NewToken(); err != nil {
		return err
	}
	st.vectors.Lock = engine.NewMutex()
	st.flusher.Inflate = st.o.Inflate
	st.flusher.Layout = docfile.Layout{FS: st.engine.Env.FS, Root: st.engine.Env.Dir, FileMode: st.engine.Env.FileMode, FolderMode: st.engine.Env.FolderMode}
	st.engine.Kinds = engine.NewKinds(st.flusher.Layout, st.engine.Env.NaiveTimes, func() (memstore.Limits, assembly.Limits) {
		c := st.engine.Settings.Now()
		return c.MemoryLimits(), c.AssemblyLimits()
	})
	st.working.Engine, st.working.Flusher = st.engine, &st.flusher
	st.working.Init()
	st.async.init()
	st.views.Init()
	st.search.Words, st.search.Orders = st.views.Words()
	st.kept.Orders = st.search.Orders
	st.engine.Times, st.embedding.Before = st.kept.Orders.Times, st.search.Words.Before
	if err := st.flusher.Init(); err != nil {
		return err
	}
	id, err := st.engine.Env.UUID()
	if err != nil {
		return err
	}
	o := wal.Options{
		FS: st.engine.Env.FS, Dir: st.engine.Env.Dir, SegmentSize: uint64(st.o.SegmentSize), UUID: id, NewAbove: st.engine.HighestKnown, Named: st.engine.NamedUUID,
		Create: !st.engine.Env.ReadOnly, ReadOnly: st.engine.Env.ReadOnly, Known: wal.Features(st.engine.Env.System.Features), LockWait: st.engine.Env.LockWait, Inline: st.engine.Env.System.Inline, HoldBytes: st.engine.Env.System.BacklogBytes,
		FileMode: st.engine.Env.FileMode, DirMode: st.engine.Env.FolderMode, Clock: st.engine.Env.Clock, Nonce: st.engine.Env.Nonce,
		Sleep: st.engine.Env.System.Sleep, Logger: st.engine.Env.Logger, Event: st.engine.Env.LogEvent, Archive: st.engine.Settings.History, Config: st.engine.Settings.Exists, Aged: st.kept.HistoryCut, MakeRoom: func() bool { return space.MakeRoom(st.engine) },
		Machine: st.engine.Machine(), Rescue: st.flusher.Rescue,
	}
	st.engine.Log, err = wal.Open(ctx, o)
	if errors.As(err, &st.engine.Linked) { // it can be read
		st.engine.Env.ReadOnly, o.ReadOnly, o.Create = true, true, false
		st.engine.Log, err = wal.Open(ctx, o)
	}
	if err != nil {
		st.engine.State.Close()
		return st.engine.Env.Explain(err)
	}
	st.engine.Codec.Bound(st.engine.Log.Limit())
	if st.engine.Linked == nil {
		st.engine.Linked = st.engine.Log.Report().Linked
	}
	// It may have been moved while this process waited for open.lock.
	if err := st.engine.Residence(); err != nil {
		return errors.Join(err, st.engine.Log.Close(), st.engine.State.Close())
	}
	if !st.engine.Env.ReadOnly {
		space.Watch(st.engine)
		if err := st.engine.Log.RecordConfig(); err != nil {
			st.engine.Env.Logger.Warn("recording that the store has a config.json", "err", err) // the next checkpoint does
		}
	}
	st.flusher.Leftovers = st.engine.Log.Report().Recovered
	if st.background() {
		run, stop := context.WithCancel(context.Background())
		st.stop = stop
		st.running.Go(func() { st.flusher.Run(run) })
		st.running.Go(func() { st.edits.Reconcile(run) })
		if w := st.o.env.Watcher; w != nil {
			st.running.Go(func() { w.Watch(run, edits.NewFiles(&st.edits)) })
		}
		if st.o.Embed != nil {
			st.running.Go(func() { st.embedding.Run(run) })
		}
	}
	return nil
}

// background says whether this handle has goroutines that flush and sweep.
func (st *Store) background() bool {
	return !st.engine.Env.ReadOnly && !st.engine.Env.NoBackground && !st.engine.Env.System.Inline
}

// Close flushes, writes what makes the next open quick, and closes the store; what other processes write
// meanwhile they flush, too. It waits for operations that are under way, and for another process that flushes
// as long as it gets on. Those that no caller's ctx can end (PutAsync; working memory whose
// caller has returned) are abandoned after LockWait if the log accepts nothing: the error names
// them and is ErrOutcomeUnknown. CloseWithin ends sooner: 10,000 memories that have no files yet take seconds.
func (st *Store) Close() error { return st.close(context.Background(), st.engine.Env.LockWait) }

// CloseWithin is Close with a time limit, for a process that must end soon: it waits at most
// that long for locks of other processes and for operations that make no progress, and makes files, in
// rounds of 1,000, until that is over. Changes that could then not be written to files are durable in the
// log, the error says why (context.DeadlineExceeded: the time was over), and the next flush by any
// process writes them; accesses that Store.Touch has counted may be lost.
func (st *Store) CloseWithin(wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return st.close(ctx, wait)
}

// inPlace returns ErrReplaced if the store's folder was replaced, when what could be rescued is in files. With it
// comes an *UnfiledError of what could not. The store is being closed.
func (st *Store) inPlace() error {
	if st.engine.Env.ReadOnly {
		return nil
	}
	err := st.engine.Log.InPlace()
	if err != nil {
		err = errors.Join(err, st.engine.Log.Leave(context.Background())) // the views that it needs are closed next
	}
	return err
}

// restoreMost bounds the comparison of files and index by a handle without goroutines of its own, at its
// close. What it does not finish the next handle begins again.
const restoreMost = 2 * time.Second

// restoreFiles restores files that were deleted by hand where config.json has adopt_deletions false: without a
// process in the background they would be missed when they are read, and by then log and archive may not
// have them any more.
func (st *Store) restoreFiles(ctx context.Context) {
	if st.engine.Env.System.Inline || st.engine.Settings.Now().AdoptsDeletions() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, restoreMost)
	defer cancel()
	st.edits.Reconcile(ctx)
}

// close waits for locks, and where ctx has a deadline makes files, as long as ctx does.
func (st *Store) close(ctx context.Context, wait time.Duration) error {
	st.engine.Closing.Lock()
	was := st.engine.Closed.Swap(true)
	st.engine.Closing.Unlock()
	if was {
		return nil
	}
	st.embedding.Close() // puts that wait for the embedder store without it
	unwritten := st.engine.Finish(wait)
	if st.stop != nil {
		st.stop()
	}
	st.running.Wait()
	place := st.inPlace()
	err := errors.Join(unwritten, place)
	if !st.engine.Env.ReadOnly && st.engine.Log.Damage() == nil && place == nil {
		if !st.background() {
			st.kept.SweepUp(ctx)
			st.restoreFiles(ctx)
		}
		err = errors.Join(err, st.kept.WriteDue(flush.Unpaced(ctx)), st.flusher.FlushClosing(ctx))
		if err != nil { // it may have happened meanwhile
			if place = st.inPlace(); place != nil {
				err = errors.Join(unwritten, place)
			}
		}
	}
	err = errors.Join(err, st.flusher.Close(), st.vectors.Close(), st.vectors.Side.Close(), st.views.Close(), st.engine.Log.Close(), st.engine.State.Close())
	if st.engine.Cache != nil {
		st.engine.Cache.InvalidateAll()
		st.engine.Cache.StopAllGoroutines()
	}
	if st.remove != nil {
		err = errors.Join(err, st.remove())
	}
	st.engine.Env.Release()
	return err
}
