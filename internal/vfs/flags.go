package vfs

import "path/filepath"

// Flags are file flags because of which the system refuses changes, whatever the file's mode is.
type Flags struct {
	Immutable  bool
	AppendOnly bool
}

// FlagReader is implemented by file systems that have the flags in Flags.
type FlagReader interface {
	Flags(name string) (Flags, error)
}

// FlagsOf returns the flags of a file. It returns no flags if the file system does not have them, or if they cannot be
// read.
func FlagsOf(fsys FS, name string) Flags {
	r, ok := fsys.(FlagReader)
	if !ok {
		return Flags{}
	}
	f, err := r.Flags(name)
	if err != nil {
		return Flags{}
	}
	return f
}

// MountPoint returns the mount point of the file system that a folder is on.
func MountPoint(fsys FS, name string) string {
	if whole, err := filepath.Abs(name); err == nil {
		name = whole // a relative path would end at the current folder
	}
	info, err := fsys.Stat(name)
	for err == nil && !isMount(name) {
		parent := filepath.Dir(name)
		if parent == name {
			break
		}
		up, uerr := fsys.Stat(parent)
		if uerr != nil || up.Dev != info.Dev {
			break
		}
		name = parent
	}
	return name
}
