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

// placeLook is the interval at which an idle process checks whether the log at the store's path is still the
// one that it has open.
const placeLook = time.Second

// placeFresh is how long a check that the log is still in place (see InPlace) remains valid for the next write
// into an open segment. That write goes to the file that was checked, wherever that file is by then, and it is
// acknowledged only after another check, which follows the sync. Only a process that writes without a pause
// saves a check by this, one of two per commit.
const placeFresh = time.Millisecond

// place is what this process knows about the folder in which it opened the log: whether the log is still there,
// and whether this process still keeps the folder locked.
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

// replacedError explains how the log at the path differs from the one that was opened. It matches errs.ErrReplaced.
type replacedError struct {
	dir, why string
}

func (e *replacedError) Error() string {
	return fmt.Sprintf("%v (%s: %s)", errs.ErrReplaced, e.dir, e.why)
}

func (e *replacedError) Unwrap() error { return errs.ErrReplaced }

// InPlace returns an error that matches errs.ErrReplaced if the log is no longer the one at the path by which
// it was opened: its folder or its files were removed, renamed or replaced. The error is final: nothing is
// written from then on.
//
// While the log is being opened nothing is compared: settlePlace compares at the end of Open.
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

// inPlaceFor is like InPlace, before a write into segment number: a recent check is reused, see placeFresh.
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

// Replaced returns the error that InPlace has returned earlier, without checking again. It returns nil if InPlace has
// returned no error.
func (d Folder) Replaced() error {
	if e := d.l.place.gone.Load(); e != nil {
		return e
	}
	return nil
}

// Explain returns the error of InPlace if that explains err, and otherwise err. A file or a folder may be
// missing because the store's folder is being removed. The page may be removed last, so Explain waits for its
// removal, at most rescuePatience.
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

// isOfRemoval reports whether a failure may have been caused by the removal of the store's files. The error of
// a damaged checkpoint counts, because a missing checkpoint is reported as a damaged one.
func (l *FileLog) isOfRemoval(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, past.ErrNoSegment) || errors.Is(err, errNoPage) ||
		l.Folder().Unrecorded(err)
}

// Unrecorded reports whether an error means that the checkpoint file is missing. As long as the log is open no
// process creates another checkpoint.
func (d Folder) Unrecorded(err error) bool {
	if errors.Is(err, errSlot) {
		_, err = d.l.o.FS.Stat(filepath.Join(d.l.o.Dir, "checkpoint"))
		return errors.Is(err, fs.ErrNotExist)
	}
	return false
}

// keeps is like InPlace, for a caller that has seen the log durable up to the position at. It also returns an
// error if the shared page has a lower durable position: then the page was replaced by an older copy.
func (l *FileLog) keeps(at LSN) error {
	if err := l.Folder().InPlace(); err != nil {
		return err
	}
	if l.shared.Durable() < at {
		return l.older()
	}
	return nil
}

// older records that wal/shared was overwritten in place with a copy of an earlier moment, because a position
// in it has decreased. If another process has recovered the log, older returns that error instead.
func (l *FileLog) older() error {
	if err := l.lost(); err != nil {
		return err
	}
	l.lose("wal/shared was replaced by an older version")
	return l.Folder().Replaced()
}

// atTail returns an error unless the frames that this process has read end at the tail that the shared page
// records; append.lock and state.mu are held.
func (l *FileLog) atTail(tail LSN) error {
	switch at := l.state.w.At.LSN; {
	case at > tail:
		return l.older()
	case at < tail:
		return fmt.Errorf("the log's tail is at %d, but its frames end at %d", tail, at)
	}
	return nil
}

