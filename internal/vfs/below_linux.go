package vfs

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// openFD opens what is below a root through no link: the system refuses them on the whole
// way, for what opening costs anyway. It does so above the root as well, where they are
// allowed, and an older one cannot: then each folder below the root is looked at.
func (b *below) openFD(name string, flag int, perm fs.FileMode) (int, error) {
	if b.under(name) < 0 {
		return openFD(name, flag, perm)
	}
	if !b.links.Load() {
		fd, err := openNoLinks(name, flag, perm)
		switch err {
		case unix.ELOOP, unix.ENOSYS, unix.EPERM, unix.EINVAL: // EPERM: also of a sandbox that does not know the call
		default:
			return fd, err
		}
	}
	if err := b.enter(name); err != nil {
		return -1, err
	}
	fd, err := openFD(name, flag, perm)
	if err == nil {
		b.links.Store(true)
	}
	return fd, err
}

func openNoLinks(name string, flag int, perm fs.FileMode) (fd int, err error) {
	how := unix.OpenHow{Flags: uint64(flag | openFlags), Resolve: unix.RESOLVE_NO_SYMLINKS}
	if flag&unix.O_CREAT != 0 {
		how.Mode = uint64(perm.Perm())
	}
	err = retry(func() (err error) {
		fd, err = unix.Openat2(unix.AT_FDCWD, name, &how)
		return err
	})
	return fd, err
}
