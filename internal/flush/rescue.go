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

// Rescue writes all durable changes that are not in files yet to files. It is called after files of the log were
// removed, if the folder is still the store's (wal.Options.Rescue). It writes documents and working memory, and
// nothing that belongs to the log: the next process to open the store begins a new log from the files. The error
// *errs.UnfiledError names the documents that could not be written. retry reports whether another attempt may
// succeed. Another attempt never succeeds for documents of a forged log that cannot be written to files.
func (fl *Flusher) Rescue(ctx context.Context, _ *wal.Held) (retry bool, err error) {
	n, retry, err := fl.rescue(ctx)
	if err == nil {
		fl.engine.Env().Logger.Warn(
			"the log was removed while the store was open: documents that only the log had were written to files",
			"documents", n)
	}
	return retry, err
}

// rescueUnrecorded does the same as Rescue for a store that closes while files of the log are being removed, if only
// the checkpoint is missing so far. Without the checkpoint no round can end, and the rest of the log may be missing
// when the store is opened again. If the log remains, the next process finds the same entries in it.
func (fl *Flusher) rescueUnrecorded(ctx context.Context, _ *wal.Held) error {
	n, _, err := fl.rescue(ctx)
	if err == nil {
		fl.engine.Env().Logger.Warn("the checkpoint is missing: documents that only the log has were written to files",
			"documents", n)
	}
	return err
}

// rescued records the documents that a rescue has omitted because they cannot be written to files. The rescue writes
// all others.
type rescued struct {
	fl *Flusher

	mu     sync.Mutex
	at     map[wal.LSN]bool // versions of omitted documents
	scopes map[string]bool  // keys of omitted scopes of working memory
	err    error            // reason why one of the documents was omitted
}

func (r *rescued) sparesDocument(version wal.LSN, err error) {
	r.fl.engine.Env().Logger.Error("an entry that only the log has cannot be written to a file",
		"lsn", version, "err", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at[version], r.err = true, cmp.Or(r.err, err)
}

func (r *rescued) sparesScope(key string, err error) bool {
	r.fl.engine.Env().Logger.Error("working memory that only the log has cannot be written to a file", "scope", key,
		"err", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scopes[key], r.err = true, cmp.Or(r.err, err)
	return true
}

// rescue writes to files the documents that are only in the log. n is the number of changes that rescue has written;
// it is 0 if err is not nil. retry reports whether another attempt may succeed after an error.
func (fl *Flusher) rescue(ctx context.Context) (n int, retry bool, err error) {
	fl.rescuing.Lock()
	defer fl.rescuing.Unlock()
	left := &rescued{fl: fl, at: map[wal.LSN]bool{}, scopes: map[string]bool{}}
	list, err := fl.rescueTo(ctx, left)
	if err != nil {
		// A missing folder may be temporary too, such as one in tmp/ that was removed with the log, unless it is that
		// of the documents.
		retry = !errors.Is(err, fs.ErrNotExist) || fl.hasFolder()
		return 0, retry, fl.unfiledError(ctx, list, left, fl.engine.Env().Explain(err), func(e *wal.Entry) bool {
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

// rescueTo writes to files the documents that are only in the log, and returns all changes that are only in the log.
// It records in left the documents that it omits because they cannot be written.
func (fl *Flusher) rescueTo(ctx context.Context, left *rescued) ([]index.At, error) {
	if err := fl.engine.Log().CatchUp(ctx); err != nil {
		fl.engine.Env().Logger.Warn("the end of the removed log cannot be read", "err", err) // earlier entries are known
	}
	to, flushed := fl.engine.Log().AppliedMark(), fl.engine.Log().Flushed()
	list := fl.engine.State().Changes(flushed, to.LSN)
	// flush.lock was removed with the log. Only one process at a time may rescue.
	release, err := fl.lockFolder(ctx)
	if err != nil {
		return list, err
	}
	defer release()
	defer func() { // now, because later the folder may belong to another process
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

// unfiledError returns the error that names the documents that are not in files: the documents that a rescue has
// omitted, and those in list for which missing returns true. If an entry is unreadable, the id of its document is
// unknown.
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

// nameOf returns the kind and the id of a document from its key in the log.
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

// isFiled reports whether the file of a document has the version of log entry e, or a newer one. It compares the
// file's time with the time of the commit. For a deletion it reports whether the file is missing. It returns false for
// working memory, because the file does not show its version, and true for an entry that is not of a document.
func (fl *Flusher) isFiled(e *wal.Entry) bool {
	k := fl.engine.Kinds().Of(e.Key)
	if k == nil {
		return e.Key[0] != record.Working // not a document
	}
	info, err := k.Folder.Stat(k.FileName(e.Key[1:]))
	if e.Delete {
		return errors.Is(err, fs.ErrNotExist)
	}
	return err == nil && !info.Mtime.Before(e.Time)
}

// superseded reports whether the file of a document has a newer version than log entry e. If this process could not
// read the end of a removed log, another process may have read it, and may have written newer versions to files.
func (fl *Flusher) superseded(k *engine.Kind, e *wal.Entry) bool {
	info, err := k.Stat(k.FileName(e.Key[1:]))
	return err == nil && info.Mtime.After(e.Time)
}

// hasFolder reports whether the folder of memories, which every store has, exists at its path.
func (fl *Flusher) hasFolder() bool {
	_, err := fl.engine.Env().FS.Stat(filepath.Clean(fl.engine.Kinds().Memories.Path("")))
	return err == nil
}

// lockFolder takes a lock on the folder of memories, which every store has. The lock replaces flush.lock, which was
// removed with the log. If the system cannot lock folders, lockFolder takes no lock and returns no error.
func (fl *Flusher) lockFolder(ctx context.Context) (release func(), err error) {
	name := filepath.Clean(fl.engine.Kinds().Memories.Path(""))
	lock, err := vfs.OpenFolderLock(fl.engine.Env().FS, name)
	if errors.Is(err, errors.ErrUnsupported) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	// The holder is rescuing the same entries, unless it was stopped meanwhile.
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
