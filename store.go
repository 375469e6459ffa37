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

// noticing is how long Open waits for other processes to notice that the log they have open was removed. These
// processes check their log every second.
const noticing = 5 * time.Second

// Memory is one memory; see package memstore.
type Memory = memstore.Memory

// Open opens the store in a folder, and creates one if there is none. Any number of processes may
// have it open. nil options are the defaults.
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

// target returns the absolute path of a folder that is to be created or filled. It refuses a link that leads nowhere,
// because the folder would replace the link.
func target(dir string) (string, error) {
	dir, err := absolute(dir)
	if err != nil {
		return dir, err
	}
	if vfs.Dangles(dir) {
		return dir, fmt.Errorf("%s: %w: a link that leads nowhere → remove the link, or name another place", dir,
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

// config returns the configuration with which internal/store opens a store in a folder. o has its defaults filled in.
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

// Close flushes, writes what makes the next open fast, and closes the store; changes that other processes write
// meanwhile are flushed by them. Close waits for running operations, and for another process that flushes as long as
// that makes progress. Operations that no caller's ctx can end (PutAsync; working memory whose caller has returned) are
// abandoned after LockWait if the log accepts nothing: the error names them and is ErrOutcomeUnknown. Close takes
// seconds for 10,000 memories that have no files yet; CloseWithin limits the time.
func (st *Store) Close() error {
	return st.inner.Close(context.Background(), st.inner.Engine.Env().LockWait)
}

// CloseWithin closes the store as Close does, with a time limit, for a process that must end soon. It waits at most
// that long for locks of other processes and for operations that make no progress, and writes files, in rounds of
// 1,000, until the time is over. Changes that could not be written to files by then are durable in the log, the error
// has the reason (context.DeadlineExceeded: the time was over), and the next flush by any process writes them. Accesses
// that Store.Touch has counted may be lost.
func (st *Store) CloseWithin(wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return st.inner.Close(ctx, wait)
}
