package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/page"
	"github.com/varve-db/varve/wal/past"
)

// A handle belongs to the folder that it opened. Users and programs replace that folder while it is open: rm
// -rf, git clean -fdX (which removes wal/, because the store's own .gitignore names it), a restored store that
// is renamed into place, a link that is switched, tar or rsync over it, a cleaner that removes old files, a
// mount. A process that continued would acknowledge writes that no other process can ever read, and would write
// files into a store that another process has open. Two mechanisms prevent this:
//
// The identity of the log is compared with the log at the path (Folder.InPlace) before anything is written, and
// again after a sync, before the write is acknowledged. The second comparison makes the acknowledgement true:
// at that moment, the log at the path had the entry. The comparison covers the inode of wal/shared, the
// generation in the mapped page, whether the newest segment still has its name, and positions in the page,
// which never decrease within a generation. The inodes of folders are not compared, because git clean, tar and
// cp -a keep them. A changed inode of the page alone is not a difference, because overlay file systems may
// change it: then the page at the path must show what this process has just written to its own page
// (otherPage).
//
// All attached processes hold a shared lock on the store's folder itself, which no program removes along with
// the files (vfs.FolderLock). A process that finds no log, or a log that no process has open, recovers or
// begins it under an exclusive lock on the folder. So it waits until every process that still has an earlier
// log of this folder open has noticed: such a process releases the folder as soon as it knows and none of its
// flushes is running (settleLoss). Without such locks (Windows, network file systems) only the comparison
// before each write is left.
//
// If the folder is still the same and only files of the log were removed, the entries that were acknowledged
// and are in no file yet would be lost. The process still has the removed segments open, and no other process
// begins a log in the folder while it holds the lock. So it first writes these entries into files
// (Options.Rescue), from which the next log begins.
//
// Between a comparison and the write that follows there is a moment in which the folder may change. If the
// whole folder was replaced, the handles of vfs.Hold make this harmless: the write goes to the old folder. If
// only files in it were replaced, the lock on the folder makes the change harmless.

// placeLook is the interval at which an idle process checks whether the log at the store's path is still the one that
// the process has open.
const placeLook = time.Second

// placeFresh is the time for which the result of a check that the log is in place (see InPlace) is used for the next
// write into an open segment. Such a write goes into the file that was checked, even if the file was moved meanwhile,
// and the write is acknowledged only after another check that follows the sync. This saves a process that writes
// without a pause one of the two checks per commit.
const placeFresh = time.Millisecond

// place describes the folder in which this process opened the log: whether the log is still in the folder, and whether
// this process still holds the lock on the folder.
type place struct {
	ino, dev uint64      // inode and device of wal/shared, when this process mapped it
	opened   atomic.Bool // the log is open and in use
	gone     atomic.Pointer[replacedError]
	compared atomic.Int64 // time since began at which InPlace last found no difference
	began    time.Time
	// The folder was unlocked. From then on only the entries that are applied can be read, because the shared
	// page may belong to a later log.
	left atomic.Bool

	lead    atomic.Pointer[Lead] // the Lead of this process; nil while it does not lead
	mu      sync.Mutex
	folder  vfs.FolderLock // lock on the folder; nil: the system has no such lock, or the folder was released
	flushes int            // number of running flushes of this process, under flush.lock
	still   chan struct{}  // closed when gone is set and no flush is running; nil before gone is set
	settled chan struct{}  // closed when the folder was released; nil before gone is set
	leaving chan struct{}  // closed when the log is being closed, see Leave
	unfiled error          // error of the rescue; Leave returns it once

	checkpoint openedCheckpoint
}

// replacedError describes how the log at the path differs from the log that was opened. The error matches
// errs.ErrReplaced.
type replacedError struct {
	dir, why string
}

func (e *replacedError) Error() string {
	return fmt.Sprintf("%v (%s: %s)", errs.ErrReplaced, e.dir, e.why)
}

func (e *replacedError) Unwrap() error { return errs.ErrReplaced }

