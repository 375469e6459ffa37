package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// Flags returns the flags of a file; it implements FlagReader.
func (osFS) Flags(name string) (Flags, error) {
	if i, err := lstat(name); err != nil {
		return Flags{}, err
	} else if !i.Mode.IsRegular() && !i.Mode.IsDir() {
		return Flags{}, &NotRegularError{Path: name, Mode: i.Mode}
	}
	fd, err := openFD(name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return Flags{}, pathError("open", name, err)
	}
	defer unix.Close(fd)
	bits, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	if err != nil {
		return Flags{}, &os.PathError{Op: "getflags", Path: name, Err: err}
	}
	const immutable, appendOnly = 0x10, 0x20 // FS_IMMUTABLE_FL, FS_APPEND_FL of <linux/fs.h>
	return Flags{Immutable: bits&immutable != 0, AppendOnly: bits&appendOnly != 0}, nil
}
