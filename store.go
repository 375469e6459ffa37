package varve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/embedding"
	"github.com/varve-db/varve/internal/store"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// Store is an open store. All methods may be called from several goroutines.
type Store struct {
	inner *store.Store
	o     Options
	async async
}

// noticing is the time for which Open waits for other processes that still use a removed log. These processes check
// every second whether their log was removed.
const noticing = 5 * time.Second

// Memory is one memory; see package memstore.
type Memory = memstore.Memory

// Open opens the store in a folder. If the folder has no store, Open creates one. Any number of processes may have the
// store open at once. nil options mean the defaults.
func Open(ctx context.Context, dir string, o *Options) (*Store, error) {
	st, err := openOnce(ctx, dir, o)
	// Files of the log may have been removed under a process that has not noticed yet: the store can be opened once it
	// has.
	for began := time.Now(); (errors.Is(err, ErrReplaced) || wal.IsLeaving(err)) && time.Since(began) < noticing; {
		if serr := vfs.Sleep(ctx, noticing/100); serr != nil {
			return nil, errors.Join(err, serr)
		}
		st, err = openOnce(ctx, dir, o)
	}
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrNoStore) && !errors.Is(err, ErrMoved) {
		st, err = openOnce(ctx, dir, o) // the store may have been moved away and back meanwhile
	}
	if o != nil && o.ReadOnly && (errors.Is(err, ErrNoStore) || errors.Is(err, ErrCorrupt)) {
		return openBeside(ctx, dir, *o, err)
	}
	return st, err
}

// absolute returns a path that leads to the same folder after the process has changed its working directory.
func absolute(dir string) (string, error) { return filepath.Abs(dir) }

// target returns the absolute path of a folder that is to be created or filled. If the path is a symbolic link whose
// target does not exist, target returns an error, because the new folder would replace the link.
func target(dir string) (string, error) {
	dir, err := absolute(dir)
	if err != nil {
		return dir, err
	}
	if vfs.Dangles(dir) {
		return dir, fmt.Errorf("%s: %w: this is a link whose target does not exist → remove the link, or give "+
			"another path", dir,
			errs.ErrInvalid)
	}
	return vfs.FolderGiven(dir), nil
}

func openOnce(ctx context.Context, dir string, o *Options) (*Store, error) {
	st := new(Store)
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
	c := st.o.config(dir)
	if err := st.o.mayWrite(c.Env); err != nil {
		return nil, fmt.Errorf("opening the store %s: %w", dir, err)
	}
	if err := c.Env.Hold(); err != nil {
		return nil, fmt.Errorf("opening the store %s: %w", dir, err)
	}
	st.async.init()
	if st.inner, err = store.Open(ctx, c); err != nil {
		c.Env.Release()
		return nil, fmt.Errorf("opening the store %s: %w", dir, err)
	}
	return st, nil
}

// config returns the configuration with which internal/store opens a store in a folder. The fields of o that were zero
// must already have their default values.
func (o *Options) config(dir string) store.Config {
	return store.Config{
		Env: o.environment(dir), MustExist: o.MustExist, SegmentSize: int64(o.SegmentSize), CacheBytes: o.CacheBytes,
		Inflate: o.Inflate, Writer: o.Writer,
		Embedder: embedding.Config{
			Call: o.Embed, Batch: o.EmbedBatch, Model: o.EmbedModel, Fit: o.VectorFit, Timeout: o.EmbedTimeout,
			Service: o.EmbedService,
		},
		Views: o.env.Views, Watcher: o.env.Watcher, Unfinished: o.unfinished, Restored: o.restored, Closed: o.closed,
		Remote: o.Remote, Seal: o.SealRemote,
	}
}

// Close flushes the store, writes data that makes the next Open fast, and closes the store. Close does not flush
// changes that other processes write during the call; those processes flush them. Close waits for running operations.
// It also waits for another process that is flushing, as long as that flush makes progress. Some operations cannot be
// canceled by a caller's ctx: those that PutAsync began, and writes of working memory whose commit has begun. If the
// log accepts no writes, Close abandons these operations after LockWait; the error then names them and is
// ErrOutcomeUnknown. Close takes seconds for 10,000 memories that have no files yet. CloseWithin limits the time.
func (st *Store) Close() error {
	return st.inner.Close(context.Background(), st.inner.Engine.Env().LockWait)
}

// CloseWithin closes the store as Close does, with a time limit, for a process that must end soon. It waits no longer
// than the limit for locks of other processes and for operations that make no progress. It writes files in groups of
// 1,000 until the time is over. If changes could not be written to files in time, they are still durable in the log,
// and the next flush by any process writes the files. The error then has the reason, which is context.DeadlineExceeded
// if the time was over. Accesses that Store.Touch has counted may be lost.
func (st *Store) CloseWithin(wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return st.inner.Close(ctx, wait)
}