// InPlace returns an error that matches errs.ErrReplaced if the log at the path is not the one that was opened, because
// the folder or its files were removed, renamed or replaced. After that, InPlace always returns the error, and nothing
// is written to the log any more.
//
// While the log is being opened, InPlace compares nothing: settlePlace does so at the end of Open.
func (d Folder) InPlace() error {
	if err := d.Replaced(); err != nil {
		return err
	}
	var why string
	switch {
	case d.l.private.Load(): // reading without a page, which another goroutine may be mapping
		why = d.l.otherFolder()
	case d.l.shared.Mapped() && (d.l.place.ino != 0 || d.l.o.ReadOnly):
		why = d.l.outOfPlace()
		if why == "" {
			d.l.place.compared.Store(int64(time.Since(d.l.place.began)))
		}
	}
	if why == "" {
		return nil
	}
	d.l.lose(why)
	return d.Replaced()
}

// inPlaceFor is like InPlace, for a caller that is about to write into the segment with the given number. It may use
// the result of a recent check; see placeFresh.
func (l *FileLog) inPlaceFor(number uint64) error {
	at := l.place.compared.Load()
	if at == 0 || time.Since(l.place.began)-time.Duration(at) > placeFresh || !l.hasOpen(number) {
		return l.Folder().InPlace()
	}
	if l.state.appliedAt.Load() > l.shared.Durable() && l.shared.Durable() != 0 {
		return l.Folder().InPlace() // which returns the reason
	}
	return l.Folder().Replaced()
}

// Replaced returns the error that an earlier InPlace returned, or nil if InPlace has not returned an error. It does not
// check again.
func (d Folder) Replaced() error {
	if e := d.l.place.gone.Load(); e != nil {
		return e
	}
	return nil
}

// Explain returns the error of InPlace if the log was replaced, and otherwise err. If err means that a file or a folder
// is missing, the store's folder may be about to be removed. The shared page may be removed last, so Explain then waits
// for its removal, at most rescuePatience.
func (d Folder) Explain(err error) error {
	if err = d.l.orReplaced(err); err == nil || errors.Is(err, errs.ErrReplaced) || d.l.o.ReadOnly ||
		!d.l.isOfRemoval(err) {
		return err
	}
	if _, told, _ := vfs.AtPath(d.l.o.FS, d.l.o.Dir); !told {
		return err
	}
	for began := time.Now(); ; time.Sleep(placePause) {
		if perr := d.InPlace(); perr != nil {
			return perr
		}
		if time.Since(began) > rescuePatience {
			return err
		}
	}
}

// orReplaced is like Explain, but does not wait.
func (l *FileLog) orReplaced(err error) error {
	if err == nil || l.o.ReadOnly || errors.Is(err, errs.ErrReplaced) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if perr := l.Folder().InPlace(); perr != nil {
		return perr
	}
	return err
}

// isOfRemoval reports whether an error may mean that the store's files are being removed. This includes the error for
// an invalid checkpoint, if the checkpoint file is missing.
func (l *FileLog) isOfRemoval(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, past.ErrNoSegment) || errors.Is(err, errNoPage) ||
		l.Folder().Unrecorded(err)
}

// Unrecorded reports whether err is the error for an invalid checkpoint and the checkpoint file is missing. No process
// creates a checkpoint file while a log is open.
func (d Folder) Unrecorded(err error) bool {
	if errors.Is(err, errSlot) {
		_, err = d.l.o.FS.Stat(filepath.Join(d.l.o.Dir, "checkpoint"))
		return errors.Is(err, fs.ErrNotExist)
	}
	return false
}

// keeps is like InPlace, for a caller that has seen that the log is durable up to pos. It also returns an error if
// the durable position in the shared page is lower than pos: then the page was replaced by an older copy.
func (l *FileLog) keeps(pos LSN) error {
	if err := l.Folder().InPlace(); err != nil {
		return err
	}
	if l.shared.Durable() < pos {
		return l.older()
	}
	return nil
}

// older is called if a position in the shared page has decreased. It records that wal/shared was overwritten with an
// older copy, and returns the error for this. But if another process has recovered the log, older only returns the
// error for that recovery.
func (l *FileLog) older() error {
	if err := l.lost(); err != nil {
		return err
	}
	l.lose("wal/shared was replaced by an older version")
	return l.Folder().Replaced()
}

