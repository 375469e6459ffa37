package crash

import (
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// file is an open file description.
type file struct {
	p      *Process
	in     *inode
	name   string
	access int
	refs   int // number of references: the handle and its mappings
	index  int // its index in p.files
	closed bool
}

func (f *file) do(op string, run func() error) error {
	return f.p.do(op, f.name, func() error {
		if f.closed {
			return os.ErrClosed
		}
		return run()
	})
}

func (f *file) ReadAt(b []byte, off int64) (n int, err error) {
	err = f.do("read", func() error {
		switch {
		case f.in.entries != nil:
			return syscall.EISDIR
		case f.access == os.O_WRONLY:
			return syscall.EBADF
		case off < 0:
			return syscall.EINVAL
		}
		n = f.in.cache.read(b, off)
		return nil
	})
	if err == nil && n < len(b) {
		err = io.EOF // unwrapped, as os.File returns it
	}
	return n, err
}

func (f *file) WriteAt(b []byte, off int64) (n int, err error) {
	err = f.do("write", func() (err error) {
		switch {
		case f.access == os.O_RDONLY:
			return syscall.EBADF
		case off < 0:
			return syscall.EINVAL
		}
		n, err = f.in.write(f.p.d, b, off)
		return err
	})
	return n, err
}

func (f *file) Truncate(size int64) error {
	return f.do("truncate", func() error {
		if f.access == os.O_RDONLY {
			return syscall.EINVAL
		}
		return f.in.truncate(f.p.d, size)
	})
}

func (f *file) Sync() error     { return f.sync("sync", nil) }
func (f *file) Datasync() error { return f.sync("datasync", nil) }

// FailSync acts like a Sync that fails with err: unsynced data of the file are lost.
func (f *file) FailSync(err error) error { return f.sync("sync", err) }

func (f *file) sync(op string, fault error) error {
	return f.do(op, func() error {
		if fault == nil {
			fault = f.p.d.syncFault(op, f.name)
		}
		if fault != nil {
			f.in.lose()
			return fault
		}
		if f.in.entries == nil {
			f.in.sync(f.p.d, op == "sync")
		}
		return nil
	})
}

func (f *file) Stat() (info vfs.Info, err error) {
	err = f.do("stat", func() error {
		info = f.in.info()
		return nil
	})
	return info, err
}

func (f *file) SetMtime(t time.Time) error {
	return f.do("utimes", func() error {
		f.in.cache.mtime = t
		f.in.note(f.p.d, change{})
		return nil
	})
}

// SetMode sets the permission bits. The change is durable at once: a power failure does not undo it.
func (f *file) SetMode(perm fs.FileMode) error {
	return f.do("chmod", func() error {
		f.in.mode = f.in.mode&^fs.ModePerm | perm&fs.ModePerm
		return nil
	})
}

func (f *file) Lease() (granted bool, err error) {
	err = f.do("lease", func() error {
		if err := f.p.d.unsupportedIf(f.p.d.lacks.Lease); err != nil {
			return err
		}
		if f.in.descs == 1 {
			f.in.lease, granted = f, true
		}
		return nil
	})
	return granted, err
}

func (f *file) Unlease() error {
	return f.do("unlease", func() error {
		f.unlease()
		return nil
	})
}

func (f *file) unlease() {
	if f.in.lease == f {
		f.in.lease = nil
		f.p.d.wake()
	}
}

// Map returns a snapshot of the current content. Later writes do not change it.
func (f *file) Map() (m vfs.Mapping, err error) {
	err = f.do("map", func() error {
		in := f.in
		if in.entries != nil || f.access == os.O_WRONLY {
			return syscall.EACCES
		}
		if in.flat == nil || in.flatVersion != in.version {
			in.flat = make([]byte, in.cache.size)
			in.cache.read(in.flat, 0)
			in.flatVersion = in.version
		}
		f.refs++
		m = &mapping{f, in.flat}
		return nil
	})
	return m, err
}

func (f *file) Name() string { return f.name }

func (f *file) Close() error {
	return f.do("close", func() error {
		f.closed = true
		f.unlease()
		f.p.d.drop(f)
		return nil
	})
}

// drop releases one reference to a file.
func (d *Disk) drop(f *file) {
	if f.refs--; f.refs == 0 {
		d.forget(f)
	}
}

// forget closes an open file: it removes the file from its process, ends its lease, and releases the inode if nothing
// else uses it.
func (d *Disk) forget(f *file) {
	p := f.p
	lastFile := p.files[len(p.files)-1]
	p.files[f.index], lastFile.index = lastFile, f.index
	p.files = p.files[:len(p.files)-1]
	f.closed, f.refs = true, 0
	f.in.descs--
	f.unlease()
	d.release(f.in)
}

type mapping struct {
	f *file
	b []byte
}

func (m *mapping) Bytes() []byte { return m.b }

func (m *mapping) Close() error {
	if m.f == nil {
		return nil
	}
	f := m.f
	m.f, m.b = nil, nil
	return f.p.do("unmap", f.name, func() error {
		if f.refs > 0 {
			f.p.d.drop(f)
		}
		return nil
	})
}
