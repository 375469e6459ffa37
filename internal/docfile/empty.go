package docfile

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/internal/vfs"
)

// tempDepth is how deep tmp/ is looked through: tmp/<token>/<worker>/<file>.
const tempDepth = 3

// EmptyTemp removes what processes left in tmp/, of all tokens, and returns the
// edits it found there. For the holder of flush.lock, after an unclean open or
// when the last holder died; engines that live tolerate that their pool is gone.
//
// A file that is not marked as surplus is asked about: surplus gets its path in
// the store, and says whether these bytes are known or worth nothing (a temp file
// of another package). nil: none are. What is neither goes to quarantine.
// What somebody has open is parked.
func (f *Flusher) EmptyTemp(surplus func(path string, info vfs.Info, data func() ([]byte, error)) bool) ([]Edit, error) {
	return f.emptyTemp(surplus, false)
}

// WipeTemp is EmptyTemp, and overwrites what it removes: also the pools of engines
// that live, which hold older versions of whatever was replaced.
func (f *Flusher) WipeTemp(surplus func(path string, info vfs.Info, data func() ([]byte, error)) bool) ([]Edit, error) {
	return f.emptyTemp(surplus, true)
}

// SweepTemp is EmptyTemp for what some processes left, and touches nothing else:
// of says which of the names in tmp/ are theirs.
func (f *Flusher) SweepTemp(of func(name string) bool, surplus func(path string, info vfs.Info, data func() ([]byte, error)) bool) ([]Edit, error) {
	e := emptying{f: f, surplus: surplus, of: of}
	e.folder(f.o.path(tempFolder), 1)
	return e.edits, errors.Join(append(e.fails, f.parked.sync())...)
}

func (f *Flusher) emptyTemp(surplus func(path string, info vfs.Info, data func() ([]byte, error)) bool, wipe bool) ([]Edit, error) {
	for _, w := range f.workers {
		if w.cur != nil {
			_ = w.cur.file.Close()
		}
		w.cur, w.spare = nil, nil
	}
	f.ready = false
	e := emptying{f: f, surplus: surplus, wipe: wipe}
	// What was parked out of a folder is durable in its new place before that folder goes.
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
	surplus func(string, vfs.Info, func() ([]byte, error)) bool
	wipe    bool                   // overwrite what goes
	of      func(name string) bool // whose; nil: everybody's
	edits   []Edit
	fails   []error
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
	if err != nil {
		e.fail("list", dir, err)
		return
	}
	slices.Sort(names)
	for _, name := range names {
		if depth == 1 && e.of != nil && !e.of(name) {
			continue
		}
		path := filepath.Join(dir, name)
		info, err := e.f.o.FS.Stat(path)
		switch {
		case err != nil:
			e.fail("look at", path, err)
		case info.Mode.IsRegular():
			e.file(path)
		case info.Mode.IsDir() && depth < tempDepth && !(depth == 1 && name == parkedFolder):
			e.folder(path, depth+1)
			_ = e.f.o.FS.Remove(path) // stays if anything does
		}
		// Links and special files are not ours, hold nothing, and stay.
	}
	// A name that comes back after a loss of power may be the one that an exchange
	// gave up, and what it names then was never overwritten under it. A folder that is
	// empty already may have lost its names only in memory, and may fail to go itself.
	if e.wipe {
		e.fail("sync", dir, e.f.o.FS.SyncDir(dir))
	}
}

// overwrite puts zeros in the place of bytes that are surplus. They stay marked as
// such: killed here, the file is removed by the next.
func (e *emptying) overwrite(f vfs.File, info vfs.Info) error {
	if info.Size == 0 {
		return nil
	}
	if err := f.SetMtime(surplusTime); err != nil {
		return err
	}
	if err := vfs.Zero(f, 0); err != nil {
		return err
	}
	return f.SetMtime(surplusTime)
}

func (e *emptying) file(path string) {
	f, _, err := openDisplaced(e.f.o.FS, path)
	if err != nil {
		e.fail("open", path, err)
		return
	}
	defer func() { _ = f.Close() }()
	granted := leased(f)
	info, err := f.Stat()
	if err != nil {
		e.fail("look at", path, err)
		return
	}
	rel := e.f.o.rel(path)
	read := func() ([]byte, error) { return readAll(f, info.Size, e.f.o.Limit) }
	switch {
	case info.Size != 0 && !info.Mtime.Equal(surplusTime) && (e.surplus == nil || !e.surplus(rel, info, read)):
		n := Note{Why: "it was left in tmp/ by a process that died: an edit that had just been displaced, or a half-written temp file", From: rel}
		k, err := e.f.quarantine.take(f, path, n, granted)
		if err != nil {
			e.fail("set aside", path, err)
			return
		}
		e.edits = append(e.edits, Edit{Change: -1, Where: k.where, Info: k.info})
	case granted:
		if e.wipe && info.Nlink == 1 {
			if err := e.overwrite(f, info); err != nil {
				e.fail("overwrite", path, err)
				return
			}
		}
		e.fail("remove", path, e.f.o.FS.Remove(path))
	default:
		e.fail("park", path, e.f.parked.add(path, believed{folder: tempFolder, name: filepath.Base(path), size: info.Size, mtime: info.Mtime}))
	}
}
