package errs

import (
	"fmt"
	"io/fs"

	"github.com/varve-db/varve/internal/human"
)

// DiskFullError reports which volume is full, and how much space is missing. It matches ErrDiskFull.
type DiskFullError struct {
	Path string // a folder of the volume that is full
	Free int64  // bytes that may still be written there, -1 when unknown
	Need int64  // approximate number of bytes that the refused operation takes, -1 when unknown
	Err  error  // the system's error, may be nil
	// Inodes reports that the file system cannot create another file although bytes are free.
	Inodes bool
}

// Error returns the message, in one line.
func (e *DiskFullError) Error() string {
	s := ErrDiskFull.Error() + ": "
	if e.Inodes {
		s += "no inode is free on the file system of " + e.Path + " (df -i shows them)"
		if e.Err != nil {
			s += ": " + e.Err.Error()
		}
		return s
	}
	if e.Free >= 0 {
		s += fmt.Sprintf("%s free for %s", human.Bytes(e.Free), e.Path)
	} else {
		s += "no space for " + e.Path
	}
	switch {
	case e.Need > e.Free && e.Free >= 0:
		s += fmt.Sprintf(", about %s more needed", human.Bytes(e.Need-e.Free))
	case e.Need > 0:
		s += fmt.Sprintf(", about %s needed at once (a quota may be smaller than the disk)", human.Bytes(e.Need))
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns ErrDiskFull, and the cause if there is one.
func (e *DiskFullError) Unwrap() []error { return appendErr([]error{ErrDiskFull}, e.Err) }

// PermissionError reports that the operating system does not let this process access a file, with the reason and a
// remedy. It matches ErrPermission.
type PermissionError struct {
	Path  string      // the file that refuses access, or a folder above it
	Why   string      // the reason
	Mode  fs.FileMode // mode of Path
	Owner uint32      // the user id of Path's owner
	You   int         // the user id of this process
	Fix   string      // a command with which the user can remedy the refusal, "" when none is known
	Err   error       // the system's error
}

// Error returns the message, in one line.
func (e *PermissionError) Error() string {
	s := fmt.Sprintf("%v: %s %s (mode %s, owned by user %d; you are user %d)", e.Err, e.Path, e.Why, e.Mode, e.Owner,
		e.You)
	if e.Fix != "" {
		s += ": " + e.Fix
	}
	return s
}

// Unwrap returns ErrPermission, and the cause if there is one.
func (e *PermissionError) Unwrap() []error { return appendErr([]error{ErrPermission}, e.Err) }
