package vfs

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// identifying selects what Identify asks the system for: all attributes except times and blocks.
const identifying = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_NLINK | unix.STATX_UID | unix.STATX_GID |
	unix.STATX_INO | unix.STATX_SIZE

// Identify describes a file without its times; it implements Identifier.
func (osFS) Identify(name string) (Info, error) {
	if info, err := identify(unix.AT_FDCWD, name); err == nil {
		return info, nil
	}
	return lstat(name) // which returns the error, or works on a system that does not have statx
}

// Identify describes a file without its times; it implements Identifier. Like Stat it does not check the path of a file
// in a folder of the root.
func (b *below) Identify(name string) (Info, error) {
	h, rest := b.anchor(name)
	if h == nil || rest == "." || strings.Count(rest, string(os.PathSeparator)) > 1 ||
		b.checkInside(name, true) != nil {
		return b.Stat(name)
	}
	info, err := h.identify(rest)
	if err != nil {
		return b.Stat(name) // as above
	}
	return info, nil
}

func (h *heldFolder) identify(rest string) (Info, error) {
	if err := h.enter(); err != nil {
		return Info{}, err
	}
	defer h.leave()
	return identify(h.fd, rest)
}

func identify(dirfd int, name string) (Info, error) {
	var st unix.Statx_t
	if err := retry(func() error {
		return unix.Statx(dirfd, name, unix.AT_SYMLINK_NOFOLLOW, identifying, &st)
	}); err != nil {
		return Info{}, err
	}
	return Info{
		Size:  int64(st.Size),
		Mode:  fileMode(uint32(st.Mode)),
		Ino:   st.Ino,
		Dev:   unix.Mkdev(st.Dev_major, st.Dev_minor),
		Nlink: uint64(st.Nlink),
		UID:   st.Uid,
		GID:   st.Gid,
	}, nil
}
