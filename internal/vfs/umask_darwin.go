package vfs

import "golang.org/x/sys/unix"

// chmodAt changes the mode of a folder, and not of what a link of its name leads to.
func chmodAt(at int, base string, mode uint32) error {
	return unix.Fchmodat(at, base, mode, unix.AT_SYMLINK_NOFOLLOW)
}

// ownerUmask: the system does not tell the umask, so each file that is made is looked at.
func ownerUmask() uint64 { return 0o777 }