// atTail returns an error if this process has not read the frames exactly up to tail, the tail in the shared page. The
// caller holds append.lock and state.mu.
func (l *FileLog) atTail(tail LSN) error {
	switch at := l.state.w.At.LSN; {
	case at > tail:
		return l.older()
	case at < tail:
		return fmt.Errorf("the tail of the log is at position %d, but the readable frames end at position %d", tail, at)
	}
	return nil
}

// lose records that the log was replaced, with the reason, and begins to release the folder of this log. Only the
// first call has an effect.
func (l *FileLog) lose(reason string) {
	p := &l.place
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone.CompareAndSwap(nil, &replacedError{l.o.Dir, reason}) {
		return
	}
	p.still, p.settled = make(chan struct{}), make(chan struct{})
	if p.flushes == 0 {
		close(p.still)
	}
	if l.o.Inline || l.o.ReadOnly {
		p.leave()
		close(p.settled)
		return
	}
	go l.settleLoss()
}

// settleLoss releases the folder of a log that was replaced, as soon as no flush is running. Before that, it writes
// entries that only this process has into document files.
func (l *FileLog) settleLoss() {
	p := &l.place
	<-p.still
	if p.opened.Load() && l.o.Rescue != nil && l.rescues() {
		err := l.rescue()
		p.mu.Lock()
		p.unfiled = err
		p.mu.Unlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave()
	if k := l.locks[roleAttach]; k != nil { // now the next process is alone
		_ = k.Close()
		l.locks[roleAttach] = nil
	}
	if lead := p.lead.Load(); lead != nil {
		_ = lead.end()
	}
	p.left.Store(true)
	close(p.settled)
}

// rescue calls Options.Rescue. If that fails but may succeed later, for example because the disk is full or another
// process has a lock, rescue repeats the call every second. During this time the folder stays locked, so that no other
// process begins a log without these entries. When the log is being closed, rescue makes one more call, whose error
// Leave returns.
func (l *FileLog) rescue() error {
	t := time.NewTicker(placeLook)
	defer t.Stop()
	var ending time.Time // of the first call after closing began
	for {
		select {
		case <-l.place.leaving:
			if ending.IsZero() {
				ending = time.Now()
			}
		default:
		}
		held := &Held{l: l, rescue: true}
		again, err := l.o.Rescue(context.Background(), held)
		held.unlocked.Store(true)
		if err == nil {
			return nil
		}
		l.o.Logger.Error("entries of the removed log could not be written into document files", "err", err)
		switch {
		case !again:
			return err
		case ending.IsZero(): // a call from before closing began is followed by another one
			select {
			case <-l.place.leaving:
			case <-t.C:
			}
		case !errors.Is(err, fs.ErrNotExist) || time.Since(ending) >= rescuePatience:
			return err
		default: // the removal continues, and has removed a folder that was just created
			time.Sleep(placePause)
		}
		if !l.rescues() { // the folder was replaced as well, or another copy was put into it
			return err
		}
	}
}

// rescuePatience is the time for which rescue waits if a removal of the store's files has begun, because the files are
// removed one after the other. placePause is the pause between two checks.
const (
	rescuePatience = 500 * time.Millisecond
	placePause     = 10 * time.Millisecond
)

// rescues reports whether this process must write entries that are in no document file yet into document files,
// because the log was lost. This is so if segments with such entries no longer have their names in wal/. It is also so
// if wal/shared is still missing after rescuePatience, because the removal of the segments may continue later. rescues
// returns false if the path leads to another folder or the folder has another log. It also returns false if the
// segments stay, because the next process finds the entries in them.
func (l *FileLog) rescues() bool {
	if l.place.folder == nil || l.shared.Durable() <= l.shared.Flushed() {
		return false
	}
	for began := time.Now(); ; time.Sleep(placePause) {
		if !l.folderIsOurs() || !l.shared.Cut() && l.lost() != nil { // if the page was cut, segments may be removed as well
			return false
		}
		at, err := l.o.FS.Stat(l.o.wal("shared"))
		switch sameFile := err == nil && at.Ino == l.place.ino && at.Dev == l.place.dev; {
		case err == nil && !sameFile && l.otherPage():
			return false
		case l.state.appliedAt.Load() > l.shared.Durable():
			// An older copy was written over the files: nothing is written to its page.
			return false
		}
		if l.lostSegments() {
			return true
		}
		if time.Since(began) >= rescuePatience {
			return errors.Is(err, fs.ErrNotExist)
		}
	}
}

// folderIsOurs reports whether the store's path still leads to the folder that was opened.
func (l *FileLog) folderIsOurs() bool {
	at, ok, err := vfs.AtPath(l.o.FS, l.o.Dir+"/.")
	mine, merr := l.o.FS.Stat(l.o.Dir)
	return ok && err == nil && merr == nil && at.Ino == mine.Ino && at.Dev == mine.Dev
}

// otherFolder is like outOfPlace, but compares only the folder. It is for a handle that has no shared page.
func (l *FileLog) otherFolder() string {
	at, ok, err := vfs.AtPath(l.o.FS, l.o.Dir+"/.")
	mine, merr := l.o.FS.Stat(l.o.Dir)
	switch {
	case !ok || merr != nil:
		return ""
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "the folder is missing"
	case err == nil && (at.Ino != mine.Ino || at.Dev != mine.Dev):
		return "the path now leads to another folder"
	}
	return ""
}

// lostSegments reports whether a segment with entries above the position Flushed no longer has its name in wal/.
func (l *FileLog) lostSegments() bool {
	for n := l.geo.Number(l.shared.Flushed()); n <= l.geo.Number(l.shared.Durable()-1); n++ {
		f, err := l.segment(n)
		if err != nil {
			continue // it cannot be read any more
		}
		if !l.named(n, f) {
			return true
		}
	}
	return false
}

// outOfPlace returns a description of the difference between the log at the path and this log, or "" if they are the
// same.
func (l *FileLog) outOfPlace() string {
	info, ok, err := vfs.AtPath(l.o.FS, l.o.wal("shared"))
	ino, dev := l.place.ino, l.place.dev
	if ino == 0 { // a read-only handle maps the page when there is one
		ino, dev = l.shared.Inode(), info.Dev
	}
	switch {
	case !ok:
		return ""
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		if dir, err := l.o.FS.Stat(l.o.walDir()); err == nil && !dir.Mode.IsDir() {
			return "wal is " + vfs.KindOf(dir.Mode) + " now"
		}
		return "wal/shared is missing"
	case err != nil:
		return "" // the path cannot be examined, which proves no difference
	case (info.Ino != ino || info.Dev != dev) && (l.o.ReadOnly || l.otherPage()):
		return "wal/shared is now another file"
	case info.Size < vfs.PageSize, l.shared.Cut():
		return pageCut
	case !l.o.ReadOnly && l.lost() != nil:
		if l.shared.Cut() { // only an access detects this
			return pageCut
		}
		return "another process has recovered the log"
	}
	if l.o.ReadOnly {
		return ""
	}
	return l.unlinked()
}

// unlinked reports a log whose newest segment is no longer in wal/ under its name: it returns a description of this,
// or "" if the segment is in place. It also compares positions in the shared page. A position that is lower than
// before means that an older copy was written over the files; unlinked then returns a description of that.
func (l *FileLog) unlinked() string {
	for last := LSN(0); ; {
		applied := l.state.appliedAt.Load() // load before durable, which only grows: nothing beyond it is applied
		durable := l.shared.Durable()
		if durable == 0 {
			return ""
		}
		if applied > durable {
			return "wal/shared was replaced by an older version"
		}
		if l.geo.Offset(durable) == 0 && l.Spilled() >= durable {
			return "" // durable is the end of a segment that may have been released
		}
		number := l.geo.Number(durable - 1)
		why := l.nameless(number)
		if why == "" || durable == last || l.Spilled() <= l.geo.End(number) {
			return why
		}
		last = durable // another writer has filled and released this segment since durable was loaded
	}
}

// pageCut is the message if another program has truncated wal/shared, as cp -a does before it copies over the file. The
// page is mapped, and an access beyond the end of the file causes a fault: see vfs.IsCut. Acknowledged entries are
// still in the segments, unless the program truncates the segments too.
const pageCut = "wal/shared was truncated"

// nameless returns a message if wal/ has no file for a segment, or if the file that this process has open no longer
// has the segment's name. Otherwise it returns "".
func (l *FileLog) nameless(number uint64) string {
	f, err := l.segment(number)
	if errors.Is(err, past.ErrNoSegment) && l.shared.Poison() != page.Damaged {
		return "the newest file of the log is missing"
	}
	if err == nil && !l.named(number, f) {
		return "the newest file of the log was removed"
	}
	return ""
}

// named reports whether the open file of a segment is still the file with the segment's name in wal/. To count the
// links of the open file is not sufficient: the file may have a name in a copy made of hard links (cp -al, rsync
// --link-dest), and some file systems do not count links.
func (l *FileLog) named(number uint64, f vfs.File) bool {
	at, err := vfs.Identify(l.o.FS, l.o.wal(segment.Name(number))) // before each commit: Stat would make it slower
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	if l.isKnown(number, f, at) {
		return true
	}
	info, err := f.Stat()
	if err == nil && at.Ino == info.Ino && at.Dev == info.Dev {
		l.know(number, f, info)
	}
	return err != nil || at.Ino == info.Ino && at.Dev == info.Dev || info.Nlink > 0 && !l.isFile(at, number)
}

// isFile opens the file with a segment's name and reports whether the open file has the inode and the device of want,
// which a look at the name has returned. If it returns false, inodes are not reliable on this file system.
func (l *FileLog) isFile(want vfs.Info, number uint64) bool {
	f, err := l.o.FS.OpenFile(l.o.wal(segment.Name(number)), os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	return err == nil && info.Ino == want.Ino && info.Dev == want.Dev
}

// otherPage reports whether the page at the path is not the page that this process has mapped. It raises a word in the
// mapped page, and then compares the word in the page at the path: in a copy of the page, even a recent one, the word
// is lower. A page that is missing, not a regular file or not accessible counts as another page. Any other error does
// not.
func (l *FileLog) otherPage() bool {
	p, err := vfs.SharedAtPath(l.o.wal("shared"))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) ||
			errors.Is(err, vfs.ErrNotRegular) || vfs.IsPermission(err)
	}
	defer p.Close()
	from := l.shared.Probe()
	at := page.New(p).Probed()
	return at < from || at > l.shared.Probed()
}

