package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// Flags returns the flags of a file; it implements FlagReader.
func (osFS) Flags(name string) (Flags, error) {
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		return Flags{}, &os.PathError{Op: "lstat", Path: name, Err: err}
	}
	const user, system = 0x2, 0x20000 // UF_IMMUTABLE, SF_IMMUTABLE of <sys/stat.h>
	return Flags{Immutable: st.Flags&(user|system) != 0}, nil
}
