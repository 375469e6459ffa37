package wal

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal/page"
)

// cp -al makes a second folder of hard links: two stores with one log, one page and one set of lock files.
// These files are the same for both folders, but each folder has its own wal/ with its own inode. The page
// records which of the two is the home of the log, and so does the checkpoint, because a power loss destroys
// the page. The home continues to work and gets files of its own (sever). The other folder may only be read,
// from its own files: it follows no page and takes no lock.
//
// Lock files are never replaced, so the other folder counts as linked as long as it shares them with the home.
// Once each of its files has one name (the home was removed, or the folder was copied with cp -a) it is an
// independent store and records its own folder.

// dwelling describes the home of a log, as the files in a folder record it. A log belongs to only one folder, its home,
// even if other folders have hard links to its files.
type dwelling struct {
	own    uint64 // inode of wal/; 0 if the system has no inodes
	home   uint64 // the recorded inode, 0 if none
	linked string // name of a file in wal/ with more than one hard link, "" if no file has
	links  uint64
}

// astray reports whether the log belongs to another folder: files of the log are hard links, and the recorded home is
// not this folder.
func (d *dwelling) astray() bool {
	return d.own != 0 && d.home != 0 && d.home != d.own && d.linked != ""
}

func (d *dwelling) error(dir string) *errs.LinkedError {
	return &errs.LinkedError{Path: dir, File: d.linked, Links: d.links}
}

// dwells reads to which folder the log in dir belongs. It reads the recorded home only if files of the log are hard
// links.
func dwells(fsys vfs.FS, dir string, mode fs.FileMode) (d dwelling, err error) {
	walDir := filepath.Join(dir, "wal")
	info, err := fsys.Stat(walDir)
	if err != nil {
		return d, err
	}
	d.own = info.Ino
	names, err := fsys.ReadDir(walDir)
	if err != nil {
		return d, err
	}
	var aside map[uint64]uint64
	for _, name := range names {
		info, err := fsys.Stat(filepath.Join(walDir, name))
		if err != nil || !info.Mode.IsRegular() || info.Nlink <= 1 {
			continue
		}
		if aside == nil {
			if aside, err = setAside(fsys, dir); err != nil {
				return d, err
			}
		}
		if info.Nlink > 1+aside[info.Ino] && (d.linked == "" || name < d.linked) {
			d.linked, d.links = "wal/"+name, info.Nlink
		}
	}
	if d.linked == "" {
		return d, nil
	}
	if p, ok := ownPage(fsys, dir, mode); ok {
		d.home = p.Home()
		_ = p.Close()
	}
	if d.home == 0 {
		c, err := readCheckpoint(fsys, dir)
		if err == nil {
			d.home = c.Home
		}
	}
	return d, nil
}

// setAside returns, for each inode, the number of names that it has in quarantine/. A segment that is moved to
// quarantine first gets its new name there and then loses its name in wal/. If the process is killed in between, the
// segment has two names although no other folder has a link to it.
func setAside(fsys vfs.FS, dir string) (map[uint64]uint64, error) {
	count := map[uint64]uint64{}
	folder := filepath.Join(dir, docfile.QuarantineFolder)
	info, err := fsys.Stat(folder)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode.IsDir() {
		return count, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := fsys.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if info, err := fsys.Stat(filepath.Join(folder, name)); err == nil && info.Mode.IsRegular() {
			count[info.Ino]++
		}
	}
	return count, nil
}

// ownPage maps the shared page (wal/shared) of a folder. It returns false if the page cannot be read, or if the page
// records another inode than that of its file: then the file was copied, and the page describes the original.
func ownPage(fsys vfs.FS, dir string, mode fs.FileMode) (page.Page, bool) {
	name := filepath.Join(dir, "wal", "shared")
	s, err := fsys.OpenShared(name, false, mode)
	if err != nil {
		return page.Page{}, false
	}
	p := page.New(s)
	if info, err := fsys.Stat(name); err != nil || !p.IsPage() || p.Inode() != info.Ino {
		_ = p.Close()
		return page.Page{}, false
	}
	return p, true
}

// dwell returns an error if the log in this folder belongs to another folder. If no home is recorded, it records this
// folder as the home. The caller holds open.lock. Call dwell before sever: until then, this folder and the other
// folders with hard links to its files have the same file wal/shared, so a process that opens another one of these
// folders finds the record too.
func (l *FileLog) dwell() error {
	d, err := dwells(l.o.FS, l.o.Dir, l.o.FileMode)
	if err != nil {
		return l.ioError("checking", l.o.walDir(), err)
	}
	if d.astray() {
		return d.error(l.o.Dir)
	}
	if l.home = d.own; d.linked == "" || d.home == d.own {
		return nil
	}
	l.o.Logger.Warn("another folder has hard links to files of the log; the log now belongs to this folder",
		"file", d.linked)
	if p, ok := ownPage(l.o.FS, l.o.Dir, l.o.FileMode); ok {
		p.SetHome(d.own)
		return p.Close()
	}
	return nil
}

// strays is called for a read-only handle. If the log belongs to another folder, strays records this in the report of
// Open.
func (l *FileLog) strays() error {
	d, err := dwells(l.o.FS, l.o.Dir, l.o.FileMode)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return l.ioError("checking", l.o.walDir(), err)
	}
	if d.astray() {
		l.report.Linked = d.error(l.o.Dir)
	}
	return nil
}
