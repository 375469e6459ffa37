package flush

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// Rescue puts everything that is durable and in no file yet into files, when files of the log were removed and the
// folder is still the store's (wal.Options.Rescue). It writes documents, and working memory, and nothing that
// belongs to the log: the next process to open the store begins a new log from the files.
func (fl *Flusher) Rescue(ctx context.Context, _ *wal.Held) error {
	// flush.lock went with the log. Of several processes that rescue at once one does at a time.
	release, err := fl.lockFolder(ctx)
	if err != nil {
		return err
	}
	defer release()
	defer func() { // nothing is left to be removed when the folder may be another process's
		if err := fl.Files.Close(); err != nil {
			fl.Engine.Env.Logger.Warn("emptying tmp/", "err", err)
		}
	}()
	if err := fl.Engine.Log.CatchUp(ctx); err != nil {
		fl.Engine.Env.Logger.Warn("reading the end of the removed log", "err", err) // what was read before is known
	}
	to, flushed := fl.Engine.Log.AppliedMark(), fl.Engine.Log.Flushed()
	fl.Lagging = lag{}
	distrusted := fl.Engine.Log.Distrusted()
	files := fl.filing(ctx, flushed, distrusted)
	list := fl.Engine.State.Changes(flushed, to.LSN)
	err = files.put(ctx, nil, list)
	if err == nil {
		_, err = files.hold(ctx, wal.Checkpoint{Flushed: wal.Mark{LSN: flushed}}, to, MergeFiles)
	}
	if err = files.end(err); err != nil {
		return fl.Engine.Env.Explain(err)
	}
	fl.Engine.Env.Logger.Warn("the log was removed while the store was open: what it alone had was put into files", "documents", len(list))
	return nil
}

// lockFolder takes a lock on the folder of memories, which every store has.
func (fl *Flusher) lockFolder(ctx context.Context) (release func(), err error) {
	name := filepath.Clean(fl.Engine.Kinds.Memories.Path(""))
	lock, err := vfs.OpenFolderLock(fl.Engine.Env.FS, name)
	if errors.Is(err, errors.ErrUnsupported) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	// The holder rescues the same entries, unless it was stopped meanwhile.
	wait, cancel := context.WithTimeout(ctx, fl.Engine.Env.LockWait)
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