// settlePlace is called at the end of Open. It records the inode of the shared page that this process has mapped, and
// returns an error if the file at the path is another one.
func (l *FileLog) settlePlace() error {
	info, err := l.o.FS.Stat(l.o.wal("shared"))
	if err != nil {
		return l.ioError("checking", l.o.wal("shared"), err)
	}
	l.place.ino, l.place.dev = info.Ino, info.Dev
	if info.Ino != l.shared.Inode() { // replaced since it was mapped
		return &replacedError{l.o.Dir, "wal/shared is now another file"}
	}
	return nil
}

// openFolder opens the lock on the store's folder.
func (l *FileLog) openFolder() error {
	folder, err := vfs.OpenFolderLock(l.o.FS, l.o.Dir)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return l.ioError("opening", l.o.Dir, err)
	}
	l.place.folder = folder
	return nil
}

// folderFree tries to lock the folder in exclusive mode, and reports whether it succeeded. If it did, no process has a
// log of this folder open, even if files of the log were removed. folderFree also returns true if the file system has
// no such locks.
func (l *FileLog) folderFree() bool {
	if l.place.folder == nil {
		return true
	}
	ok, err := l.place.folder.TryLock(vfs.ModeExclusive)
	if err != nil {
		l.noFolder()
	}
	return ok || err != nil
}

