package vfs

import "golang.org/x/sys/unix"

// chmodAt changes the mode of the folder base in the folder dirfd, and does not follow a link of that name.
func chmodAt(dirfd int, base string, mode uint32) error {
	return unix.Fchmodat(dirfd, base, mode, unix.AT_SYMLINK_NOFOLLOW)
}

// ownerUmask returns 0777, because darwin does not report the umask. Therefore the mode of each created file is
// checked.
func ownerUmask() uint64 { return 0o777 }
