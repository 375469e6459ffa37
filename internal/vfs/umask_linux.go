package vfs

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// chmodAt changes the mode of the folder base in the folder dirfd, and does not follow a link of that name.
// Kernels before 6.6 have no such call; on these, chmodAt uses the path of a descriptor.
func chmodAt(dirfd int, base string, mode uint32) error {
	err := unix.Fchmodat(dirfd, base, mode, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil || !errors.Is(err, errors.ErrUnsupported) && err != unix.EINVAL {
		return err
	}
	fd, err := unix.Openat(dirfd, base, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}

// ownerUmask returns the umask without changing it; 0 if the system does not report it.
func ownerUmask() uint64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte("\nUmask:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	mask, _ := strconv.ParseUint(string(bytes.TrimSpace(line)), 8, 32)
	return mask
}
