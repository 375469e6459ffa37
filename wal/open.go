package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal/page"
)

// Open opens the log of a store.
//
// Under open.lock, Open tries to lock attach.lock in exclusive mode, to find out whether another process has the log
// open. If no process has it open, Open recovers the log. Otherwise it reads the positions of the log from the shared
// page, and fails if the page is invalid: a new page would lose the writes of the other processes. A read-only handle
// takes no lock and changes nothing.
func Open(ctx context.Context, o Options) (*FileLog, error) {
	if o.Machine == nil {
		return nil, fmt.Errorf("%w options: Machine is required", errs.ErrInvalid)
	}
	o.fill()
	l := &FileLog{o: o, host: o.FS.Host(), slot: page.NoSlot}
	l.files.open, l.files.known = map[uint64]vfs.File{}, map[uint64]fileID{}
	l.place.began = time.Now()
	l.syncing = make(chan struct{}, 1)
	l.prep.kick, l.prep.stop = make(chan struct{}, 1), make(chan struct{})
	l.place.leaving = make(chan struct{})
	var err error
	if o.ReadOnly {
		err = l.openReadOnly(ctx)
	} else {
		err = l.openShared(ctx)
	}
	if err == nil && !o.ReadOnly {
		err = l.settlePlace()
	}
	if err == nil {
		err = l.Processes().Heartbeat()
	}
	if err != nil {
		l.closeAll()
		return nil, err
	}
	l.place.opened.Store(true)
	if _, watched, _ := vfs.AtPath(o.FS, o.Dir); watched && !o.ReadOnly && !o.Inline {
		l.knowCheckpoint()
		l.prep.stopped.Go(l.watchPlace)
	}
	return l, nil
}

func (l *FileLog) openShared(ctx context.Context) error {
	if err := l.openFolder(); err != nil {
		return err
	}
	// If there is no log, one is created, but not while a process still has an earlier log of this folder open.
	hasPage := func() bool {
		_, err := l.o.FS.Stat(l.o.wal("shared"))
		return err == nil
	}
	if !hasPage() {
		if _, err := l.waitFolder(ctx, hasPage); err != nil {
			return err
		}
		l.freeFolder() // the folder is locked again after open.lock, whose holder may wait for the folder
	}
	if err := l.folders(); err != nil {
		return err
	}
	for role := range l.locks {
		k, err := l.o.FS.OpenLock(l.o.wal(roleNames[role]), l.o.FileMode)
		if err != nil {
			return l.ioError("opening", l.o.wal(roleNames[role]), err)
		}
		l.locks[role] = k
		if role != roleAppend && role != roleSync {
			continue
		}
		if err := vfs.KeepOpen(k); err != nil { // every commit takes it, and must not fail because no file can be opened
			return l.ioError("opening", l.o.wal(roleNames[role]), err)
		}
	}
	volume, err := l.o.FS.Volume(l.o.Dir)
	if err != nil {
		return l.ioError("determining the file system of", l.o.Dir, err)
	}
	l.namedPage() // an existing page names the holders if the locks are not free
	if err := l.lock(ctx, roleOpen, vfs.ModeExclusive); err != nil {
		return err
	}
	defer l.unlock(roleOpen)
	// The mapped page may be gone, if the store was moved away and back: a process that used it would share
	// nothing with the other processes.
	if l.namedPage(); l.shared.Mapped() {
		l.took(roleOpen)
	}
	if l.o.Resides != nil {
		if err := l.o.Resides(); err != nil {
			return err
		}
	}
	if err := l.dwell(); err != nil {
		return err
	}
	if err := l.otherKernel(ctx); err != nil {
		return err
	}
	alone, err := l.locks[roleAttach].TryLock(vfs.ModeExclusive)
	if err != nil {
		return l.ioError("locking", l.o.wal("attach.lock"), err)
	}
	if !alone {
		if !volume.Coherent {
			return &errs.LockError{Path: l.o.Dir,
				Err: fmt.Errorf("on a file system of the type %s, only one process can use a store at a time",
					volume.Type)}
		}
		return l.joinWhole(ctx)
	}
	// attach.lock may be a new file while attached processes hold the old one: then they use the page. Or
	// attached processes have an earlier log of this folder.
	if alone, err = l.waitFolder(ctx, l.pageIsLive); err != nil {
		return err
	}
	if !alone {
		if err := l.locks[roleAttach].Unlock(); err != nil {
			return err
		}
		return l.joinWhole(ctx)
	}
	// The process that created folders and segments may have been killed before their names were durable.
	for _, dir := range []string{l.o.Dir, l.o.walDir()} {
		if err := l.o.FS.SyncDir(dir); err != nil {
			return l.ioError("syncing", dir, err)
		}
	}
	if err := l.sever(); err != nil {
		return err
	}
	if err := l.recover(ctx); err != nil {
		return err
	}
	l.slot = l.shared.Claim(l.host, uint64(l.o.Known))
	if err := l.shareFolder(ctx); err != nil {
		return err
	}
	if !volume.Coherent {
		return nil // attach.lock stays exclusive
	}
	// Locks are never converted: a refused conversion drops the lock that was held. No other process can attach
	// in between, because this one has open.lock.
	if err := l.locks[roleAttach].Unlock(); err != nil {
		return err
	}
	ok, err := l.locks[roleAttach].TryLock(vfs.ModeShared)
	if err == nil && !ok {
		err = errors.New("another program, which does not have the store open, has locked the file")
	}
	if err != nil {
		return fmt.Errorf("locking %s: %w", l.o.wal("attach.lock"), err)
	}
	return nil
}

