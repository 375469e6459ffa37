package flush

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// A purge may be killed, or fail, when its deletions are in the log and the files still exist. The next round displaces
// these files. It keeps them as a purge does, and overwrites them once the round is durable. The interrupted purge is
// remembered until another purge is done: until then, everything of log and index that is released is overwritten too.
// It is recorded in the shared page while the store is open, see wal.Purges.Fail, and by the folder tmp/purge, durable
// before the first deletion.

// PurgeFolder is the folder in tmp/ in which a purge rewrites index backups and overwrites replaced document
// files.
const PurgeFolder = "tmp/purge"

// Remains lists data that a purge could not overwrite.
type Remains struct {
	Left     []error  // places where data may remain, each with a remedy
	Unlinked []string // files that were removed without being overwritten
}

// keepsDisplaced reports whether replaced files must not be reused or removed, because a purge has to overwrite them.
// It returns false for a round that began before the purge was announced. Such a round replaces no file that the purge
// deletes, because the purge takes flush.lock between its announcement and its first deletion.
func (fl *Flusher) keepsDisplaced() bool {
	// In this order: a purge that fails records that before it ends.
	return fl.engine.Log().Purges().Running() && !fl.earlier.Load() || fl.engine.Log().Purges().Displaced()
}

// purgesIn reports whether a name in tmp/ is the folder of a purge, and a purge is working on files in it.
func (fl *Flusher) purgesIn(name string) bool {
	return name == filepath.Base(PurgeFolder) && (fl.dooming || fl.engine.Log().Purges().Running())
}

// flushOverwriting runs a round that overwrites what it releases, such as the index that it replaces, because the
// released files may contain data of a purged memory. This is necessary while a purge is running in any process, and
// after a failed purge until a later purge succeeds.
func (fl *Flusher) flushOverwriting(ctx context.Context, held *wal.Held, m Merge) error {
	var r Remains
	dir := filepath.Join(fl.engine.Env().Dir, filepath.FromSlash(PurgeFolder))
	err := error(nil)
	if !fl.earlier.Load() { // the files in the folder belong to that purge
		if err = vfs.MkdirAll(fl.engine.Env().FS, dir, fl.engine.Env().FolderMode); vfs.IsDiskFull(err) {
			err = nil
		}
	} else {
		err = fl.EnterPurgeFolder(held, &r)
	}
	if err != nil {
		return fl.engine.Env().IOError("making", dir, err)
	}
	fl.dooming = true
	defer func() { fl.dooming = false }()
	old, err := fl.DoomIndex(ctx, held, false)
	if err != nil {
		return err
	}
	if err := fl.FlushRound(ctx, held, m); err != nil {
		return errors.Join(err, old.Close())
	}
	// The folder stays until a purge is done: it informs the next process that opens the store.
	err = old.Wipe(held, fl, &r)
	if !fl.engine.Log().Purges().Overwrites() { // the purge was canceled before its first deletion
		_ = DropPurgeFolder(fl)
	}
	fl.Unlinked = append(fl.Unlinked, r.Unlinked...)
	for _, name := range r.Unlinked {
		fl.engine.Env().Logger.Warn("a replaced index file may contain data of an unfinished purge, and could not be "+
			"overwritten: another process may have the file mapped", "name", name)
	}
	for _, left := range r.Left {
		fl.engine.Env().Logger.Warn("an unfinished purge may have left purged data", "err", left)
	}
	if err != nil { // the file keeps a name in tmp/purge, for the next purge
		fl.engine.Env().Logger.Warn("cannot overwrite the previous index after a purge; the next purge tries again",
			"err", err)
	}
	return nil
}

// EnterPurgeFolder creates the folder that marks a purge, and overwrites the files that an interrupted purge left in
// the folder. It adds files that it cannot overwrite to r. No other purge uses the folder at the same time. If the
// disk is full, EnterPurgeFolder continues without the folder.
func (fl *Flusher) EnterPurgeFolder(_ *wal.Held, r *Remains) error {
	// A round that failed has left the old index mapped in this process.
	_ = fl.engine.Refresh()
	dir := filepath.Join(fl.engine.Env().Dir, filepath.FromSlash(PurgeFolder))
	err := vfs.MkdirAll(fl.engine.Env().FS, dir, fl.engine.Env().FolderMode)
	if vfs.IsDiskFull(err) {
		return nil
	}
	if err != nil {
		return err
	}
	names, err := fl.engine.Env().FS.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := fl.engine.Env().FS.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode.IsRegular() {
			continue
		}
		if err == nil && info.Nlink > 1 && strings.HasSuffix(name, docfile.DoomedSuffix) {
			err = fl.engine.Env().FS.Remove(path) // it still has its name, or is a backup
		} else if err == nil {
			err = vfs.Unwiped(&r.Left, vfs.WipeAlone(fl.engine.Env().FS, path))
		}
		if err != nil {
			return err
		}
	}
	return fl.engine.Env().FS.SyncDir(dir)
}

// DropPurgeFolder removes PurgeFolder, unless files are left in it.
func DropPurgeFolder(fl *Flusher) error {
	dir := filepath.Join(fl.engine.Env().Dir, filepath.FromSlash(PurgeFolder))
	if names, err := fl.engine.Env().FS.ReadDir(dir); errors.Is(err, fs.ErrNotExist) || err == nil && len(names) > 0 {
		return nil
	}
	if err := errors.Join(fl.engine.Env().FS.SyncDir(dir), fl.engine.Env().FS.Remove(dir)); err != nil &&
		!errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lookForPurge determines whether a purge was interrupted and no later purge has succeeded, and records the result in
// the page shared by all processes (wal/shared).
func (fl *Flusher) lookForPurge(_ *wal.Held) {
	if !fl.engine.Log().Purges().Drop() && !fl.engine.Log().Purges().Running() {
		PurgeWasCut(fl)
	}
}

// PurgeWasCut reports whether a purge was killed, so that files that the next rounds replace may have purged data. It
// is called while no running purge has created its folder. If the shared page (wal/shared) has no record of a failed
// purge, PurgeWasCut looks for the folder of a purge. If the folder exists, the purge was killed together with all
// other processes; PurgeWasCut then records that in the shared page. If the folder cannot be examined, PurgeWasCut
// returns true.
func PurgeWasCut(fl *Flusher) bool {
	if !fl.engine.Log().Purges().Failed() {
		info, err := fl.engine.Env().FS.Stat(filepath.Join(fl.engine.Env().Dir, filepath.FromSlash(PurgeFolder)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return true
		}
		if err == nil && info.Mode.IsDir() { // a file belongs to no purge: EmptyTemp handles it
			fl.engine.Log().Purges().Fail()
		}
	}
	return fl.engine.Log().Purges().Displaced()
}

// endPurge overwrites the data that an interrupted purge has not overwritten yet. flushed is the position up to which
// the round is durable.
func (fl *Flusher) endPurge(ctx context.Context, _ *wal.Held, flushed wal.LSN) {
	// a running purge does it itself; work beside rounds has files in tmp/
	if !fl.engine.Log().Purges().Displaced() || fl.engine.Log().Purges().Running() || fl.following != nil {
		return
	}
	edits, err := fl.files.WipeTemp(fl.Surplus(ctx))
	fl.Edited(ctx, edits)
	if err != nil {
		fl.engine.Env().Logger.Warn("overwriting leftovers of an interrupted purge failed", "err",
			err) // the next round tries again
		return
	}
	fl.engine.Log().Purges().WipedDisplaced(flushed)
}
