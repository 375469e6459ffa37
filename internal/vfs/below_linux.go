package vfs

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// onlyFolder are the flags with which a folder is opened, only for operations on the entries in it.
const onlyFolder = unix.O_PATH | unix.O_DIRECTORY

// openGuarded opens a path below a root so that the system refuses links on the whole path, at no extra cost. The
// system then also refuses links above the root, which are allowed. If the path has such links, openGuarded opens
// the root first, and then the rest of the path, which begins at the offset off in name.
func (b *below) openGuarded(name string, off, flag int, perm fs.FileMode) (int, error) {
	if !b.links.Load() {
		fd, err := openNoLinks(unix.AT_FDCWD, name, unix.RESOLVE_NO_SYMLINKS, flag, perm)
		if err != unix.ELOOP && !lacking(err) {
			return fd, err
		}
	}
	fd, err := openBeneath(name, off, flag, perm)
	if err == nil {
		b.links.Store(true)
	}
	return fd, err
}

// openFrom opens the path rest, which is relative to the open folder root. It follows no links.
func openFrom(root int, rest string, flag int, perm fs.FileMode) (int, error) {
	fd, err := openNoLinks(root, rest, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS, flag,
		perm)
	if lacking(err) {
		return walk(root, rest, flag, perm)
	}
	return fd, err
}

// lacking reports whether err means that an older system, or a sandbox (EPERM), does not support the call.
func lacking(err error) bool {
	return err == unix.ENOSYS || err == unix.EPERM || err == unix.EINVAL
}

func openNoLinks(dirfd int, name string, resolve uint64, flag int, perm fs.FileMode) (fd int, err error) {
	how := unix.OpenHow{Flags: uint64(flag | openFlags), Resolve: resolve}
	if flag&unix.O_PATH != 0 {
		how.Flags &^= unix.O_NOCTTY // the system refuses the combination
	}
	if flag&unix.O_CREAT != 0 {
		how.Mode = uint64(perm.Perm())
	}
	err = retry(func() (err error) {
		fd, err = unix.Openat2(dirfd, name, &how)
		return err
	})
	return fd, err
}

func exchangeAt(fd1 int, one string, fd2 int, two string) error {
	err := unix.Renameat2(fd1, one, fd2, two, unix.RENAME_EXCHANGE)
	if noFlag(err) {
		return errors.ErrUnsupported
	}
	return err
}

func renameNewAt(fd1 int, old string, fd2 int, new string) error {
	err := unix.Renameat2(fd1, old, fd2, new, unix.RENAME_NOREPLACE)
	if noFlag(err) {
		return linkNewAt(fd1, old, fd2, new)
	}
	return err
}
