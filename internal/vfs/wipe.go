package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/varve-db/varve/errs"
)

// wipeStep is how many zeros are written at once.
const wipeStep = 256 << 10

// Zero overwrites the bytes of an open file from an offset to its end with zeros
// and makes that durable. What the device keeps of them elsewhere is its own matter;
// see Volume.Overwrites.
func Zero(f File, from int64) error {
	if err := Overwrite(f, from); err != nil {
		return err
	}
	return f.Datasync() // no metadata: a commit of the journal less
}

// Overwrite is Zero before it is durable. A file that is removed by then may keep its
// bytes: what was not written out is dropped.
func Overwrite(f File, from int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if from >= info.Size {
		return nil
	}
	zeros := make([]byte, min(wipeStep, info.Size-from))
	for from < info.Size {
		var end int64
		for from, end = nextData(f, from, info.Size); from < end; {
			n := min(int64(len(zeros)), end-from)
			if _, err := f.WriteAt(zeros[:n], from); err != nil {
				return err
			}
			from += n
		}
	}
	return nil
}

// dataSeeker is a File that knows its holes.
type dataSeeker interface {
	// NextData is where the file has bytes again, at off or behind it, and where its next
	// hole begins; math.MaxInt64 where there is no such place.
	NextData(off int64) (from, end int64, err error)
}

// nextData passes over a hole: there is nothing to overwrite, and zeros written into a
// sparse file of terabytes would fill the disk. Without an answer there is no hole.
func nextData(f File, off, size int64) (from, end int64) {
	s, ok := f.(dataSeeker)
	if !ok {
		return off, size
	}
	from, end, err := s.NextData(off)
	if err != nil || from < off || end < from {
		return off, size
	}
	return min(from, size), min(end, size)
}

// Why a file was not overwritten.
var (
	ErrHeld   = errors.New("another program has it open")
	ErrLinked = errors.New("it has another name, a hard link")
)

// UnwipedError is a file that was to be overwritten and was not. It matches
// errs.ErrLocked when somebody has it open, errs.ErrConflict when it has another name,
// errs.ErrPermission when it may not be written.
type UnwipedError struct {
	Path string
	Ino  uint64 // 0 when unknown
	Err  error  // ErrHeld, ErrLinked, or what the system says
}

func (e *UnwipedError) Error() string { return e.What() + ": " + e.Help() }

// What says what happened.
func (e *UnwipedError) What() string { return fmt.Sprintf("%s was not overwritten: %v", e.Path, e.Err) }

// Help says what helps.
func (e *UnwipedError) Help() string {
	switch {
	case errors.Is(e.Err, ErrHeld):
		return "close it there, then purge again"
	case errors.Is(e.Err, ErrLinked):
		return fmt.Sprintf("the name in the store is removed; its bytes stay until the other one is: find / -inum %d", e.Ino)
	case IsPermission(e.Err):
		return "make it writable for this user, then purge again"
	}
	return "purge again when that is mended"
}

func (e *UnwipedError) Unwrap() []error {
	switch {
	case errors.Is(e.Err, ErrHeld):
		return []error{e.Err, errs.ErrLocked}
	case errors.Is(e.Err, ErrLinked):
		return []error{e.Err, errs.ErrConflict}
	case IsPermission(e.Err):
		return []error{e.Err, errs.ErrPermission}
	}
	return []error{e.Err}
}

// Unwiped moves an *UnwipedError out of err into a list: what else there is to wipe is
// not to wait for it.
func Unwiped(list *[]error, err error) error {
	var u *UnwipedError
	if errors.As(err, &u) {
		*list = append(*list, u)
		return nil
	}
	return err
}

// Wipe removes a file whose bytes are to be nowhere: overwritten, durably, before
// its name goes. Others may read it meanwhile, and must bear zeros. One that has a
// second name is somebody else's as well: it is removed and left as it is, which is an
// *UnwipedError. What is not there is fine; the folder is the caller's to sync.
func Wipe(fsys FS, name string) error { return wipe(fsys, name, false) }

// WipeAlone is Wipe for what others may be working on: while somebody has the file open
// it stays as it is, with its name, and that is an *UnwipedError. Where there are no leases that
// cannot be told, and it goes.
func WipeAlone(fsys FS, name string) error { return wipe(fsys, name, true) }

func wipe(fsys FS, name string, leased bool) error {
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case IsPermission(err):
		return &UnwipedError{Path: name, Err: err}
	case err != nil:
		return err
	}
	info, err := f.Stat()
	linked := err == nil && info.Nlink > 1
	if err == nil && info.Mode.IsRegular() && !linked {
		if leased {
			err = alone(f, name, info)
		}
		if err == nil {
			err = Zero(f, 0)
		}
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	// Under the lease: opening it now fails, as it is gone.
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	if linked {
		return &UnwipedError{name, info.Ino, ErrLinked}
	}
	return nil
}

// WipeUnmapped is Wipe for a file that other processes may have mapped, which would read zeros for
// what they know to be sound: it is overwritten only where nobody else has it open. left says that
// its last name went and its bytes did not: another process has, or there are no leases and that
// cannot be told.
func WipeUnmapped(fsys FS, name string) (left bool, err error) {
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case IsPermission(err):
		return false, &UnwipedError{Path: name, Err: err}
	case err != nil:
		return false, err
	}
	info, err := f.Stat()
	linked := err == nil && info.Nlink > 1
	if err == nil && info.Mode.IsRegular() && !linked {
		var granted bool
		if granted, err = f.Lease(); granted && err == nil {
			err = Zero(f, 0)
		} else if errors.Is(err, errors.ErrUnsupported) {
			err = nil
		}
		left = !granted
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if linked {
		return left, &UnwipedError{name, info.Ino, ErrLinked}
	}
	return left, nil
}

// alone takes the lease. Where there are none that cannot be told.
func alone(f File, name string, info Info) error {
	granted, err := f.Lease()
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	case err == nil && !granted:
		return &UnwipedError{name, info.Ino, ErrHeld}
	}
	return err
}
