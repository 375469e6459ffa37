package flush

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// Rescue puts everything that is durable and in no file yet into files, when files of the log were removed and the
// folder is still the store's (wal.Options.Rescue). It writes documents, and working memory, and nothing that
// belongs to the log: the next process to open the store begins a new log from the files. What could not be written
// is named by an *errs.UnfiledError. again reports that this may pass: documents of which no file can be made, of a
// forged log, stay what they are.
func (fl *Flusher) Rescue(ctx context.Context, _ *wal.Held) (again bool, err error) {
	n, again, err := fl.rescue(ctx)
	if err == nil {
		fl.engine.Env().Logger.Warn(
			"the log was removed while the store was open: what only the log had was written to files",
			"documents", n)
	}
	return again, err
}

// rescueUnrecorded is Rescue for a store that closes where files of the log are being removed, of which so far only
// the checkpoint is gone: without it no round can end, and the log may be gone before the store is opened again. If
// the log stays, the next process finds the same in it.
func (fl *Flusher) rescueUnrecorded(ctx context.Context, _ *wal.Held) error {
	n, _, err := fl.rescue(ctx)
	if err == nil {
		fl.engine.Env().Logger.Warn("the checkpoint is missing: what only the log has was written to files", "documents", n)
	}
	return err
}

// rescued is what a rescue has left out: documents of which no file can be made. The others are not to be lost with
// them.
type rescued struct {
	fl *Flusher

	mu     sync.Mutex
	at     map[wal.LSN]bool // of documents
	scopes map[string]bool  // of working memory
	err    error            // why, of one of them
}

func (r *rescued) sparesDocument(at wal.LSN, err error) {
	r.fl.engine.Env().Logger.Error("an entry that only the log has becomes no file", "lsn", at, "err", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at[at], r.err = true, cmp.Or(r.err, err)
}

func (r *rescued) sparesScope(key string, err error) bool {
	r.fl.engine.Env().Logger.Error("working memory that only the log has becomes no file", "scope", key, "err", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scopes[key], r.err = true, cmp.Or(r.err, err)
	return true
}

// rescue returns the number of documents. With an error, again reports that it may pass.
func (fl *Flusher) rescue(ctx context.Context) (n int, again bool, err error) {
	fl.rescuing.Lock()
	defer fl.rescuing.Unlock()
	left := &rescued{fl: fl, at: map[wal.LSN]bool{}, scopes: map[string]bool{}}
	list, err := fl.rescueTo(ctx, left)
	if err != nil {
		// A folder that is missing passes, too, such as one in tmp/ that the removal of the log took along, unless it
		// is that of the documents.
		again = !errors.Is(err, fs.ErrNotExist) || fl.hasFolder()
		return 0, again, fl.unfiledError(ctx, list, left, fl.engine.Env().Explain(err), func(e *wal.Entry) bool {
			return errors.Is(err, errs.ErrSyncFailed) || !fl.isFiled(e)
		})
	}
	if left.err != nil {
		return 0, false, fl.unfiledError(ctx, list, left, left.err, func(e *wal.Entry) bool {
			return e.Key[0] == record.Working && left.scopes[e.Key[1:]]
		})
	}
	return len(list), false, nil
}

// rescueTo puts documents into files, and returns all that only the log has.
func (fl *Flusher) rescueTo(ctx context.Context, left *rescued) ([]index.At, error) {
	if err := fl.engine.Log().CatchUp(ctx); err != nil {
		fl.engine.Env().Logger.Warn("reading the end of the removed log", "err", err) // what was read before is known
	}
	to, flushed := fl.engine.Log().AppliedMark(), fl.engine.Log().Flushed()
	list := fl.engine.State().Changes(flushed, to.LSN)
	// flush.lock went with the log. Of several processes that rescue at once one does at a time.
	release, err := fl.lockFolder(ctx)
	if err != nil {
		return list, err
	}
	defer release()
	defer func() { // nothing is left to be removed when the folder may be another process's
		if err := fl.files.Close(); err != nil {
			fl.engine.Env().Logger.Warn("emptying tmp/", "err", err)
		}
	}()
	fl.Lagging = lag{}
	distrusted := fl.engine.Log().Notes().Distrusted()
	files := fl.filing(ctx, flushed, distrusted)
	files.rescues, files.behind = left, to.LSN < fl.engine.Log().Durable()
	err = files.put(ctx, nil, list)
	if err == nil {
		_, err = files.hold(ctx, wal.Checkpoint{Flushed: wal.Mark{LSN: flushed}}, to, MergeFiles)
	}
	return list, files.end(err)
}

// unfiledError returns the error that names what was left out of a rescue, and those documents of a list that are
// missing in files. The id of an entry that cannot be read is not known.
func (fl *Flusher) unfiledError(
	ctx context.Context, list []index.At, left *rescued, cause error, missing func(e *wal.Entry) bool,
) error {
	over := &errs.UnfiledError{Path: fl.engine.Env().Dir, Err: cause}
	for _, change := range list {
		e, err := fl.engine.Log().ReadAt(ctx, change.Pos)
		if err == nil && !left.at[change.Pos] && !missing(&e) {
			continue
		}
		if over.Count++; len(over.Documents) == errs.UnfiledNamed {
			continue
		}
		name := fmt.Sprintf("version %d", change.Pos)
		if err == nil {
			name = fl.nameOf(e.Key)
		}
		over.Documents = append(over.Documents, name)
	}
	return over
}

// nameOf returns the kind and the id of a document by its key in the log.
func (fl *Flusher) nameOf(key string) string {
	k := fl.engine.Kinds().Of(key)
	if key[0] == record.Working {
		k = fl.engine.Kinds().Scopes
	}
	if k == nil {
		return human.Quote(key)
	}
	return k.Noun + " " + human.Quote(key[1:])
}

// isFiled reports whether the file of a document has what an entry says, or a newer version: the time of a file is
// that of its commit. Of working memory the file does not tell.
func (fl *Flusher) isFiled(e *wal.Entry) bool {
	k := fl.engine.Kinds().Of(e.Key)
	if k == nil {
		return e.Key[0] != record.Working // no document
	}
	info, err := k.Folder.Stat(k.FileName(e.Key[1:]))
	if e.Delete {
		return errors.Is(err, fs.ErrNotExist)
	}
	return err == nil && !info.Mtime.Before(e.Time)
}

// superseded reports whether the file of a document has a version that is newer than e. A process that could not
// read the end of a removed log does not know what another process that could has put into files.
func (fl *Flusher) superseded(k *engine.Kind, e *wal.Entry) bool {
	info, err := k.Stat(k.FileName(e.Key[1:]))
	return err == nil && info.Mtime.After(e.Time)
}

// hasFolder reports whether the folder of memories, which every store has, is in its place.
func (fl *Flusher) hasFolder() bool {
	_, err := fl.engine.Env().FS.Stat(filepath.Clean(fl.engine.Kinds().Memories.Path("")))
	return err == nil
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
