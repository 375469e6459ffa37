package vfs

import (
	"io/fs"
	"os"
	"time"
)

// osFile is a File that uses os.File, whose reference count prevents a descriptor from being closed, and reused for
// another file, during a read.
type osFile struct{ f *os.File }

func (f *osFile) ReadAt(p []byte, off int64) (int, error)  { return f.f.ReadAt(p, off) }
func (f *osFile) WriteAt(p []byte, off int64) (int, error) { return f.f.WriteAt(p, off) }
func (f *osFile) Truncate(size int64) error                { return f.f.Truncate(size) }
func (f *osFile) Sync() error                              { return f.f.Sync() }
func (f *osFile) Datasync() error                          { return f.wrap("datasync", datasync(f.f)) }
func (f *osFile) Stat() (Info, error)                      { return fstat(f.f) }
func (f *osFile) SetMtime(t time.Time) error               { return f.wrap("utimes", setMtime(f.f, t)) }
func (f *osFile) SetMode(perm fs.FileMode) error           { return setMode(f.f, perm) }
func (f *osFile) Unlease() error                           { return f.wrap("unlease", unlease(f.f)) }
func (f *osFile) Name() string                             { return f.f.Name() }
func (f *osFile) Close() error                             { return f.f.Close() }

func (f *osFile) Lease() (bool, error) {
	ok, err := lease(f.f)
	return ok, f.wrap("lease", err)
}

func (f *osFile) Map() (Mapping, error) {
	m, err := mapFile(f.f)
	if err != nil {
		return nil, f.wrap("map", err)
	}
	return m, nil
}

func (f *osFile) wrap(op string, err error) error { return pathError(op, f.f.Name(), err) }

// control runs op on the descriptor, and makes sure that the descriptor stays open until op returns.
func control(f *os.File, op func(fd uintptr) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var opErr error
	if err := c.Control(func(fd uintptr) { opErr = op(fd) }); err != nil {
		return err
	}
	return opErr
}