// waitFolder waits until no process has a log of the folder open, or until other returns true. It reports whether the
// folder is free. It first calls other after some milliseconds, because the system needs time to release the locks of
// a killed process. After LockWait, the error is a *errs.LockError.
func (l *FileLog) waitFolder(ctx context.Context, other func() bool) (free bool, err error) {
	began := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if free = l.folderFree(); free || pause > 8*time.Millisecond && other() {
			return free, nil
		}
		if time.Since(began) > l.o.LockWait {
			pid := vfs.LockedBy(l.o.Dir)
			return false, &errs.LockError{
				Path: l.o.Dir, Holder: errs.Holder{PID: pid, Command: vfs.Process(pid).Command, Host: l.host.Name,
					PIDNamespace: l.host.PIDNamespace},
				Err: errors.New("a process still has the previous log of this folder open, although its files were " +
					"removed or replaced"),
			}
		}
		if err := l.o.Sleep(ctx, pause); err != nil {
			return false, err
		}
	}
}

// pageIsLive reports whether the shared page at the path belongs to processes that have the log open: it is of
// this boot, recovered, not a copy, and the log has segments.
func (l *FileLog) pageIsLive() bool {
	if !l.shared.Mapped() {
		l.namedPage()
	}
	if !l.shared.Mapped() {
		return false
	}
	info, err := l.o.FS.Stat(l.o.wal("shared"))
	if err != nil || !l.shared.Valid(l.host) || l.shared.Inode() != info.Ino {
		return false
	}
	segments, err := l.numbers()
	return err == nil && len(segments) > 0
}

