package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// Below is the file system for a store, a backup, or whatever else begins at root: each
// operation on what is below root first makes sure that the folders in between are real
// ones. A symbolic link among them, wherever it leads, is a *NotFolderError. root itself
// may be reached through links, and what is elsewhere is not looked at.
//
// Every caller that has its FS from here is covered, whatever path it makes: nobody can
// forget to look. Of a swap between the look and the operation only opening a file, a lock
// or a folder on Linux is safe; that of the others needs a descriptor of the folder.
//
// Where fsys is no file system of the operating system (there are no links in vfs/crash),
// or a wrapper of one, it is returned as it is: the wrapper goes around this one.
func Below(fsys FS, root string) FS {
	b := &below{}
	switch f := fsys.(type) {
	case osFS:
	case *below:
		b.roots = append(b.roots, f.roots...)
	default:
		return fsys
	}
	root = filepath.Clean(root)
	head := root
	switch {
	case root == ".":
		head = ""
	case !os.IsPathSeparator(root[len(root)-1]): // as that of "/" is
		head += string(filepath.Separator)
	}
	b.roots = append(b.roots, place{root, head})
	return b
}

// below is osFS with a look at the way. Of Stat see there; Volume, Host and Flags
// enter nothing.
type below struct {
	osFS
	roots []place
	links atomic.Bool // a root is reached through a link, or the system cannot refuse links itself
}

type place struct{ root, head string } // head: what the names of all below it begin with

// under is where in name the part begins that is below a root; -1: it is below none.
func (b *below) under(name string) int {
	least := -1
	for _, p := range b.roots {
		n := len(p.head)
		if len(name) <= n || name[:n] != p.head || n == 0 && (filepath.IsAbs(name) || strings.HasPrefix(name, "..")) {
			continue
		}
		if least < 0 || n < least {
			least = n
		}
	}
	return least
}

// folders yields the folders between a root and name, from the top.
func (b *below) folders(name string, yield func(dir string) error) error {
	at := b.under(name)
	if at < 0 {
		return nil
	}
	for i := at; i < len(name); i++ {
		if !os.IsPathSeparator(name[i]) {
			continue
		}
		if err := yield(name[:i]); err != nil {
			return err
		}
	}
	return nil
}

// enter looks at each folder between a root and name. What is missing is for the
// operation to say.
func (b *below) enter(name string) error {
	return b.folders(name, func(dir string) error {
		info, err := lstat(dir)
		if err == nil && !info.Mode.IsDir() {
			return &NotFolderError{Path: dir, Mode: info.Mode}
		}
		return nil
	})
}

// enterBoth is enter for two names, which often have one folder.
func (b *below) enterBoth(one, two string) error {
	if err := b.enter(one); err != nil {
		return err
	}
	if filepath.Dir(one) == filepath.Dir(two) {
		return nil
	}
	return b.enter(two)
}

// isRoot says whether a name is one of the roots.
func (b *below) isRoot(name string) bool {
	for _, p := range b.roots {
		if name == p.root {
			return true
		}
	}
	return false
}

// real is enter for a folder, and looks at it too.
func (b *below) real(name string) error {
	if b.under(name) < 0 {
		return nil
	}
	return b.enter(name + string(filepath.Separator))
}

func (b *below) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := openFileBy(b.openFD, name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &osFile{f: f}, nil
}

func (b *below) Mkdir(name string, perm fs.FileMode) error {
	if err := b.enter(name); err != nil {
		return err
	}
	return b.osFS.Mkdir(name, perm)
}

func (b *below) Remove(name string) error {
	if err := b.enter(name); err != nil {
		return err
	}
	return b.osFS.Remove(name)
}

func (b *below) Rename(old, new string) error {
	if err := b.enterBoth(old, new); err != nil {
		return err
	}
	return b.osFS.Rename(old, new)
}

func (b *below) RenameNew(old, new string) error {
	if err := b.enterBoth(old, new); err != nil {
		return err
	}
	return b.osFS.RenameNew(old, new)
}

func (b *below) Exchange(one, two string) error {
	if err := b.enterBoth(one, two); err != nil {
		return err
	}
	return b.osFS.Exchange(one, two)
}

func (b *below) Link(old, new string) error {
	if err := b.enterBoth(old, new); err != nil {
		return err
	}
	return b.osFS.Link(old, new)
}

// Stat looks at the way only where it is longer than one folder. A store looks at the
// file of each memory, and what a Stat tells of one in a linked folder leads nowhere:
// nothing is opened, moved or removed there.
func (b *below) Stat(name string) (Info, error) {
	if at := b.under(name); at >= 0 {
		folders := 0
		for i := at; i < len(name); i++ {
			if os.IsPathSeparator(name[i]) {
				folders++
			}
		}
		if folders > 1 {
			if err := b.enter(name); err != nil {
				return Info{}, err
			}
		}
	}
	info, err := lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a loop of links, for one
		if eerr := b.enter(name); eerr != nil {
			return Info{}, eerr
		}
	}
	return info, err
}

func (b *below) ReadDir(name string) ([]string, error) {
	if b.isRoot(name) {
		return b.osFS.ReadDir(throughLink(name))
	}
	return readDirBy(b.openFD, name)
}

func (b *below) SyncDir(name string) error {
	if err := b.real(name); err != nil {
		return err
	}
	return b.osFS.SyncDir(name)
}

func (b *below) OpenLock(name string, perm fs.FileMode) (Lock, error) {
	return openLockBy(b.enter, name, perm)
}

func (b *below) OpenShared(name string, create bool, perm fs.FileMode) (Shared, error) {
	return openSharedBy(b.openFD, name, create, perm)
}

func (b *below) OpenBarrier(name string) (Barrier, error) {
	if err := b.real(name); err != nil {
		return nil, err
	}
	return b.osFS.OpenBarrier(name)
}

// EnterError is the *NotFolderError in err, nil when there is none: a link or something
// else is in the place of a folder.
func EnterError(err error) *NotFolderError {
	var e *NotFolderError
	if errors.As(err, &e) {
		return e
	}
	return nil
}
