package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/varve-db/varve/errs"
)

// wipeStep is the number of zeros that are written at once.
const wipeStep = 256 << 10

// Zero overwrites an open file with zeros from an offset to its end, and makes that durable. It cannot prevent the
// device from keeping copies of the old bytes elsewhere; see Volume.Overwrites.
func Zero(f File, from int64) error {
	if err := Overwrite(f, from); err != nil {
		return err
	}
	return f.Datasync() // without metadata, which saves a commit of the journal
}

// Overwrite does the same as Zero without making it durable. If the file is removed before a sync, its old bytes may
// stay on the disk, because unwritten data is dropped.
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

// dataSeeker is a File that can tell where its holes are.
type dataSeeker interface {
	// NextData returns where the next data begins at or after off, and where the next hole after it begins;
	// math.MaxInt64 if there is no data.
	NextData(off int64) (from, end int64, err error)
}

// nextData returns the next range with data. Holes are skipped: they have nothing to overwrite, and writing zeros into
// a sparse file of terabytes would fill the disk. If holes are not reported, the rest of the file counts as data.
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

// Stored returns how many of the size bytes from an offset on are data. The other bytes are in holes, which take no
// space. If the system does not report holes, all bytes count as data.
func Stored(f File, off, size int64) (n int64) {
	for end := off + size; off < end; {
		from, to := nextData(f, off, end)
		if to <= from {
			break
		}
		n, off = n+to-from, to
	}
	return n
}

// The reasons why a file was not overwritten.
var (
	ErrHeld   = errors.New("another program has the file open")
	ErrLinked = errors.New("the file has another name (a hard link)")
)

// UnwipedError reports that a file should have been overwritten and was not. It matches errs.ErrLocked if another
// program has the file open, errs.ErrConflict if the file has another name, and errs.ErrPermission if the file cannot
// be written.
type UnwipedError struct {
	Path string
	Ino  uint64 // inode of the file, 0 when unknown
	Err  error  // ErrHeld, ErrLinked, or a system error
}

func (e *UnwipedError) Error() string { return e.What() + ": " + e.Help() }

// What returns a text that names the file that was not overwritten, and the reason.
func (e *UnwipedError) What() string { return fmt.Sprintf("%s was not overwritten: %v", e.Path, e.Err) }

// Help returns advice for the user: what to do so that the file can be overwritten.
func (e *UnwipedError) Help() string {
	switch {
	case errors.Is(e.Err, ErrHeld):
		return "close the file in that program, then purge again"
	case errors.Is(e.Err, ErrLinked):
		return fmt.Sprintf("the name in the store is removed; remove the other name to free the data: find / -inum %d", e.Ino)
	case IsPermission(e.Err):
		return "make the file writable for this user, then purge again"
	}
	return "solve this problem, then purge again"
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

// Unwiped appends err to a list and returns nil if err is an *UnwipedError, so that the caller continues with other
// files. It returns any other error unchanged.
func Unwiped(list *[]error, err error) error {
	var u *UnwipedError
	if errors.As(err, &u) {
		*list = append(*list, u)
		return nil
	}
	return err
}

// Wipe removes a file whose contents must not remain on the disk. It durably overwrites the contents before it removes
// the name, so processes that read the file at that time may read zeros. If the file has a second name, the contents
// also belong to another owner: then Wipe only removes the name, leaves the contents, and returns an *UnwipedError. A
// missing file is not an error. The caller must sync the folder.
func Wipe(fsys FS, name string) error { return wipe(fsys, name, false) }

// WipeAlone does the same as Wipe for a file that other processes may be using: if another process has the file open,
// it stays unchanged with its name, and WipeAlone returns an *UnwipedError. Without leases this cannot be detected, and
// the file is wiped.
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
	// Removed while the lease is held: an open that waits for the lease then fails, because the file is gone.
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

// WipeUnmapped does the same as Wipe for a file that other processes may have mapped; these processes would read
// zeros instead of valid data. So it overwrites the file only if no other process has it open. unwiped means that
// the last name of the file was removed, but its contents were not overwritten: another process has the file open,
// or this is unknown because the system has no leases.
func WipeUnmapped(fsys FS, name string) (unwiped bool, err error) {
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
		unwiped = !granted
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if linked {
		return unwiped, &UnwipedError{name, info.Ino, ErrLinked}
	}
	return unwiped, nil
}

// alone takes a lease on the file. It returns an *UnwipedError if another process has the file open. Without leases it
// returns nil.
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
