//go:build linux || darwin

package vfs

import (
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// A umask that removes rights of the owner (0777, 0400, …) would result in files and folders that the process which
// created them cannot open again. So the owner's bits are always those requested, whatever the umask is; the bits of
// group and others follow the umask or the folder (manners).

// umaskTakes reports whether the umask that this process was started with removes permissions of the owner.
var umaskTakes = sync.OnceValue(func() bool { return ownerUmask()&0o700 != 0 })

// owned gives a file that was just created the owner's permissions in perm that the umask has removed.
func owned(fd int, perm fs.FileMode) error {
	if !umaskTakes() {
		return nil
	}
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return err
	}
	want := uint32(perm & 0o700)
	if uint32(st.Mode)&want == want || int(st.Uid) != euid {
		return nil
	}
	return tolerant(unix.Fchmod(fd, uint32(st.Mode)&0o7777|want))
}

// ownedFolder does the same as owned for a folder. dirfd and base name the folder in the form that the system
// calls ending in "at" use.
func ownedFolder(dirfd int, base string, perm fs.FileMode) error {
	if !umaskTakes() {
		return nil
	}
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstatat(dirfd, base, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return err
	}
	want := uint32(perm & 0o700)
	if uint32(st.Mode)&want == want || int(st.Uid) != euid || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	return tolerant(chmodAt(dirfd, base, uint32(st.Mode)&0o7777|want))
}

// MkdirTemp creates a temporary folder as os.MkdirTemp does. It makes sure that the owner can use the folder, whatever
// the umask is.
func MkdirTemp(dir, pattern string) (name string, err error) {
	if name, err = os.MkdirTemp(dir, pattern); err != nil {
		return "", err
	}
	if err = ownedFolder(unix.AT_FDCWD, name, 0o700); err != nil {
		_ = os.Remove(name)
		return "", pathError("mkdir", name, err)
	}
	return name, nil
}

// mkdirOS implements Mkdir for the file system of the operating system.
func mkdirOS(name string, perm fs.FileMode) error {
	if err := os.Mkdir(name, perm); err != nil {
		return err
	}
	return pathError("mkdir", name, ownedFolder(unix.AT_FDCWD, name, perm))
}
