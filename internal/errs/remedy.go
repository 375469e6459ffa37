package errs

import (
	"fmt"
	"io/fs"
)

// DiskFullError says how much is missing where. It matches ErrDiskFull.
type DiskFullError struct {
	Path string // a folder of the volume that is full
	Free int64  // bytes that may still be written there, -1 when unknown
	Need int64  // about how many what was refused takes, -1 when unknown
	Err  error
}

func (e *DiskFullError) Error() string {
	s := ErrDiskFull.Error() + ": "
	if e.Free >= 0 {
		s += fmt.Sprintf("%s free for %s", Bytes(e.Free), e.Path)
	} else {
		s += "no space for " + e.Path
	}
	switch {
	case e.Need > e.Free && e.Free >= 0:
		s += fmt.Sprintf(", about %s more are needed", Bytes(e.Need-e.Free))
	case e.Need > 0:
		s += fmt.Sprintf(", about %s are needed at once (a quota may be smaller than the disk)", Bytes(e.Need))
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *DiskFullError) Unwrap() []error { return appendErr([]error{ErrDiskFull}, e.Err) }

// PermissionError says what the system refuses, to whom, and what would change
// that. It matches ErrPermission.
type PermissionError struct {
	Path  string // what stands in the way: the file, or a folder above it
	Why   string // what about it
	Mode  fs.FileMode
	Owner uint32
	You   int
	Fix   string // a command, "" when none is known
	Err   error
}

func (e *PermissionError) Error() string {
	s := fmt.Sprintf("%v: %s %s (it has mode %s and belongs to user %d; you are user %d)", e.Err, e.Path, e.Why, e.Mode, e.Owner, e.You)
	if e.Fix != "" {
		s += ": " + e.Fix
	}
	return s
}

func (e *PermissionError) Unwrap() []error { return appendErr([]error{ErrPermission}, e.Err) }

// Bytes is a size for people.
func Bytes(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	case n < 10<<30:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d GiB", n>>30)
}
