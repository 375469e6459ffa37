//go:build linux || darwin

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// folderOf returns a name in the form that the system calls ending in "at" take: a descriptor of a folder, and a
// name in it. The caller calls release when it no longer uses fd.
//
// If the name is in a subfolder of a root, fd is its parent folder, opened without following links, and release
// closes fd. If the name is directly in a root that has a handle, fd is the descriptor of the handle. For every
// other name, also one directly in a root without a handle, fd is AT_FDCWD and base is the whole name.
func (b *below) folderOf(name string) (fd int, base string, release func(), err error) {
	at, held := b.place(name)
	last := strings.LastIndexByte(name, os.PathSeparator)
	switch {
	case held != nil && last < at:
		return held.fd, name[at:], held.leave, held.enter()
	case at < 0 || last < at:
		return unix.AT_FDCWD, name, func() {}, nil
	}
	fd, err = b.openFD(name[:last], onlyFolder, 0)
	if err != nil {
		if err == unix.ELOOP || err == unix.ENOTDIR {
			if eerr := b.enter(name); eerr != nil { // the folder itself is a link
				err = eerr
			}
		}
		return -1, "", nil, err
	}
	return fd, name[last+1:], func() { unix.Close(fd) }, nil
}

// foldersOf opens the folders of two names (see folderOf) and calls op with them. If both names are in the same
// folder, that folder is opened only once.
func (b *below) foldersOf(one, two string, op func(fd1 int, base1 string, fd2 int, base2 string) error) error {
	fd1, base1, done1, err := b.folderOf(one)
	if err != nil {
		return err
	}
	defer done1()
	if at := strings.LastIndexByte(one, os.PathSeparator); fd1 != unix.AT_FDCWD &&
		at == strings.LastIndexByte(two, os.PathSeparator) && one[:at] == two[:at] {
		return retry(func() error { return op(fd1, base1, fd1, two[at+1:]) })
	}
	fd2, base2, done2, err := b.folderOf(two)
	if err != nil {
		return err
	}
	defer done2()
	return retry(func() error { return op(fd1, base1, fd2, base2) })
}

// wrapCallError wraps the error of a system call with the function wrap, unless the error is a *NotFolderError
// about the path.
func wrapCallError(wrap func(error) error, err error) error {
	if EnterError(err) != nil {
		return err
	}
	return wrap(err)
}

func (b *below) mkdir(name string, perm fs.FileMode) error {
	fd, base, done, err := b.folderOf(name)
	if err == nil {
		defer done()
		if err = retry(func() error { return unix.Mkdirat(fd, base, uint32(perm.Perm())) }); err == nil {
			err = ownedFolder(fd, base, perm)
		}
	}
	return wrapCallError(func(err error) error { return pathError("mkdir", name, err) }, err)
}

// remove removes a file or an empty folder, as package os does.
func (b *below) remove(name string) error {
	fd, base, done, err := b.folderOf(name)
	if err == nil {
		defer done()
		if err = retry(func() error { return unix.Unlinkat(fd, base, 0) }); err != nil {
			if derr := retry(func() error { return unix.Unlinkat(fd, base, unix.AT_REMOVEDIR) }); derr != unix.ENOTDIR {
				err = derr
			}
		}
	}
	return wrapCallError(func(err error) error { return pathError("remove", name, err) }, err)
}

func (b *below) rename(old, new string) error {
	err := b.foldersOf(old, new, unix.Renameat)
	return wrapCallError(func(err error) error { return linkError("rename", old, new, err) }, err)
}

func (b *below) renameNew(old, new string) error {
	err := b.foldersOf(old, new, renameNewAt)
	return wrapCallError(func(err error) error { return linkError("rename", old, new, err) }, err)
}

func (b *below) exchange(one, two string) error {
	err := b.foldersOf(one, two, exchangeAt)
	return wrapCallError(func(err error) error { return linkError("exchange", one, two, err) }, err)
}

func (b *below) link(old, new string) error {
	err := b.foldersOf(old, new, linkAt)
	return wrapCallError(func(err error) error { return linkError("link", old, new, err) }, err)
}

func (b *below) stat(name string) (Info, error) {
	fd, base, done, err := b.folderOf(name)
	var st unix.Stat_t
	if err == nil {
		defer done()
		err = retry(func() error { return unix.Fstatat(fd, base, &st, unix.AT_SYMLINK_NOFOLLOW) })
	}
	if err != nil {
		return Info{}, wrapCallError(func(err error) error { return pathError("lstat", name, err) }, err)
	}
	return info(&st), nil
}

