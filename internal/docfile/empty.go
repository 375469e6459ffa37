package docfile

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/internal/vfs"
)

// tempDepth is the depth to which tmp/ is searched: tmp/<token>/<worker>/<file>.
const tempDepth = 3

// Surplus is a function that reports whether a file in tmp/ is not needed: its bytes are known versions of documents,
// or it is worthless, such as a temp file of another package. It is called only for files whose modification time is
// not surplusTime. path is relative to the store.
type Surplus = func(path string, info vfs.Info, data func() ([]byte, error)) bool

// EmptyTemp removes the files that all processes, running or not, have in tmp/, and returns the edits by other programs
// that it found there. The caller holds flush.lock, and has opened a store that was not closed, or found that the
// previous holder died. Processes that have the store open tolerate the loss of their files in tmp/.
//
// The function surplus is called for each file that is not marked as surplus. If surplus is nil, such files are treated
// as needed. A file that is neither marked nor surplus is moved to quarantine. A file that another process has open is
// parked. Replaced documents are overwritten before they are removed, because a purge that was killed may have left
// them.
func (f *Flusher) EmptyTemp(surplus Surplus) ([]Edit, error) {
	return f.emptyTemp(surplus, false)
}

// WipeTemp does the same as EmptyTemp for a purge: it overwrites every file that it removes. These include half-written
// files of other packages, and the files of processes that have the store open, because those files contain older
// versions of replaced documents. If WipeTemp cannot overwrite a file, it parks the file.
func (f *Flusher) WipeTemp(surplus Surplus) ([]Edit, error) {
	return f.emptyTemp(surplus, true)
}

// SweepTemp does the same as EmptyTemp, but only for the files of some processes. The function included reports whether
// a name in tmp/ belongs to one of these processes.
func (f *Flusher) SweepTemp(included func(name string) bool, surplus Surplus) ([]Edit, error) {
	e := emptying{f: f, surplus: surplus, of: included}
	e.folder(f.o.path(tempFolder), 1)
	return e.edits, errors.Join(append(e.fails, f.parked.sync())...)
}

func (f *Flusher) emptyTemp(surplus Surplus, all bool) ([]Edit, error) {
	for _, w := range f.workers {
		if w.cur != nil {
			_ = w.cur.file.Close()
		}
		w.cur = nil
		w.pool()
	}
	f.ready = false
	e := emptying{f: f, surplus: surplus, all: all}
	// Files that were parked out of a folder are durable in their new place before that folder is removed.
	f.parked.mu.Lock()
	f.parked.loaded = false
	err := f.parked.load()
	if err == nil {
		err = f.parked.sync()
	}
	f.parked.mu.Unlock()
	if err != nil {
		return nil, err
	}
	e.folder(f.o.path(tempFolder), 1)
	f.parked.mu.Lock()
	f.parked.loaded = false
	f.parked.mu.Unlock()
	err = f.parked.retry(func(x Edit) { e.edits = append(e.edits, x) })
	return e.edits, errors.Join(append(e.fails, err, f.parked.sync())...)
}

type emptying struct {
	f       *Flusher
	surplus Surplus
	all     bool                   // true for a purge: overwrite every file before removing it, as WipeTemp describes
	of      func(name string) bool // reports whether a name in tmp/ is to be emptied; nil: all names are
	edits   []Edit
	fails   []error
	placed  bool // all removals of files from documents' paths are durable; see settled
}

func (e *emptying) fail(doing, path string, err error) {
	if ignoreMissing(err) != nil {
		e.fails = append(e.fails, failure(doing, e.f.o.rel(path), err))
	}
}

func (e *emptying) folder(dir string, depth int) {
	if err := e.f.o.checkFolder(dir); err != nil {
		e.fail("empty", dir, err)
		return
	}
	names, err := e.f.o.FS.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) && depth > 1 && e.f.o.FS.Remove(dir) == nil {
		return // an empty folder, of another user's process that was killed before it gave the group access
	}
	if err != nil {
		e.fail("list", dir, err)
		return
	}
	slices.Sort(names)
	var doomed []*temp
	for _, name := range names {
		if depth == 1 && (e.of != nil && !e.of(name) || e.f.o.Leaves != nil && e.f.o.Leaves(name)) {
			continue
		}
		path := filepath.Join(dir, name)
		info, err := e.f.o.FS.Stat(path)
		switch {
		case err != nil:
			e.fail("examine", path, err)
		case info.Mode.IsRegular():
			if t := e.file(path, depth); t != nil {
				doomed = append(doomed, t)
			}
			if len(doomed) == wipeAtOnce {
				e.wipe(dir, doomed)
				doomed = nil
			}
		case info.Mode.IsDir() && depth < tempDepth && !(depth == 1 && name == parkedFolder):
			e.folder(path, depth+1)
			_ = e.f.o.FS.Remove(path) // stays if anything does
		case !info.Mode.IsDir(): // a link, which is not followed, or a special file: not ours, and without content
			edits, err := e.f.clear(path)
			e.edits = append(e.edits, edits...)
			e.fail("set aside", path, err)
		}
	}
	e.wipe(dir, doomed)
	// After a loss of power a name may come back that an exchange gave up, and the inode that it led to
	// then was never overwritten under this name. A folder that is already empty may have lost its names
	// only in memory, and removing it may fail.
	if e.all {
		e.fail("sync", dir, e.f.o.FS.SyncDir(dir))
	}
}

