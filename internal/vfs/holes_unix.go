//go:build linux || darwin

package vfs

import (
	"math"

	"golang.org/x/sys/unix"
)

// NextData implements dataSeeker. It changes the file offset of the descriptor, which no other method uses.
func (f *osFile) NextData(off int64) (from, end int64, err error) {
	seek := func(fd uintptr, off int64, what int) (at int64, err error) {
		err = retry(func() (err error) {
			at, err = unix.Seek(int(fd), off, what)
			return err
		})
		if err == unix.ENXIO { // no data until the end of the file
			return math.MaxInt64, nil
		}
		return at, err
	}
	err = control(f.f, func(fd uintptr) (err error) {
		if from, err = seek(fd, off, unix.SEEK_DATA); err == nil && from < math.MaxInt64 {
			end, err = seek(fd, from, unix.SEEK_HOLE)
		} else {
			end = from
		}
		return err
	})
	return from, end, f.wrap("seek", err)
}