func (b *below) syncDir(name string) error {
	if held, _ := b.anchor(name); held == nil && b.offsetBelowRoot(name) < 0 {
		return b.osFS.SyncDir(name)
	}
	d, err := openFileBy(b.opening(), b.patience, name, unix.O_DIRECTORY, 0)
	if err != nil {
		return wrapCallError(func(err error) error { return pathError("sync", name, bare(err)) }, err)
	}
	defer d.Close()
	return pathError("sync", name, syncFolder(d))
}

// ways has the two openers for paths below a root: one that only opens files, and one that may also create files.
type ways struct{ opening, making *way }

func (b *below) init() { b.ways = ways{&way{b.openFD, b.lstat}, &way{b.create, b.lstat}} }

func (b *below) opening() opener { return b.ways.opening }

// making returns the opener that may create files.
func (b *below) making() opener { return b.ways.making }

// openFD opens a path below a root without following links.
func (b *below) openFD(name string, flag int, perm fs.FileMode) (int, error) {
	at := b.offsetBelowRoot(name)
	held, rest := b.anchor(name)
	if at < 0 && held == nil {
		return openFD(name, flag, perm)
	}
	if climbs(name[max(at, 0):]) { // for a wrapper that has not checked
		return -1, unix.EXDEV
	}
	var fd int
	var err error
	if held != nil {
		fd, err = held.open(rest, flag, perm)
	} else {
		fd, err = b.openGuarded(name, at, flag, perm)
	}
	if err == unix.ELOOP || err == unix.ENOTDIR || err == unix.EXDEV {
		if eerr := b.enter(name); eerr != nil {
			return -1, eerr
		}
	}
	return fd, err
}

// openBeneath opens the root, which is the part of name before the offset off and may be reached through links.
// From the root it opens the rest of name without following links.
func openBeneath(name string, off, flag int, perm fs.FileMode) (fd int, err error) {
	head := name[:off]
	if head == "" {
		head = "."
	}
	var root int
	err = retry(func() (err error) {
		root, err = unix.Open(head, onlyFolder|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	rest := strings.TrimLeft(name[off:], string(os.PathSeparator)) // a leading separator would mean the system's root
	if rest == "" {
		rest = "."
	}
	return openFrom(root, rest, flag, perm)
}

// walk does the same as openFrom on systems that cannot refuse links by themselves. It opens the folders of the path
// one after the other.
func walk(root int, rest string, flag int, perm fs.FileMode) (fd int, err error) {
	at := root
	defer func() {
		if at != root {
			unix.Close(at)
		}
	}()
	for {
		part, more, deeper := strings.Cut(rest, string(os.PathSeparator))
		rest = more
		how, mode := onlyFolder|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(0)
		if !deeper {
			how, mode = flag|openFlags, uint32(perm.Perm())
		}
		if part == "" && deeper {
			continue
		}
		err = retry(func() (err error) {
			fd, err = unix.Openat(at, part, how, mode)
			return err
		})
		if err != nil || !deeper {
			return fd, err
		}
		if at != root {
			unix.Close(at)
		}
		at = fd
	}
}

func linkAt(fd1 int, old string, fd2 int, new string) error {
	err := unix.Linkat(fd1, old, fd2, new, 0)
	if errors.Is(err, unix.EPERM) { // see link
		return errors.ErrUnsupported
	}
	return err
}

// linkNewAt does the same as linkNew, with names relative to folders.
func linkNewAt(fd1 int, old string, fd2 int, new string) error {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstatat(fd1, old, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return renameFolderAt(fd1, old, fd2, new)
	}
	if err := linkAt(fd1, old, fd2, new); err != nil {
		return err
	}
	return retry(func() error { return unix.Unlinkat(fd1, old, 0) })
}

// renameFolderAt does the same as RenameNew for a folder, on file systems that have no such call and where a folder
// cannot be linked (NFS, FUSE, 9p, Ceph). The system's rename of a folder replaces neither a file nor a folder with
// content. So if another process creates something at the new name in between, the only thing that can be lost is an
// empty folder.
func renameFolderAt(fd1 int, old string, fd2 int, new string) error {
	var st unix.Stat_t
	switch err := retry(func() error { return unix.Fstatat(fd2, new, &st, unix.AT_SYMLINK_NOFOLLOW) }); err {
	case nil:
		return unix.EEXIST
	case unix.ENOENT:
		return retry(func() error { return unix.Renameat(fd1, old, fd2, new) })
	default:
		return err
	}
}
