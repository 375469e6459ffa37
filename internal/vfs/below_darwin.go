package vfs

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// onlyFolder are the flags with which a folder is opened for operations on the entries in it.
const onlyFolder = unix.O_RDONLY | unix.O_DIRECTORY

func (b *below) openGuarded(name string, off, flag int, perm fs.FileMode) (int, error) {
	return openBeneath(name, off, flag, perm)
}

func openFrom(root int, rest string, flag int, perm fs.FileMode) (int, error) {
	return walk(root, rest, flag, perm)
}

func exchangeAt(fd1 int, one string, fd2 int, two string) error {
	return renameAt(fd1, one, fd2, two, unix.RENAME_SWAP)
}

func renameNewAt(fd1 int, old string, fd2 int, new string) error {
	err := renameAt(fd1, old, fd2, new, unix.RENAME_EXCL)
	if errors.Is(err, errors.ErrUnsupported) {
		return linkNewAt(fd1, old, fd2, new)
	}
	return err
}

func renameAt(fd1 int, one string, fd2 int, two string, flag uint32) error {
	err := unix.RenameatxNp(fd1, one, fd2, two, flag)
	if err == unix.EINVAL || err == unix.ENOTSUP {
		return errors.ErrUnsupported
	}
	return err
}
