package store

import (
	"context"
	"errors"
	"time"

	"github.com/varve-db/varve/internal/flush"
)

// inPlace returns errs.ErrReplaced if the store's folder was replaced while the store was open; Close calls it. In
// that case, documents whose newest version is only in the log are first written to files. If some of them cannot be
// written, an *errs.UnfiledError is joined to the error. inPlace returns nil for a store that is open read-only.
func (st *Store) inPlace() error {
	if st.Engine.Env().ReadOnly {
		return nil
	}
	err := st.Engine.Log().Folder().InPlace()
	if err != nil {
		// the views that it needs are closed next
		err = errors.Join(err, st.Engine.Log().Folder().Leave(context.Background()))
	}
	return err
}

// restoreMost limits the time for restoring files when a handle without background goroutines is closed. If not all
// files are restored in that time, the next handle restores the rest.
const restoreMost = 2 * time.Second

// restoreFiles restores missing files when a handle without background goroutines is closed. It takes at most
// restoreMost, except with System.Inline.
//
// If adopt_deletions is false in config.json, files that were deleted by hand are restored, but not with
// System.Inline. Without background goroutines the store would notice such a deletion only when the document is read,
// and by then log and archive may no longer have the document.
//
// If adopt_deletions is true, only the files of folders that have vanished are restored, and none if ctx has a
// deadline, because the process must end soon. With System.Inline, too, only these files are restored. As long as some
// files of such a folder are missing, the store also restores a file in the folder that a user deletes.
func (st *Store) restoreFiles(ctx context.Context) {
	_, ends := ctx.Deadline()
	inline, adopts := st.Engine.Env().System.Inline, st.Engine.Settings().Now().AdoptsDeletions()
	if ends && adopts {
		return
	}
	if inline {
		st.Adopter.ResumeVanished(ctx)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, restoreMost)
	defer cancel()
	if adopts {
		st.Adopter.ResumeVanished(ctx)
	} else {
		st.Adopter.Reconcile(ctx)
	}
}

// Close flushes and closes the store, and releases the environment. It waits for operations and for locks of other
// processes for at most wait. If ctx has a deadline, Close writes files until that deadline. A second call does
// nothing.
func (st *Store) Close(ctx context.Context, wait time.Duration) error {
	eng := st.Engine
	eng.Closing().Lock()
	was := eng.Closed().Swap(true)
	eng.Closing().Unlock()
	if was {
		return nil
	}
	st.Embedding.Close() // puts that wait for the embedder are stored without vectors
	unwritten := eng.Finish(wait)
	if st.stop != nil {
		st.stop()
		uncut := context.AfterFunc(ctx, st.cut)
		st.running.Wait()
		uncut()
		st.cut()
	}
	place := st.inPlace()
	err := errors.Join(unwritten, place)
	if !eng.Env().ReadOnly && eng.Log().Damage() == nil && place == nil {
		if !st.Background() {
			st.Retention.SweepUp(ctx)
			st.restoreFiles(ctx)
		}
		err = errors.Join(err, st.Retention.WriteDue(flush.Unpaced(ctx)), st.Flusher.FlushClosing(ctx))
		if err != nil { // it may have been replaced meanwhile
			if place = st.inPlace(); place != nil {
				err = errors.Join(unwritten, place)
			}
		}
	}
	err = errors.Join(err, st.Flusher.Close(), st.Vectors.Close(), st.Vectors.Computed().Close(), st.Views.Close(),
		eng.Log().Close(), eng.State().Close())
	if eng.Cache() != nil {
		eng.Cache().InvalidateAll()
		eng.Cache().StopAllGoroutines()
	}
	if st.closed != nil {
		err = errors.Join(err, st.closed())
	}
	eng.Env().Release()
	return err
}
