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