// wipe overwrites and removes the listed files of a folder.
func (e *emptying) wipe(dir string, list []*temp) {
	if len(list) == 0 {
		return
	}
	if !e.settled() {
		for _, t := range list {
			_ = t.file.Close()
		}
		return
	}
	if err := e.f.wipe(dir, list); err != nil {
		e.fails = append(e.fails, err)
	}
}

// settled syncs the folders of the documents, and reports whether that succeeded. Only then is it durable that
// replaced files are no longer at the paths of documents. Without it, a power loss could bring a file that was
// overwritten since back to its former path.
func (e *emptying) settled() bool {
	if e.placed || e.f.o.Places == nil {
		return true
	}
	for _, f := range e.f.o.Places() {
		dirs, err := f.Dirs()
		if ignoreMissing(err) != nil {
			e.fail("list", f.dir, err)
			return false
		}
		for _, dir := range dirs {
			if err := ignoreMissing(e.f.o.FS.SyncDir(dir)); err != nil {
				e.fail("sync", dir, err)
				return false
			}
		}
	}
	e.placed = true
	return true
}

// file examines one file in tmp/. If the caller has to overwrite and remove the file, it returns the file, and
// otherwise nil.
func (e *emptying) file(path string, depth int) (doomed *temp) {
	f, writable, err := openDisplaced(e.f.o.FS, path)
	if errors.Is(err, fs.ErrPermission) && !isDoomed(path) {
		err = e.closed(path)
		if err == nil {
			return nil
		}
	}
	if err != nil {
		e.fail("open", path, err)
		return nil
	}
	defer func() {
		if doomed == nil {
			_ = f.Close()
		}
	}()
	granted := leased(f)
	info, err := f.Stat()
	if err != nil {
		e.fail("examine", path, err)
		return nil
	}
	rel := e.f.o.rel(path)
	read := func() ([]byte, error) { return readAll(f, info.Size, e.f.o.Limit) }
	marked := info.Size == 0 || info.Mtime.Equal(surplusTime) || isDoomed(path)
	switch {
	case !marked && (e.surplus == nil || !e.surplus(rel, info, read)):
		n := Note{Why: "left in tmp/ by a killed process: a user's edit that was just being replaced, or an " +
			"incomplete temp file", From: rel}
		k, err := e.f.quarantine.take(f, path, n, granted)
		if err != nil {
			e.fail("set aside", path, err)
			return nil
		}
		e.edits = append(e.edits, Edit{Change: -1, Where: k.where, Info: k.info})
	case granted && info.Size > 0 && (depth > 1 || e.all):
		switch {
		case !marked && e.f.o.InPlace != nil && e.f.o.InPlace(info, read):
		case writable && info.Nlink == 1:
			return &temp{path: path, file: f, size: info.Size}
		case e.all && !isDoomed(path): // it is still in its place, and was to be removed from there
			e.park(path, info)
			return nil
		}
		fallthrough
	case granted:
		e.fail("remove", path, e.f.o.FS.Remove(path))
	default:
		e.park(path, info)
	}
	return nil
}

// closed handles a file in tmp/ that this user is not permitted to open: it removes an empty file, and moves any other
// file to quarantine. Such a file belongs to another user. Either a process was killed after it created the file and
// before it gave the group access, or the file is a replaced file that a user saved by hand.
func (e *emptying) closed(path string) error {
	info, err := e.f.o.FS.Stat(path)
	if err != nil || info.Mode.IsRegular() && info.Size == 0 {
		return ignoreMissing(errors.Join(err, e.f.o.FS.Remove(path)))
	}
	n := Note{Why: "left in tmp/ by a killed process; this user has no permission to read the file",
		From: e.f.o.rel(path)}
	k, err := e.f.quarantine.take(nil, path, n, false)
	if err == nil {
		e.edits = append(e.edits, Edit{Change: -1, Where: k.where, Info: k.info})
	}
	return err
}

func (e *emptying) park(path string, info vfs.Info) {
	e.fail("park", path, e.f.parked.add(path,
		believed{folder: tempFolder, name: filepath.Base(path), size: info.Size, mtime: info.Mtime}))
}
