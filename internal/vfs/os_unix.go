//go:build linux || darwin

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// openFile opens without blocking, so that a FIFO somebody put in place of a
// file does not hold us for ever. EWOULDBLOCK then means a lease, held by
// someone who is about to put the file aside: that one is waited for. Afterwards
// the descriptor blocks like any other, and os keeps it off its poller.
func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	fresh := flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL
	var fd int
	var err error
	if !fresh {
		fd, err = openFD(name, flag|unix.O_NONBLOCK, perm)
		if err == nil {
			_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flag&unix.O_APPEND)
			if err != nil {
				unix.Close(fd)
			}
		}
	}
	if fresh || err == unix.EWOULDBLOCK {
		fd, err = openFD(name, flag, perm)
	}
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Glance implements Glancer: four calls of the system, and no file in the heap.
func (osFS) Glance(name string, buf []byte, limit int64) ([]byte, Info, error) {
	fd, err := openFD(name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return buf[:0], Info{}, pathError("open", name, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return buf[:0], Info{}, pathError("stat", name, err)
	}
	i := info(&st)
	if !i.Mode.IsRegular() || i.Size > limit {
		return buf[:0], i, nil
	}
	if int64(cap(buf)) < i.Size {
		buf = make([]byte, i.Size, 2*i.Size)
	}
	buf = buf[:i.Size]
	n := 0
	for n < len(buf) {
		var m int
		err := retry(func() (err error) {
			m, err = unix.Pread(fd, buf[n:], int64(n))
			return err
		})
		if err != nil {
			return buf[:0], i, pathError("read", name, err)
		}
		if m == 0 {
			break
		}
		n += m
	}
	return buf[:n], i, nil
}

func openFD(name string, flag int, perm fs.FileMode) (fd int, err error) {
	flag |= unix.O_CLOEXEC | unix.O_NOFOLLOW
	err = retry(func() (err error) {
		fd, err = unix.Open(name, flag, uint32(perm.Perm()))
		return err
	})
	return fd, err
}

// rename is not os.Rename, which looks first whether new is a folder.
func rename(old, new string) error {
	return linkError("rename", old, new, retry(func() error { return unix.Rename(old, new) }))
}

func link(old, new string) error {
	err := retry(func() error { return unix.Link(old, new) })
	if errors.Is(err, unix.EPERM) { // what link(2) says of a file system without links
		return errors.ErrUnsupported
	}
	return err
}

// linkNew is RenameNew where the system has no such call. Killed between the
// two steps it leaves both names on one file.
func linkNew(old, new string) error {
	if err := link(old, new); err != nil {
		return err
	}
	return retry(func() error { return unix.Unlink(old) })
}

func lstat(name string) (Info, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Lstat(name, &st) }); err != nil {
		return Info{}, pathError("lstat", name, err)
	}
	return info(&st), nil
}

func fstat(f *os.File) (Info, error) {
	var st unix.Stat_t
	err := control(f, func(fd uintptr) error {
		return retry(func() error { return unix.Fstat(int(fd), &st) })
	})
	if err != nil {
		return Info{}, pathError("stat", f.Name(), err)
	}
	return info(&st), nil
}

func info(st *unix.Stat_t) Info {
	return Info{
		Size:  st.Size,
		Mtime: time.Unix(st.Mtim.Unix()),
		Mode:  fileMode(uint32(st.Mode)),
		Ino:   st.Ino,
		Dev:   uint64(st.Dev),
		Nlink: uint64(st.Nlink),
		UID:   st.Uid,
		GID:   st.Gid,
	}
}

func fileMode(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	switch m & unix.S_IFMT {
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	}
	if m&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if m&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if m&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

// syncDir takes EINVAL and ENOTSUP for "folders need no sync here", as
// PostgreSQL does: some network file systems say so.
func syncDir(name string) error {
	d, err := openFile(name+"/.", unix.O_DIRECTORY, 0) // a link to a folder will do
	if err != nil {
		return bare(err)
	}
	defer d.Close()
	if err := bare(d.Sync()); err != nil && err != unix.EINVAL && err != unix.ENOTSUP {
		return err
	}
	return nil
}

// bare takes off the wrapping that the caller is about to put on itself.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// retry repeats op while a signal interrupts it.
func retry(op func() error) error {
	for {
		if err := op(); err != unix.EINTR {
			return err
		}
	}
}