// namedPage maps the shared page at the path wal/shared, if the file exists and has no hard link in another folder.
func (l *FileLog) namedPage() {
	if l.shared.Mapped() {
		_ = l.shared.Close()
		l.shared = page.Page{}
	}
	if !l.linked(l.o.wal("shared")) {
		if p, err := l.o.FS.OpenShared(l.o.wal("shared"), false, l.o.FileMode); err == nil {
			l.shared = page.New(p)
		}
	}
}

// leavingError means that a log could not be joined because files of the log are missing, probably because they are
// being removed.
type leavingError struct{ error }

func (e *leavingError) Unwrap() error { return e.error }

// IsLeaving reports whether err means that files of a log are missing while another process has the log open. If the
// files are being removed, the other process notices this and releases the folder; the next Open then creates a log.
func IsLeaving(err error) bool {
	leaving := (*leavingError)(nil)
	return errors.As(err, &leaving)
}

// joinWhole is like join. If join fails because files are missing, IsLeaving returns true for the error of joinWhole.
func (l *FileLog) joinWhole(ctx context.Context) error {
	err := l.join(ctx)
	if err != nil && !l.o.Inline && l.isOfRemoval(err) {
		return &leavingError{err}
	}
	return err
}

// errNoPage means that the shared page, through which this process would join the others, is missing.
var errNoPage = errors.New("close the store in every process that has it open, then open it again")

// join attaches this process to a log that other processes have already recovered and have open.
func (l *FileLog) join(ctx context.Context) error {
	if ok, err := l.locks[roleAttach].TryLock(vfs.ModeShared); err != nil || !ok {
		return &errs.LockError{Path: l.o.wal("attach.lock"), Holder: l.holder(roleOpen), Err: err}
	}
	if !l.shared.Mapped() {
		p, err := l.o.FS.OpenShared(l.o.wal("shared"), false, l.o.FileMode)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
			return fmt.Errorf("other processes have this store open, but %s is missing or cut short: %w", l.o.wal("shared"),
				errNoPage)
		}
		if err != nil {
			return l.ioError("opening", l.o.wal("shared"), err)
		}
		l.shared = page.New(p)
	}
	if !l.shared.Valid(l.host) {
		return fmt.Errorf("%w: other processes have this store open, but %s was not written since the machine was "+
			"started: close the store in all of them, then open it again", errs.ErrLocked, l.o.wal("shared"))
	}
	l.generation.Store(l.shared.Generation())
	if err := l.still(); err != nil {
		return err
	}
	if err := l.shareFolder(ctx); err != nil {
		return err
	}
	l.slot = l.shared.Claim(l.host, uint64(l.o.Known))
	if l.shared.Poison() == page.Damaged {
		l.damage.Store(&errs.CorruptionError{Path: "wal", Offset: -1,
			Err: errors.New("the log is damaged: run memctl verify")})
		l.report.Damage = l.Damage()
	}
	return l.follow(ctx)
}

