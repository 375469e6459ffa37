//go:build linux || darwin

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// openFile opens regular files, and folders with O_DIRECTORY. It checks the type before it opens, because opening a
// device can have an effect, and afterwards, because the name may lead to another file meanwhile.
//
// It opens without blocking, so that a FIFO created meanwhile does not block it. EWOULDBLOCK then means a lease,
// usually of a flusher that is about to move the file away. openFile waits for the lease by trying again (patience),
// never by a blocking open, since a FIFO may be created during that wait too. Afterwards the descriptor is set to
// blocking, so the runtime does not use its poller for it.
func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return openFileBy(nil, nil, name, flag, perm)
}

// opener opens files. A nil opener opens files by path and follows links in the path.
type opener = *way

type way struct {
	fd    func(name string, flag int, perm fs.FileMode) (fd int, err error)
	lstat func(name string) (Info, error)
}

var plainWay = &way{openFD, lstat}

// orPlain returns w. If w is nil, it returns plainWay, which opens files by path.
func (w *way) orPlain() *way {
	if w == nil {
		return plainWay
	}
	return w
}

func lstatBy(w opener, name string) (Info, error) { return w.orPlain().lstat(name) }

func openFileBy(open opener, p *patience, name string, flag int, perm fs.FileMode) (*os.File, error) {
	w := open.orPlain()
	fresh := flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL
	if !fresh && flag&unix.O_DIRECTORY == 0 {
		if i, err := w.lstat(name); err == nil && !i.Mode.IsRegular() {
			return nil, &NotRegularError{Path: name, Mode: i.Mode}
		}
	}
	var fd int
	var err error
	if fresh {
		if fd, err = w.fd(name, flag, perm); err == nil {
			if err = owned(fd, perm); err != nil {
				unix.Close(fd)
			}
		}
	} else {
		fd, err = p.open(name, func() (int, error) { return w.fd(name, flag|unix.O_NONBLOCK, perm) })
		if IsLeased(err) {
			return nil, err
		}
		if err == nil {
			if err = settle(fd, name, flag); err == nil && flag&os.O_CREATE != 0 {
				err = pathError("chmod", name, owned(fd, perm))
			}
			if err != nil {
				unix.Close(fd)
				return nil, err
			}
		}
	}
	if err == unix.ELOOP || err == unix.ENXIO { // a link or a special file was created since
		if i, lerr := w.lstat(name); lerr == nil && !i.Mode.IsRegular() {
			return nil, &NotRegularError{Path: name, Mode: i.Mode}
		}
	}
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// settle makes an open descriptor blocking. It returns a *NotRegularError if the file is not regular; a folder is
// allowed if the flags have O_DIRECTORY.
func settle(fd int, name string, flag int) error {
	if flag&unix.O_DIRECTORY == 0 {
		if _, err := regularFD(fd, name); err != nil {
			return err
		}
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, flag&unix.O_APPEND)
	return pathError("open", name, err)
}

// regularFD returns the status of a descriptor, or a *NotRegularError if its file is not regular.
func regularFD(fd int, name string) (*unix.Stat_t, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return nil, pathError("stat", name, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, &NotRegularError{Path: name, Mode: fileMode(uint32(st.Mode))}
	}
	return &st, nil
}

// readDir returns the names in a folder. It reads only folders, follows no link and does not wait for a FIFO.
func readDir(name string) ([]string, error) { return readDirBy(nil, name) }

func readDirBy(open opener, name string) ([]string, error) {
	d, err := openDir(open, name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

func openDir(open opener, name string) (*os.File, error) {
	w := open.orPlain()
	fd, err := w.fd(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err == unix.ENOTDIR || err == unix.ELOOP {
		if i, lerr := w.lstat(name); lerr == nil && !i.Mode.IsDir() {
			return nil, &NotFolderError{Path: name, Mode: i.Mode}
		}
	}
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Glance implements Glancer. It reads a small file with four system calls, and without an os.File, which would be
// allocated on the heap. Unlike openFile, it does not check the type of the file before it opens the file, because
// that would take a third of its time.
func (osFS) Glance(name string, buf []byte, limit int64) ([]byte, Info, error) {
	return glance(openFD, name, buf, limit)
}

// Glance reads a small file below a root; it implements Glancer.
func (b *below) Glance(name string, buf []byte, limit int64) ([]byte, Info, error) {
	if err := b.checkInside(name, false); err != nil {
		return buf[:0], Info{}, err
	}
	return glance(b.openFD, name, buf, limit)
}

func glance(open func(string, int, fs.FileMode) (int, error), name string, buf []byte,
	limit int64) ([]byte, Info, error) {
	fd, err := open(name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
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

// openFlags are flags that every open has.
const openFlags = unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NOCTTY

func openFD(name string, flag int, perm fs.FileMode) (fd int, err error) {
	flag |= openFlags
	err = retry(func() (err error) {
		fd, err = unix.Open(name, flag, uint32(perm.Perm()))
		return err
	})
	return fd, err
}

// rename calls the system's rename. os.Rename would first check whether new is a folder.
func rename(old, new string) error {
	return linkError("rename", old, new, retry(func() error { return unix.Rename(old, new) }))
}

func link(old, new string) error {
	err := retry(func() error { return unix.Link(old, new) })
	if errors.Is(err, unix.EPERM) { // the error of link(2) on file systems without hard links
		return errors.ErrUnsupported
	}
	return err
}

// linkNew does the same as RenameNew on systems without such a call. If the process is killed between its two steps,
// the file has both names.
func linkNew(old, new string) error {
	if i, err := lstat(old); err == nil && i.Mode.IsDir() {
		return renameFolderAt(unix.AT_FDCWD, old, unix.AT_FDCWD, new)
	}
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

// syncDir syncs a folder. It treats EINVAL and ENOTSUP as success, as PostgreSQL does: some network file systems return
// them because folders need no sync there.
func syncDir(name string) error {
	d, err := openFile(throughLink(name), unix.O_DIRECTORY, 0) // accepts a link: nothing is read or changed
	if err != nil {
		return bare(err)
	}
	defer d.Close()
	return syncFolder(d)
}

func syncFolder(d *os.File) error {
	if err := bare(d.Sync()); err != nil && err != unix.EINVAL && err != unix.ENOTSUP {
		return err
	}
	return nil
}

// setMode sets the permission bits of a file.
func setMode(f *os.File, perm fs.FileMode) error { return f.Chmod(perm & fs.ModePerm) }

// bare returns the error without the operation and the path that package os adds, because the caller adds them itself.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// retry calls op, and calls it again if a signal has interrupted it.
func retry(op func() error) error {
	for {
		if err := op(); err != unix.EINTR {
			return err
		}
	}
}
