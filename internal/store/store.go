package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/adopt"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/copy/offsite"
	"github.com/varve-db/varve/internal/diskspace"
	"github.com/varve-db/varve/internal/embedding"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/erase/purge"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/meter"
	"github.com/varve-db/varve/internal/notes"
	"github.com/varve-db/varve/internal/rebuild"
	"github.com/varve-db/varve/internal/retention"
	"github.com/varve-db/varve/internal/scopes"
	"github.com/varve-db/varve/internal/search"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/undo"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view/counts"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/internal/views"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/writer"
)

// Watcher watches the document files of a store for edits.
type Watcher interface {
	// Watch runs in a goroutine of its own while the store is open, and returns when ctx ends: Close
	// waits for it.
	Watch(ctx context.Context, f *adopt.Files)
}

// Config has the parameters of a store that is opened.
type Config struct {
	Env         *env.Env
	MustExist   bool
	SegmentSize int64          // size in bytes of a segment of a new store's log
	CacheBytes  int64          // maximum bytes of documents in memory; not positive: no cache
	Writer      *writer.Writer // the writer of this handle; nil: unknown
	Inflate     bool           // write all documents to files, however highly they are compressed
	Embedder    embedding.Config
	Views       []views.Maker // makers of the views; nil: views.All
	Watcher     Watcher       // nil: edits of the files are not watched

	Unfinished bool             // the folder is a copy that a migration is making, and not a store yet
	Restored   *backup.Restored // what is known of the vectors of a store that is being restored
	Closed     func() error     // called by Close at its end; nil: nothing to do

	Remote offsite.Opener // opens the place of the store's copy; nil: this process does not send the log
	Seal   offsite.Sealer // encrypts to the recipients of a sealed copy; nil: this process cannot encrypt
}

// Store is an open store. Its fields are set by Open, and never afterwards.
type Store struct {
	Engine    *engine.Engine
	Vectors   *vectors.Vectors
	Counts    *counts.Counts
	Views     *views.Views
	Rebuilder *rebuild.Maker
	Flusher   *flush.Flusher
	Scopes    *scopes.Scopes
	Committer *commit.Committer
	Adopter   *adopt.Adopter
	Embedding *embedding.Embedding
	Retention *retention.Retention
	History   *history.History
	Undoer    *undo.Undoer
	Notes     *notes.Notes
	Purger    *purge.Purger
	Search    *search.Search
	Offsite   *offsite.Host // sends the log to a copy elsewhere; nil if this process does not

	seal offsite.Sealer // encrypts to the recipients of a sealed copy; nil if this process cannot encrypt

	closed  func() error
	stop    context.CancelFunc // stops the background goroutines
	cut     context.CancelFunc // cancels the flusher's round in progress; both are nil without background goroutines
	running sync.WaitGroup     // counts the background goroutines
}

// Open opens the store of an environment, and creates a missing one unless c.MustExist is set. The caller has
// bound the environment to the folder (env.Env.Hold), and releases it if Open fails; otherwise Close releases
// it.
func Open(ctx context.Context, c Config) (*Store, error) {
	if err := unfinished(&c); err != nil {
		return nil, err
	}
	st := &Store{closed: c.Closed, seal: c.Seal}
	err := st.build(ctx, &c)
	if err == nil {
		err = st.openLog(ctx, &c)
	}
	if err != nil {
		// The store may have been moved since this process looked, and files are missing for that
		// reason.
		if gone := (*errs.MovedError)(nil); st.Engine != nil && errors.As(st.Engine.CheckMoved(), &gone) {
			err = gone
		}
		return nil, err
	}
	st.start(&c)
	return st, nil
}

// unfinished returns an error for a folder that a killed restore or backup has left unfinished.
func unfinished(c *Config) error {
	e := c.Env
	m, is := vfs.Unfinished(e.FS, e.Dir)
	switch {
	case !is || c.Restored != nil:
		return nil
	case m.Kind == offsite.Kind: // a second clone into the same folder is refused
		return fmt.Errorf("%w: the clone that was to fill %s was killed, or is not complete yet: remove the folder, "+
			"and run the command again", errs.ErrInvalid, e.Dir)
	case vfs.IsMount(e.FS, e.Dir): // whose content no restore removes
		return fmt.Errorf("%w: the %s that filled %s was killed, so it may lack documents: remove its contents, and run "+
			"the command again",
			errs.ErrInvalid, m.Kind, e.Dir)
	}
	return fmt.Errorf("%w: the %s that made %s was killed, so the folder may lack documents, and the next %s removes "+
		"it: run the command again; "+
		"to use what is there, rename the folder", errs.ErrInvalid, m.Kind, e.Dir, m.Kind)
}