// lose records that another log is at the path, and why, and starts to release the folder of this log.
func (l *FileLog) lose(why string) {
	p := &l.place
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone.CompareAndSwap(nil, &replacedError{l.o.Dir, why}) {
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

// settleLoss releases the folder of a log that was replaced, once no flush is running. Before that it writes
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

// rescue calls Options.Rescue, again every second as long as that may help, for example while the disk is full
// or another process has a lock. Meanwhile this process keeps the folder locked, so that no other process
// begins a log that lacks these entries. When the log is being closed there is one more call, whose error
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
		l.o.Logger.Error("writing entries of the removed log into document files", "err", err)
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

// rescuePatience is how long rescue waits for a removal of the store's files that has begun, because they are
// removed one after the other.
const (
	rescuePatience = 500 * time.Millisecond
	placePause     = 10 * time.Millisecond
)

// rescues reports whether entries that are in no document file yet must be rescued: their segments are removed
// or about to be, while the folder is the one that was opened and no other log is in it. If wal/shared is gone
// and the segments still exist, it is unknown how long the removal will take, so the entries are rescued, too.
// If the segments stay, the next process finds the same entries in them.
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

// otherFolder is like outOfPlace, for a handle that has no shared page: it compares only the folder.
func (l *FileLog) otherFolder() string {
	at, ok, err := vfs.AtPath(l.o.FS, l.o.Dir+"/.")
	mine, merr := l.o.FS.Stat(l.o.Dir)
	switch {
	case !ok || merr != nil:
		return ""
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "the folder is missing"
	case err == nil && (at.Ino != mine.Ino || at.Dev != mine.Dev):
		return "another folder is there"
	}
	return ""
}

// lostSegments reports whether a segment with entries above the position Flushed no longer has its name in
// wal/.
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

// outOfPlace returns a description of how the log at the path differs from this one, "" if it does not.
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
		return "another wal/shared is there"
	case info.Size < vfs.PageSize, l.shared.Cut():
		return pageCut
	case !l.o.ReadOnly && l.lost() != nil:
		if l.shared.Cut() { // only an access detects this
			return pageCut
		}
		return "another process has recovered its log"
	}
	if l.o.ReadOnly {
		return ""
	}
	return l.unlinked()
}

// unlinked returns a description of what is wrong if the file of the newest segment no longer has its name, ""
// otherwise. It also compares the positions in the shared page: in a copy that was written over the files in
// place they are lower.
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

// pageCut is the message for a program that has truncated wal/shared in place, as cp -a of another copy does
// before it writes. The page is mapped, and an access beyond the end of the file faults: see vfs.IsCut.
// Acknowledged entries are in the segments, unless the program truncates those too.
const pageCut = "wal/shared was cut short"

// nameless returns a description of what has become of the name of a segment's open file, "" if it still has
// it.
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

// named reports whether the open file of a segment is the file with that name in wal/. The number of its links
// is not enough: the file may have a name in a copy of hard links (cp -al, rsync --link-dest), and some file
// systems do not count links.
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

// isFile opens the file that has a segment's name again, and reports whether it is the file that at describes.
// That shows whether inodes are reliable on this file system.
func (l *FileLog) isFile(at vfs.Info, number uint64) bool {
	f, err := l.o.FS.OpenFile(l.o.wal(segment.Name(number)), os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	return err == nil && info.Ino == at.Ino && info.Dev == at.Dev
}

// otherPage reports whether the page at the path is not the one that this process has mapped. The check raises
// a word in the mapped page: in a copy, however recent, the word has a smaller value. A page that is missing,
// not a regular file or not accessible is another one; any other failure to examine it is not a difference.
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

// settlePlace records, at the end of Open, the inode of the shared page that this process has mapped. It returns an
// error if another page is at the path by then.
func (l *FileLog) settlePlace() error {
	info, err := l.o.FS.Stat(l.o.wal("shared"))
	if err != nil {
		return l.ioError("checking", l.o.wal("shared"), err)
	}
	l.place.ino, l.place.dev = info.Ino, info.Dev
	if info.Ino != l.shared.Inode() { // replaced since it was mapped
		return &replacedError{l.o.Dir, "another wal/shared is there"}
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

// folderFree tries to lock the folder exclusively and reports whether it succeeded. Success means that no
// process has a log of this folder open, whatever became of the log's files. folderFree also returns true if the
// file system has no such locks.
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

// waitFolder waits until the folder is free, or until the function other returns true. It calls that function only
// after some milliseconds, because the system releases the locks of a killed process one after the other.
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
				Err: errors.New("a process still uses the previous log of this folder, whose files were removed or replaced"),
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

// shareFolder locks the folder shared, as an attached process does, and releases an exclusive lock first.
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

// noFolder continues without the lock on the folder, because the file system has no such locks. It is
// called only while the log is being opened.
func (l *FileLog) noFolder() {
	_ = l.place.folder.Close()
	l.place.folder = nil
}

// leave unlocks the folder, which other processes may then use; the caller holds mu.
func (p *place) leave() {
	if p.folder != nil {
		_ = p.folder.Close()
		p.folder = nil
	}
}

// begins and ends count the running flushes of this process.
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

// AwaitRescue blocks until this process no longer uses a folder whose log was replaced (InPlace) and has
// rescued what it could into files. It returns at once if the log is in its place.
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

// Leave is like AwaitRescue, for a log that is being closed: it tries a failed rescue once more, and the first
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

// watchPlace checks every placeLook whether the log is still in place, for an idle process: other processes
// wait for its lock on the folder, and a caller in this process that watches the store would wait without end.
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
