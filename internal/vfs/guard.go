package vfs

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/varve-db/varve/errs"
)

// Guard runs f, which reads mapped memory. If the file behind the mapping is cut short, the read faults, and Guard
// returns an error that matches errs.ErrCorrupt. Any other panic passes through.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if !isFault(r) {
			panic(r)
		}
		err = fmt.Errorf("%w: a mapped file was cut short while it was read: %v", errs.ErrCorrupt, r)
	}()
	return f()
}

// isFault reports whether a recovered panic is a memory fault: only those have an address.
func isFault(r any) bool {
	_, ok := r.(interface {
		runtime.Error
		Addr() uintptr
	})
	return ok
}

// GuardFile does the same as Guard for reading the mapping of one file: a fault becomes an error that names the file.
func GuardFile(name string, f func() error) error {
	err := Guard(f)
	var at *errs.CorruptionError
	if errors.Is(err, errs.ErrCorrupt) && !errors.As(err, &at) {
		return &errs.CorruptionError{Path: name, Offset: -1, Err: err}
	}
	return err
}