// shareFolder locks the folder in shared mode, as all attached processes do. It first releases an exclusive lock.
func (l *FileLog) shareFolder(ctx context.Context) error {
	l.freeFolder()
	if l.place.folder == nil {
		return nil
	}
	// A process that tests whether the folder is free locks it for a moment.
	wait, cancel := context.WithTimeout(ctx, l.o.LockWait)
	defer cancel()
	ok, err := vfs.WaitFolder(wait, l.place.folder, vfs.ModeShared)
	if err != nil {
		l.noFolder()
		return nil
	}
	if !ok {
		return &errs.LockError{Path: l.o.Dir, Err: context.Cause(ctx)}
	}
	return nil
}

// freeFolder unlocks the folder if it is locked.
func (l *FileLog) freeFolder() {
	if l.place.folder != nil && l.place.folder.Unlock() != nil {
		l.noFolder()
	}
}

// noFolder makes the process continue without the lock on the folder, because the file system has no such locks. It is
// called only while the log is being opened.
func (l *FileLog) noFolder() {
	_ = l.place.folder.Close()
	l.place.folder = nil
}

// leave unlocks the folder; other processes may then use the folder. The caller holds mu.
func (p *place) leave() {
	if p.folder != nil {
		_ = p.folder.Close()
		p.folder = nil
	}
}

// begins counts a flush of this process that begins. The method ends is called when the flush has ended.
func (p *place) begins() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flushes++
}

func (p *place) ends() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flushes--; p.flushes == 0 && p.still != nil {
		select {
		case <-p.still:
		default:
			close(p.still)
		}
	}
}

// AwaitRescue blocks until this process has released the folder of a log that was replaced (see InPlace). Before that,
// the process writes the entries that would be lost into document files, as far as it can. If the log is in place,
// AwaitRescue returns at once.
func (d Folder) AwaitRescue(ctx context.Context) error {
	d.l.place.mu.Lock()
	settled := d.l.place.settled
	d.l.place.mu.Unlock()
	if settled == nil {
		return nil
	}
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Leave is like AwaitRescue, for a log that is being closed. If the rescue has failed, it is tried once more. The first
// call of Leave returns the error of the rescue.
func (d Folder) Leave(ctx context.Context) error {
	p := &d.l.place
	p.mu.Lock()
	select {
	case <-p.leaving:
	default:
		close(p.leaving)
	}
	p.mu.Unlock()
	err := d.AwaitRescue(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		err, p.unfiled = p.unfiled, nil
	}
	return err
}

// watchPlace checks at intervals of placeLook whether the log is still in place. An idle process would otherwise not
// notice that the log was replaced: other processes would wait for its lock on the folder, and a caller in this process
// that waits for changes would wait forever.
func (l *FileLog) watchPlace() {
	t := time.NewTicker(placeLook)
	defer t.Stop()
	for {
		select {
		case <-l.prep.stop:
			return
		case <-t.C:
		}
		if err := l.Folder().InPlace(); err != nil {
			l.o.Logger.Error("the store's folder was replaced: this process no longer writes to the store", "err", err)
			l.o.Event(Event{Kind: EventReplaced, Path: "wal/shared", Err: err})
			return
		}
	}
}
