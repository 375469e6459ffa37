package varve

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/vfs"
)

// A purge may be killed, or fail, when what it deletes is in the log and has its files
// still. The next round displaces these. It keeps them for a purge as well, overwrites them
// when the round is durable. That there was one is known until one is done: until then what
// is let go of log and index is overwritten as well. What says so: the shared page while
// others have the store open; the folder tmp/purge, durable before the first deletion; a
// flag in each process that has noticed.

// keepsDisplaced says that nothing that is displaced may be reused or removed.
func (st *Store) keepsDisplaced() bool { return st.engine.Log.Purging() || st.flusher.unpurged.Load() }

// purgesIn says of a name in tmp/ that a purge has files in it that it works on.
func (st *Store) purgesIn(name string) bool {
	return name == filepath.Base(purgeFolder) && (st.flusher.dooming || st.engine.Log.Purging())
}

// preparePurge enters the folder under flush.lock: a round beside may be using it.
func (st *Store) preparePurge(ctx context.Context, r *PurgeReport) error {
	if err := st.engine.Log.LockFlush(ctx); err != nil {
		return err
	}
	defer st.engine.Log.UnlockFlush()
	if err := st.enterPurgeFolder(r); err != nil {
		return st.engine.Env.IOError("making", filepath.Join(st.engine.Env.Dir, purgeFolder), err)
	}
	return nil
}

// flushOverwriting is a round while nothing that may have something of a purged memory is
// let go without being overwritten: a purge is under way in some process, or one has failed
// and none was done since. The index that the round replaces has lines of it.
func (st *Store) flushOverwriting(ctx context.Context, m merge) error {
	var r PurgeReport
	dir := filepath.Join(st.engine.Env.Dir, filepath.FromSlash(purgeFolder))
	err := error(nil)
	if st.engine.Log.Purging() { // what is in the folder is that purge's
		if err = vfs.MkdirAll(st.engine.Env.FS, dir, st.engine.Env.FolderMode); vfs.IsDiskFull(err) {
			err = nil
		}
	} else {
		err = st.enterPurgeFolder(&r)
	}
	if err != nil {
		return st.engine.Env.IOError("making", dir, err)
	}
	st.flusher.dooming = true
	defer func() { st.flusher.dooming = false }()
	old, err := st.doomIndex(ctx)
	if err != nil {
		return err
	}
	if err := st.flushRound(ctx, m); err != nil {
		return errors.Join(err, old.close())
	}
	err = old.wipe(st, &r) // the folder stays until a purge is done: whoever opens the store later is to know
	st.flusher.unlinked = append(st.flusher.unlinked, r.Unlinked...)
	for _, name := range r.Unlinked {
		st.engine.Env.Logger.Warn("part of the index was replaced after a purge that has not finished, and could not be overwritten: another process has it mapped, or nobody can tell", "name", name)
	}
	for _, left := range r.Left {
		st.engine.Env.Logger.Warn("after a purge that has not finished", "err", left)
	}
	if err != nil { // it keeps a name in tmp/purge, for the next purge
		st.engine.Env.Logger.Warn("overwriting the index that was replaced after a purge that has not finished", "err", err)
	}
	return nil
}

// enterPurgeFolder makes the folder that says it, and overwrites what a purge that was cut
// has left there: it is nobody else's while this one lasts. On a full disk it goes on
// without.
func (st *Store) enterPurgeFolder(r *PurgeReport) error {
	// A round that failed has left the old index mapped in this process.
	_ = st.engine.Refresh()
	dir := filepath.Join(st.engine.Env.Dir, filepath.FromSlash(purgeFolder))
	err := vfs.MkdirAll(st.engine.Env.FS, dir, st.engine.Env.FolderMode)
	if vfs.IsDiskFull(err) {
		return nil
	}
	if err != nil {
		return err
	}
	names, err := st.engine.Env.FS.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := st.engine.Env.FS.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode.IsRegular() {
			continue
		}
		if err == nil && info.Nlink > 1 && strings.HasSuffix(name, docfile.DoomedSuffix) {
			err = st.engine.Env.FS.Remove(path) // it is in its place still, or a backup
		} else if err == nil {
			err = vfs.Unwiped(&r.Left, vfs.WipeAlone(st.engine.Env.FS, path))
		}
		if err != nil {
			return err
		}
	}
	return st.engine.Env.FS.SyncDir(dir)
}

// lookForPurge looks whether one was cut, and none was done since; flush.lock is held. What
// that one displaced is overwritten once by each process that comes.
func (st *Store) lookForPurge() {
	stale := st.engine.Log.DropPurge()
	if !stale && !st.engine.Log.Purging() && !st.engine.Log.Overwrites() {
		info, err := st.engine.Env.FS.Stat(filepath.Join(st.engine.Env.Dir, filepath.FromSlash(purgeFolder)))
		stale = err == nil && info.Mode.IsDir() // anything else is nobody's: emptyTemp deals with it
	}
	if stale {
		st.engine.Log.FailPurge()
		st.flusher.unpurged.Store(true)
	}
}

// endPurge overwrites what a purge that was cut would have; the round is in place durably.
// flush.lock is held.
func (st *Store) endPurge(ctx context.Context) {
	if !st.flusher.unpurged.Load() || st.engine.Log.Purging() { // a purge does it itself
		return
	}
	edits, err := st.flusher.files.WipeTemp(st.surplus(ctx))
	st.edited(ctx, edits)
	if err != nil {
		st.engine.Env.Logger.Warn("overwriting what a purge has left that was cut", "err", err) // the next round tries again
		return
	}
	st.flusher.unpurged.Store(false)
}
