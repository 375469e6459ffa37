package vfs

import (
	"errors"

	"golang.org/x/sys/unix"
)

// HasACL implements ACLReader.
func (osFS) HasACL(name string) bool {
	err := retry(func() error {
		_, err := unix.Lgetxattr(name, "system.posix_acl_access", nil)
		return err
	})
	return !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.ENOTSUP)
}
