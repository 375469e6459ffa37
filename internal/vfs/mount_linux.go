package vfs

import "golang.org/x/sys/unix"

// isMount reports whether a folder is a mount point. That includes a mount of a folder of the same volume (mount
// --bind), which the device number does not show. Linux supports this since 5.8.
func isMount(name string) bool {
	var st unix.Statx_t
	err := retry(func() error {
		return unix.Statx(unix.AT_FDCWD, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_STATX_DONT_SYNC, 0, &st)
	})
	return err == nil && st.Attributes_mask&st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
