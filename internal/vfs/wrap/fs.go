package wrap

import (
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/varve-db/varve/internal/vfs"
)

// FS is a wrapped file system.
type FS struct {
	inner vfs.FS
	hook  Hook
	seq   atomic.Int64
	sites *sites
}

// New wraps a file system. Use Also for wrapped file systems that share a cache of call sites.
func New(inner vfs.FS, hook Hook) *FS {
	return &FS{inner: inner, hook: hook, sites: &sites{}}
}

// Also wraps another file system that shares the cache of call sites with f.
func (f *FS) Also(inner vfs.FS, hook Hook) *FS {
	return &FS{inner: inner, hook: hook, sites: f.sites}
}

func (f *FS) run(op *Op, call func() error) error {
	op.wrapper = f
	op.Seq = int(f.seq.Add(1))
	return f.hook(op, call)
}

func (f *FS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	kind := Open
	if flag&(os.O_CREATE|os.O_TRUNC) != 0 {
		kind = Create
	}
	var out vfs.File
	err := f.run(&Op{Kind: kind, Path: name, Flag: flag, Perm: perm}, func() (err error) {
		out, err = f.inner.OpenFile(name, flag, perm)
		return err
	})
	if err != nil {
		return nil, closing(out, err)
	}
	return &file{f, out}, nil
}

// closing closes a file that was opened although the hook has returned the error err. It returns err.
func closing[T interface{ Close() error }](opened T, err error) error {
	if any(opened) != nil {
		opened.Close()
	}
	return err
}

func (f *FS) Mkdir(name string, perm fs.FileMode) error {
	return f.run(&Op{Kind: Mkdir, Path: name, Perm: perm}, func() error { return f.inner.Mkdir(name, perm) })
}

func (f *FS) Remove(name string) error {
	return f.run(&Op{Kind: Remove, Path: name}, func() error { return f.inner.Remove(name) })
}

func (f *FS) Rename(old, new string) error {
	return f.run(&Op{Kind: Rename, Path: old, To: new}, func() error { return f.inner.Rename(old, new) })
}

func (f *FS) RenameNew(old, new string) error {
	return f.run(&Op{Kind: RenameNew, Path: old, To: new}, func() error { return f.inner.RenameNew(old, new) })
}

func (f *FS) Exchange(a, b string) error {
	return f.run(&Op{Kind: Exchange, Path: a, To: b}, func() error { return f.inner.Exchange(a, b) })
}

func (f *FS) Link(old, new string) error {
	return f.run(&Op{Kind: Link, Path: old, To: new}, func() error { return f.inner.Link(old, new) })
}

func (f *FS) Stat(name string) (info vfs.Info, err error) {
	err = f.run(&Op{Kind: Stat, Path: name}, func() (err error) {
		info, err = f.inner.Stat(name)
		return err
	})
	return info, err
}

func (f *FS) ReadDir(name string) (names []string, err error) {
	err = f.run(&Op{Kind: ReadDir, Path: name}, func() (err error) {
		names, err = f.inner.ReadDir(name)
		return err
	})
	return names, err
}

func (f *FS) SyncDir(name string) error {
	return f.run(&Op{Kind: SyncDir, Path: name}, func() error { return f.inner.SyncDir(name) })
}

func (f *FS) OpenLock(name string, perm fs.FileMode) (vfs.Lock, error) {
	var out vfs.Lock
	err := f.run(&Op{Kind: OpenLock, Path: name, Perm: perm}, func() (err error) {
		out, err = f.inner.OpenLock(name, perm)
		return err
	})
	if err != nil {
		return nil, closing(out, err)
	}
	return &lock{f, name, out}, nil
}

func (f *FS) OpenShared(name string, create bool, perm fs.FileMode) (vfs.Shared, error) {
	op := &Op{Kind: OpenShared, Path: name, Perm: perm}
	if create {
		op.Flag = os.O_CREATE
	}
	var out vfs.Shared
	err := f.run(op, func() (err error) {
		out, err = f.inner.OpenShared(name, create, perm)
		return err
	})
	if err != nil {
		return nil, closing(out, err)
	}
	return &shared{f, name, out}, nil
}

func (f *FS) OpenBarrier(name string) (vfs.Barrier, error) {
	var out vfs.Barrier
	err := f.run(&Op{Kind: OpenBarrier, Path: name}, func() (err error) {
		out, err = f.inner.OpenBarrier(name)
		return err
	})
	if err != nil {
		return nil, closing(out, err)
	}
	return &barrier{f, name, out}, nil
}

func (f *FS) Volume(name string) (v vfs.Volume, err error) {
	err = f.run(&Op{Kind: Volume, Path: name}, func() (err error) {
		v, err = f.inner.Volume(name)
		return err
	})
	return v, err
}

// Host returns the Host of the wrapped file system. It does not call the hook.
func (f *FS) Host() vfs.Host { return f.inner.Host() }
