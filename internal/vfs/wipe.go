package vfs

import (
	"errors"
	"io/fs"
	"os"
)

// wipeStep is how many zeros are written at once.
const wipeStep = 256 << 10

// Zero overwrites the bytes of an open file from an offset to its end with zeros
// and makes that durable. What the device keeps of them elsewhere is its own matter.
func Zero(f File, from int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if from >= info.Size {
		return nil
	}
	zeros := make([]byte, min(wipeStep, info.Size-from))
	for from < info.Size {
		n := min(int64(len(zeros)), info.Size-from)
		if _, err := f.WriteAt(zeros[:n], from); err != nil {
			return err
		}
		from += n
	}
	return f.Sync()
}

// Wipe removes a file whose bytes are to be nowhere: overwritten, durably, before
// its name goes. One that has a second name is somebody else's as well, and is
// only removed. What is not there is fine; the folder is the caller's to sync.
func Wipe(fsys FS, name string) error {
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Mode.IsRegular() && info.Nlink <= 1 {
		err = Zero(f, 0)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// WipeUnmapped is Wipe for a file that others may have mapped, who would read zeros for
// what they know to be sound: it is overwritten only where nobody else has it open. left
// says that its last name went and its bytes did not: somebody has, or there are no leases
// and nobody can tell.
func WipeUnmapped(fsys FS, name string) (left bool, err error) {
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode.IsRegular() && info.Nlink <= 1 {
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
	return left, nil
}

// Doomed is a file that is about to lose its last name, and whose bytes are to be
// nowhere then.
type Doomed struct{ f File }

// Doom takes hold of a file before its name goes. It is nil where it is not there,
// or where there are no leases: nobody can tell then who has it mapped.
func Doom(fsys FS, name string) (*Doomed, error) {
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	granted, err := f.Lease()
	if granted {
		err = f.Unlease()
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, f.Close()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Doomed{f}, nil
}

// Close lets the file go as it is.
func (d *Doomed) Close() error {
	if d == nil {
		return nil
	}
	return d.f.Close()
}

// Wipe overwrites what has no name any more, which must be durable, and lets the file go. left says that it
// has none and was not overwritten: somebody else still has it open or mapped, and
// would read zeros for what he knows to be sound.
func (d *Doomed) Wipe() (left bool, err error) {
	if d == nil {
		return true, nil
	}
	info, err := d.f.Stat()
	if err == nil && info.Nlink == 0 {
		var granted bool
		if granted, err = d.f.Lease(); granted && err == nil {
			err = Zero(d.f, 0)
		}
		left = !granted || err != nil
	}
	return left, errors.Join(err, d.f.Close())
}
