package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// belowDir is a Dir below a root.
type belowDir struct {
	fd      int
	name    string
	manners *manners
}

// OpenDir opens a folder below a root; it implements DirOpener.
func (b *below) OpenDir(name string) (Dir, error) {
	if err := b.checkInside(name, false); err != nil {
		return nil, err
	}
	fd, err := b.openFD(name, onlyFolder, 0)
	if err != nil {
		return nil, wrapCallError(func(err error) error { return pathError("open", name, err) }, err)
	}
	return &belowDir{fd, name, b.mannersIn(filepath.Join(name, "x"))}, nil
}

func (d *belowDir) CreateUnnamed(perm fs.FileMode) (File, error) {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(d.fd, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, uint32(perm.Perm()))
		return err
	})
	switch err {
	case nil:
	case unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOENT, unix.ENOSYS: // EISDIR, ENOENT: before Linux 3.11
		return nil, errors.ErrUnsupported
	default:
		return nil, pathError("open", d.name, err)
	}
	if err = owned(fd, perm); err == nil && d.manners != nil {
		err = d.manners.fit(fd, perm)
	}
	if err != nil {
		unix.Close(fd)
		return nil, pathError("chmod", d.name, err)
	}
	return &osFile{os.NewFile(uintptr(fd), filepath.Join(d.name, "(unnamed)"))}, nil
}

// LinkUnnamed links the file by its name in /proc, because linking a descriptor itself (AT_EMPTY_PATH) requires a
// privilege on most kernels.
func (d *belowDir) LinkUnnamed(f File, name string) error {
	of, ok := f.(*osFile)
	if !ok {
		return errors.ErrUnsupported
	}
	err := control(of.f, func(fd uintptr) error {
		var buf [32]byte
		path := string(strconv.AppendUint(append(buf[:0], "/proc/self/fd/"...), uint64(fd), 10))
		return retry(func() error { return unix.Linkat(unix.AT_FDCWD, path, d.fd, name, unix.AT_SYMLINK_FOLLOW) })
	})
	if err == unix.ENOENT || err == unix.EPERM || err == unix.EXDEV {
		// /proc is missing, or is another one; or the folder was removed, which the caller finds by its path.
		return errors.ErrUnsupported
	}
	return linkError("link", "(unnamed)", filepath.Join(d.name, name), err)
}

func (d *belowDir) Stat() (Info, error) {
	info, err := fdInfo(d.fd)
	return info, pathError("stat", d.name, err)
}

func (d *belowDir) Close() error { return pathError("close", d.name, unix.Close(d.fd)) }