// follow loads the views as of the position that the checkpoint records, and applies all durable entries after it.
func (l *FileLog) follow(ctx context.Context) error {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	var err error
	for range 10 {
		var c Checkpoint
		if c, err = readCheckpoint(l.o.FS, l.o.Dir); err != nil {
			return fmt.Errorf("reading %s/checkpoint: %w", l.o.Dir, err)
		}
		if err = l.admit(c.Features); err != nil {
			return err
		}
		l.geo.UUID, l.geo.Size = c.UUID, c.SegmentSize
		l.state.lastTime = max(l.state.lastTime, c.Time)
		l.report.Flushed, l.report.Mtimes, l.report.Features = c.Flushed.LSN, c.Mtimes, c.Features
		if err = l.begin(ctx, c.Spilled, Start{}); err != nil {
			return err
		}
		durable := l.shared.Durable()
		if err = l.readTo(durable, durable); !errors.Is(err, errs.ErrTruncated) {
			break
		}
	}
	if err != nil {
		return err
	}
	return l.agrees(l.state.applied)
}

func (l *FileLog) folders() error {
	for _, dir := range []string{l.o.walDir(), l.o.wal("archive")} {
		info, err := l.o.FS.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			if dir == l.o.walDir() && !l.o.Create {
				return fmt.Errorf("%s: %w", l.o.Dir, errs.ErrNoStore)
			}
			if err = l.o.FS.Mkdir(dir, l.o.DirMode); errors.Is(err, fs.ErrExist) {
				err = nil
			}
			if err != nil {
				return l.ioError("making", dir, err)
			}
			if err := l.o.FS.SyncDir(l.o.Dir); err != nil {
				return l.ioError("syncing", l.o.Dir, err)
			}
			continue
		}
		if err != nil {
			return l.ioError("checking", dir, err)
		}
		if !info.Mode.IsDir() {
			return &vfs.NotFolderError{Path: dir, Mode: info.Mode}
		}
	}
	return nil
}

// Close closes the log for this process. For a clean end, the caller must first flush, and record the end of the log in
// the checkpoint as attested.
func (l *FileLog) Close() error {
	l.q.close()
	replaced := l.Folder().InPlace() != nil
	close(l.prep.stop)
	l.prep.stopped.Wait()
	l.closeSentry()
	if !l.o.ReadOnly && !replaced {
		if others := l.Processes().IDs(); len(others) == 0 || len(others) == 1 && l.slot >= 0 {
			_ = l.writeOwner(owner{beat: l.o.Clock()}) // best effort, to save the next boot a wait
		}
	}
	return l.closeAll()
}

func (l *FileLog) closeAll() error {
	first := l.Folder().Leave(context.Background())
	if l.shared.Mapped() {
		if !l.o.ReadOnly && l.Folder().Replaced() == nil { // else the page may belong to a later log
			l.shared.Release(l.slot, l.host.PID)
		}
		_ = l.shared.Close()
	}
	for _, k := range l.locks {
		if k != nil {
			if err := k.Close(); err != nil && first == nil {
				first = err
			}
		}
	}
	l.closeFiles()
	l.place.checkpoint.close()
	l.place.mu.Lock()
	l.place.leave()
	l.place.mu.Unlock()
	return first
}
