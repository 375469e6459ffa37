package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// Flags implements FlagReader.
func (osFS) Flags(name string) (Flags, error) {
	f, err := openFile(name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return Flags{}, err
	}
	defer f.Close()
	var bits int
	err = control(f, func(fd uintptr) error {
		n, err := unix.IoctlGetInt(int(fd), unix.FS_IOC_GETFLAGS)
		bits = n
		return err
	})
	if err != nil {
		return Flags{}, &os.PathError{Op: "getflags", Path: name, Err: err}
	}
	const immutable, appendOnly = 0x10, 0x20 // FS_IMMUTABLE_FL, FS_APPEND_FL of <linux/fs.h>
	return Flags{Immutable: bits&immutable != 0, AppendOnly: bits&appendOnly != 0}, nil
}