// build creates the engine, lets it examine or create the store's folder, and then creates the other components of the
// Store. It does not open the log, which the caller does next.
func (st *Store) build(ctx context.Context, c *Config) (err error) {
	up := host{st}
	s := settings.New(c.Env)
	eng, err := engine.New(c.Env, s, up, engine.Config{
		Limits: func() (memstore.Limits, assembly.Limits) {
			now := s.Now()
			return now.MemoryLimits(), now.AssemblyLimits()
		},
		CacheBytes: c.CacheBytes, Unfinished: c.Unfinished, Writer: c.Writer,
	})
	if err != nil {
		return err
	}
	st.Engine = eng
	if err := eng.Begin(ctx, c.MustExist); err != nil {
		return err
	}
	makers := c.Views
	if makers == nil {
		makers = views.All
	}
	st.Vectors = vectors.New(eng, up)
	st.Counts = counts.New(eng)
	st.Views = views.New(eng, makers)
	words, sections, orders := st.Views.Words()
	st.Rebuilder = rebuild.New(eng, st.Vectors, st.Views, c.Restored)
	if st.Flusher, err = flush.New(eng, st.Vectors, st.Views, st.Rebuilder, up, c.Inflate); err != nil {
		return err
	}
	st.Scopes = scopes.New(eng, st.Flusher)
	embeds := commit.Config{Clock: st.Scopes, Embeds: c.Embedder.Call != nil, Fit: c.Embedder.Fit}
	st.Committer = commit.New(eng, st.Vectors, st.Counts, st.Flusher, up, embeds)
	st.Adopter = adopt.New(eng, st.Vectors, st.Committer, st.Flusher)
	near := st.Views.Meanings()
	st.Embedding = embedding.New(eng, st.Vectors, st.Committer, words.Before, sectionTexts{near, st}, c.Embedder)
	st.History = history.New(eng)
	st.Notes = notes.New(eng, st.Committer, st.History, adopt.NewFiles(st.Adopter), st.Scopes)
	st.Retention = retention.New(eng, st.Committer, st.Counts, orders, st.Scopes, st.Notes)
	st.Undoer = undo.New(eng, st.Committer)
	st.Purger = purge.New(eng, st.Vectors, st.Committer, st.Flusher, st.Scopes, st.Retention, st.History)
	st.Search = search.New(eng, st.Vectors, words, sections, near, orders)
	eng.SetOrders(orders, orders.Times)
	return nil
}

// openLog opens the log, and thereby recovers it.
func (st *Store) openLog(ctx context.Context, c *Config) error {
	eng, e := st.Engine, c.Env
	id, err := e.UUID()
	if err != nil {
		return err
	}
	err = eng.OpenLog(ctx, wal.Options{
		FS: e.FS, Dir: e.Dir, SegmentSize: uint64(c.SegmentSize), UUID: id,
		NewAbove: eng.HighestKnown, Named: eng.NamedUUID,
		Create: !e.ReadOnly, ReadOnly: e.ReadOnly, Known: wal.Features(e.System.Features),
		Lacks: wal.Features(e.System.Lacks), LockWait: e.LockWait,
		Inline: e.System.Inline, HoldBytes: e.System.BacklogBytes, FileMode: e.FileMode, DirMode: e.FolderMode,
		Clock: e.Clock, Nonce: e.Nonce, Sleep: e.System.Sleep, Logger: e.Logger, Event: e.LogEvent,
		Archive: eng.Settings().History, Unsent: eng.Settings().Unsent, Config: eng.Settings().Exists,
		Aged:     st.Retention.HistoryCut,
		MakeRoom: func() bool { return diskspace.MakeRoom(eng) }, Machine: eng.Machine(),
		Rescue: st.Flusher.Rescue, Resides: eng.CheckMoved,
		Synced: func(took time.Duration) { e.Meters.Took(meter.Sync, took) },
		Waited: func(took time.Duration) { e.Meters.Took(meter.LockWait, took) },
	})
	if err != nil {
		return err
	}
	if !e.ReadOnly {
		st.Scopes.Now() // relates the time of day to the machine's uptime, if no other process of this boot has
		diskspace.Watch(eng)
		if err := eng.Log().RecordConfig(); err != nil {
			e.Logger.Warn("recording that the store has a config.json failed", "err", err) // the next checkpoint does
		}
	}
	if eng.Log().Report().Recovered {
		st.Flusher.Leftovers()
	}
	return nil
}

// start starts the background goroutines, unless the handle has none; see Background.
func (st *Store) start(c *Config) {
	if !st.Background() {
		return
	}
	run, stop := context.WithCancel(context.Background())
	rounds, cut := context.WithCancel(context.Background())
	st.stop, st.cut = stop, cut
	st.running.Go(func() { st.Flusher.Run(run, rounds) })
	st.running.Go(func() { st.Adopter.Reconcile(run) })
	if c.Watcher != nil {
		st.running.Go(func() { c.Watcher.Watch(run, adopt.NewFiles(st.Adopter)) })
	}
	if c.Remote != nil {
		st.Offsite = st.sending(c.Remote)
		st.running.Go(func() { st.Offsite.Run(run) })
	}
	if c.Embedder.Call != nil {
		st.running.Go(func() { st.Embedding.Run(run) })
		st.running.Go(func() { st.Embedding.RunSections(run) })
	}
}

// Background reports whether this handle has goroutines that flush and sweep.
func (st *Store) Background() bool {
	e := st.Engine.Env()
	return !e.ReadOnly && !e.NoBackground && !e.System.Inline
}
