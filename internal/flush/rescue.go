package flush

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// Rescue puts everything that is durable and in no file yet into files, when files of the log were removed and the
// folder is still the store's (wal.Options.Rescue). It writes documents, and working memory, and nothing that
// belongs to the log: the next process to open the store begins a new log from the files.
func (fl *Flusher) Rescue(ctx context.Context, _ *wal.Held) error {
	n, err := fl.rescue(ctx)
	if err == nil {
		fl.engine.Env().Logger.Warn("the log was removed while the store was open: what only the log had was written to files", "documents", n)
	}
	return err
}

// rescueUnrecorded is Rescue for a store that closes where files of the log are being removed, of which so far only
// the checkpoint is gone: without it no round can end, and the log may be gone before the store is opened again. If
// the log stays, the next process finds the same in it.
func (fl *Flusher) rescueUnrecorded(ctx context.Context, _ *wal.Held) error {
	n, err := fl.rescue(ctx)
	if err == nil {
		fl.engine.Env().Logger.Warn("the checkpoint is missing: what only the log has was written to files", "documents", n)
	}
	return err
}

// rescue returns the number of documents.
func (fl *Flusher) rescue(ctx context.Context) (int, error) {
	fl.rescuing.Lock()
	defer fl.rescuing.Unlock()
	// flush.lock went with the log. Of several processes that rescue at once one does at a time.
	release, err := fl.lockFolder(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	defer func() { // nothing is left to be removed when the folder may be another process's
		if err := fl.files.Close(); err != nil {
			fl.engine.Env().Logger.Warn("emptying tmp/", "err", err)
		}
	}()
	if err := fl.engine.Log().CatchUp(ctx); err != nil {
		fl.engine.Env().Logger.Warn("reading the end of the removed log", "err", err) // what was read before is known
	}
	to, flushed := fl.engine.Log().AppliedMark(), fl.engine.Log().Flushed()
	fl.Lagging = lag{}
	distrusted := fl.engine.Log().Distrusted()
	files := fl.filing(ctx, flushed, distrusted)
	files.rescues, files.behind = true, to.LSN < fl.engine.Log().Durable()
	list := fl.engine.State().Changes(flushed, to.LSN)
	err = files.put(ctx, nil, list)
	if err == nil {
		_, err = files.hold(ctx, wal.Checkpoint{Flushed: wal.Mark{LSN: flushed}}, to, MergeFiles)
	}
	if err = files.end(err); err != nil {
		return 0, fl.engine.Env().Explain(err)
	}
	return len(list), nil
}

// superseded reports whether the file of a document has a version that is newer than e. A process that could not
// read the end of a removed log does not know what another process that could has put into files.
func (fl *Flusher) superseded(folder *docfile.Folder, e *wal.Entry) bool {
	info, err := folder.Stat(docfile.FileName(e.Key[1:]))
	return err == nil && info.Mtime.After(e.Time)
}

// lockFolder takes a lock on the folder of memories, which every store has.
func (fl *Flusher) lockFolder(ctx context.Context) (release func(), err error) {
	name := filepath.Clean(fl.engine.Kinds().Memories.Path(""))
	lock, err := vfs.OpenFolderLock(fl.engine.Env().FS, name)
	if errors.Is(err, errors.ErrUnsupported) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	// The holder rescues the same entries, unless it was stopped meanwhile.
	wait, cancel := context.WithTimeout(ctx, fl.engine.Env().LockWait)
	defer cancel()
	ok, err := vfs.WaitFolder(wait, lock, vfs.ModeExclusive)
	if err == nil && !ok {
		err = &errs.LockError{Path: name, Err: context.Cause(ctx)}
	}
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	return func() { _ = lock.Close() }, nil
}
