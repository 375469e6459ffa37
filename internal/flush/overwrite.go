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

// A purge may be killed, or fail, when what it deletes is in the log and has its files
// still. The next round displaces these. It keeps them for a purge as well, overwrites them
// when the round is durable. That there was one is known until one is done: until then what
// is let go of log and index is overwritten as well. What says so: the shared page while
// the store is open, see wal.Purges.Fail; the folder tmp/purge, durable before the first deletion.

// PurgeFolder is where index backups are written again, and where what stood in a
// document's folder is overwritten.
const PurgeFolder = "tmp/purge"

// Remains is what could not be overwritten.
type Remains struct {
	Left     []error  // where something may still be, and what helps
	Unlinked []string // what went without being overwritten
}

// keepsDisplaced reports whether nothing that is displaced may be reused or removed. A round that was there before
// the purge has nothing of what it deletes: between its announcement and the first deletion it takes flush.lock.
func (fl *Flusher) keepsDisplaced() bool {
	// In this order: one that fails says so before it ends.
	return fl.engine.Log().Purges().Running() && !fl.earlier.Load() || fl.engine.Log().Purges().Displaced()
}

// purgesIn says of a name in tmp/ that a purge has files in it that it works on.
func (fl *Flusher) purgesIn(name string) bool {
	return name == filepath.Base(PurgeFolder) && (fl.dooming || fl.engine.Log().Purges().Running())
}

// flushOverwriting is a round while nothing that may have something of a purged memory is
// let go without being overwritten: a purge is under way in some process, or one has failed
// and none was done since. The index that the round replaces has lines of it.
func (fl *Flusher) flushOverwriting(ctx context.Context, held *wal.Held, m Merge) error {
	var r Remains
	dir := filepath.Join(fl.engine.Env().Dir, filepath.FromSlash(PurgeFolder))
	err := error(nil)
	if !fl.earlier.Load() { // what is in the folder is that purge's
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
	// The folder stays until a purge is done: the next process to open the store is to know.
	err = old.Wipe(held, fl, &r)
	if !fl.engine.Log().Purges().Overwrites() { // it was given up before it deleted
		_ = DropPurgeFolder(fl)
	}
	fl.Unlinked = append(fl.Unlinked, r.Unlinked...)
	for _, name := range r.Unlinked {
		fl.engine.Env().Logger.Warn("part of the index was replaced after a purge that has not finished, and could not be "+
			"overwritten: another process has it mapped, or that cannot be told", "name", name)
	}
	for _, left := range r.Left {
		fl.engine.Env().Logger.Warn("after a purge that has not finished", "err", left)
	}
	if err != nil { // it keeps a name in tmp/purge, for the next purge
		fl.engine.Env().Logger.Warn("overwriting the index that was replaced after a purge that has not finished", "err", err)
	}
	return nil
}

// EnterPurgeFolder makes the folder that says it, and overwrites what a purge that was cut
// has left there: it is nobody else's while this one lasts. On a full disk it goes on
// without.
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
			err = fl.engine.Env().FS.Remove(path) // it is in its place still, or a backup
		} else if err == nil {
			err = vfs.Unwiped(&r.Left, vfs.WipeAlone(fl.engine.Env().FS, path))
		}
		if err != nil {
			return err
		}
	}
	return fl.engine.Env().FS.SyncDir(dir)
}

// DropPurgeFolder removes the folder in which files are overwritten and made again; it stays if one has to.
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

// lookForPurge looks whether one was cut, and none was done since.
func (fl *Flusher) lookForPurge(_ *wal.Held) {
	if !fl.engine.Log().Purges().Drop() && !fl.engine.Log().Purges().Running() {
		PurgeWasCut(fl)
	}
}

// PurgeWasCut looks for the folder of one, where none goes on and the shared page has no word of any that
// failed: it was killed with all processes. It returns whether what the next rounds displace may be of such
// a one, or that cannot be told now.
func PurgeWasCut(fl *Flusher) bool {
	if !fl.engine.Log().Purges().Failed() {
		info, err := fl.engine.Env().FS.Stat(filepath.Join(fl.engine.Env().Dir, filepath.FromSlash(PurgeFolder)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return true
		}
		if err == nil && info.Mode.IsDir() { // a file belongs to no purge: EmptyTemp deals with it
			fl.engine.Log().Purges().Fail()
		}
	}
	return fl.engine.Log().Purges().Displaced()
}

// endPurge overwrites what a purge that was cut would have; the round is in place durably, up to flushed.
func (fl *Flusher) endPurge(ctx context.Context, _ *wal.Held, flushed wal.LSN) {
	// a purge does it itself; what goes on beside rounds has files in tmp/
	if !fl.engine.Log().Purges().Displaced() || fl.engine.Log().Purges().Running() || fl.following != nil {
		return
	}
	edits, err := fl.files.WipeTemp(fl.Surplus(ctx))
	fl.Edited(ctx, edits)
	if err != nil {
		fl.engine.Env().Logger.Warn("overwriting leftovers of an interrupted purge", "err", err) // the next round tries again
		return
	}
	fl.engine.Log().Purges().WipedDisplaced(flushed)
}
