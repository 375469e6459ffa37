//go:build linux || darwin

package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

var euid, egid = os.Geteuid(), os.Getegid()

var made atomic.Uint64 // counts the names of newName

// newName returns a temporary name for a file or folder that is not ready to have its final name. If a killed process
// has left such a file in wal/, the log recognizes the file by its extension and removes it.
func newName(name string) string {
	return fmt.Sprintf("%s.%d-%d.new", name, os.Getpid(), made.Add(1))
}

// create opens a file as openFD does, and creates it if necessary.
func (b *below) create(name string, flag int, perm fs.FileMode) (int, error) {
	var m *manners
	if flag&os.O_CREATE != 0 {
		m = b.mannersIn(name)
	}
	if m == nil {
		return b.openFD(name, flag, perm)
	}
	if flag&os.O_EXCL != 0 { // a temporary file: no other process opens it before it is renamed
		fd, err := b.openFD(name, flag, perm)
		if err == nil {
			if err = m.fit(fd, perm); err != nil {
				unix.Close(fd)
				_ = b.remove(name)
			}
		}
		return fd, err
	}
	for {
		fd, err := b.openFD(name, flag&^os.O_CREATE, 0)
		if err != unix.ENOENT {
			return fd, err
		}
		temp := newName(name)
		if fd, err = b.openFD(temp, flag|os.O_EXCL, perm); err != nil {
			return fd, err
		}
		err = m.fit(fd, perm)
		if err == nil {
			err = b.renameNew(temp, name)
		}
		if err == nil {
			return fd, nil
		}
		unix.Close(fd)
		_ = b.remove(temp)
		if !errors.Is(err, fs.ErrExist) { // otherwise another process was faster
			return -1, err
		}
	}
}

// fit sets the owner, group and mode of a file that was just created. perm is the mode that the caller requested; fit
// adds m.file to it.
func (m *manners) fit(fd int, perm fs.FileMode) error {
	if m.uid >= 0 {
		if err := tolerant(unix.Fchown(fd, m.uid, m.gid)); err != nil {
			return err
		}
	}
	if m.file == 0 {
		return nil
	}
	return tolerant(unix.Fchmod(fd, uint32((perm | m.file).Perm())))
}

// tolerant returns nil if err only means that an owner or a mode could not be set; the file then stays as it was
// created. Reasons are: the user root may not change owners (in a container, on a network file system), or the file
// system has no owners or modes. tolerant returns any other error unchanged.
func tolerant(err error) error {
	if err == unix.EPERM || err == unix.EINVAL || err == unix.ENOTSUP || err == unix.ENOSYS {
		return nil
	}
	return err
}

// makeFolder creates a folder with the owner and mode that fit the parent folder.
func (b *below) makeFolder(name string, perm fs.FileMode) error {
	m := b.mannersIn(name)
	if m == nil {
		return b.mkdir(name, perm)
	}
	if _, err := b.Stat(name); err == nil {
		return pathError("mkdir", name, unix.EEXIST)
	}
	temp := newName(name)
	if err := b.mkdir(temp, perm); err != nil {
		return err
	}
	err := b.fitFolder(m, temp, perm)
	if err == nil {
		err = b.renameNew(temp, name)
	}
	if err == nil {
		return nil
	}
	_ = b.remove(temp)
	if errors.Is(err, fs.ErrExist) {
		return pathError("mkdir", name, unix.EEXIST)
	}
	// The file system cannot rename a folder without replacing: create it under its real name.
	if err := b.mkdir(name, perm); err != nil {
		return err
	}
	return pathError("mkdir", name, b.fitFolder(m, name, perm))
}

func (b *below) fitFolder(m *manners, name string, perm fs.FileMode) error {
	fd, err := b.openFD(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if m.uid >= 0 {
		if err := tolerant(unix.Fchown(fd, m.uid, m.gid)); err != nil {
			return err
		}
	}
	if m.folder == 0 {
		return nil
	}
	return tolerant(unix.Fchmod(fd, uint32((perm|m.folder).Perm())|unix.S_ISGID))
}

// lookAt returns the Info of the folder dir in which a file or folder is to be created; dir may be the root itself.
func (b *below) lookAt(dir string) (Info, error) {
	if held, _ := b.anchor(dir); held == nil && b.offsetBelowRoot(dir) < 0 {
		return lstat(throughLink(dir))
	}
	fd, err := b.openFD(dir, onlyFolder, 0)
	if err != nil {
		return Info{}, err
	}
	defer unix.Close(fd)
	return fdInfo(fd)
}

// share gives the group of a folder permission to write in it, and makes the files that are created in the folder
// belong to that group.
func (b *below) share(dir string) error {
	fd, err := b.openFD(throughLink(dir), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return pathError("open", dir, err)
	}
	defer unix.Close(fd)
	return b.shareWith(fd, dir, -1)
}

func fdInfo(fd int) (Info, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstat(fd, &st) })
	return info(&st), err
}

func (b *below) shareWith(fd int, dir string, gid int) error {
	info, err := fdInfo(fd)
	if err != nil || InfoIsShared(&info) {
		return err
	}
	if gid >= 0 && gid != int(info.GID) {
		if err := unix.Fchown(fd, -1, gid); err != nil {
			return pathError("chown", dir, err)
		}
	}
	mode := uint32(info.Mode.Perm()&0o700|0o070) | unix.S_ISGID
	if err := unix.Fchmod(fd, mode); err != nil {
		return pathError("chmod", dir, err)
	}
	b.manners.Delete(dir)
	if info, err = fdInfo(fd); err != nil || InfoIsShared(&info) {
		return err
	}
	return pathError("chmod", dir,
		fmt.Errorf("%w: the folder belongs to group %d, which you are not in: change it with chgrp", unix.EPERM, info.GID))
}

func (b *below) alike(dir, other string) error {
	like, err := lstat(throughLink(other))
	if err != nil {
		return err
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == unix.ELOOP || err == unix.ENOTDIR {
		return nil
	}
	if err != nil {
		return pathError("open", dir, err)
	}
	defer unix.Close(fd)
	if is, err := fdInfo(fd); err != nil || int(is.UID) != euid {
		return err
	}
	if m := mannersOf(&like, euid, egid); m != nil && m.uid >= 0 {
		if err := tolerant(unix.Fchown(fd, m.uid, m.gid)); err != nil {
			return pathError("chown", dir, err)
		}
		b.manners.Delete(dir)
	}
	if !InfoIsShared(&like) {
		return nil
	}
	return b.shareWith(fd, dir, int(like.GID))
}
