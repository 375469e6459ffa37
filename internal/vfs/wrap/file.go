package wrap

import (
	"context"
	"io"
	"io/fs"
	"math"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

type file struct {
	fs    *FS
	inner vfs.File
}

func (f *file) run(op Op, call func() error) error {
	op.Path = f.inner.Name()
	return f.fs.run(&op, call)
}

func (f *file) ReadAt(b []byte, off int64) (n int, err error) {
	op := &Op{Kind: Read, Path: f.inner.Name(), Off: off, Size: len(b)}
	err = f.fs.run(op, func() (err error) {
		n, err = f.inner.ReadAt(b[:min(op.Size, len(b))], off)
		return err
	})
	if err == nil && n < len(b) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (f *file) WriteAt(b []byte, off int64) (n int, err error) {
	op := &Op{Kind: Write, Path: f.inner.Name(), Off: off, Size: len(b)}
	err = f.fs.run(op, func() (err error) {
		n, err = f.inner.WriteAt(b[:min(op.Size, len(b))], off)
		return err
	})
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return n, err
}

func (f *file) Truncate(size int64) error {
	return f.run(Op{Kind: Truncate, Length: size}, func() error { return f.inner.Truncate(size) })
}

func (f *file) Sync() error { return f.run(Op{Kind: Sync, failer: f.inner}, f.inner.Sync) }

func (f *file) Datasync() error { return f.run(Op{Kind: Datasync, failer: f.inner}, f.inner.Datasync) }

// FailSync calls FailSync of the wrapped file.
func (f *file) FailSync(err error) error { return (&Op{failer: f.inner}).FailSync(err) }

func (f *file) Stat() (info vfs.Info, err error) {
	err = f.run(Op{Kind: Stat}, func() (err error) {
		info, err = f.inner.Stat()
		return err
	})
	return info, err
}

// NextData returns the next range with data, if the wrapped file system reports holes.
func (f *file) NextData(off int64) (from, end int64, err error) {
	if s, ok := f.inner.(interface {
		NextData(off int64) (from, end int64, err error)
	}); ok {
		return s.NextData(off)
	}
	return off, math.MaxInt64, nil
}

func (f *file) SetMtime(t time.Time) error {
	return f.run(Op{Kind: SetMtime}, func() error { return f.inner.SetMtime(t) })
}

func (f *file) SetMode(perm fs.FileMode) error {
	return f.run(Op{Kind: SetMode}, func() error { return f.inner.SetMode(perm) })
}

func (f *file) Lease() (granted bool, err error) {
	err = f.run(Op{Kind: Lease}, func() (err error) {
		granted, err = f.inner.Lease()
		return err
	})
	return granted, err
}

func (f *file) Unlease() error { return f.run(Op{Kind: Unlease}, f.inner.Unlease) }

func (f *file) Map() (vfs.Mapping, error) {
	var out vfs.Mapping
	err := f.run(Op{Kind: Map}, func() (err error) {
		out, err = f.inner.Map()
		return err
	})
	if err != nil {
		return nil, closing(out, err)
	}
	return out, nil // reading the mapping is not an operation
}

func (f *file) Name() string { return f.inner.Name() }
func (f *file) Close() error { return f.run(Op{Kind: Close}, f.inner.Close) }

type lock struct {
	fs    *FS
	name  string
	inner vfs.Lock
}

func (l *lock) KeepOpen() error { return vfs.KeepOpen(l.inner) }

func (l *lock) Lock(ctx context.Context, mode vfs.Mode) error {
	return l.fs.run(&Op{Kind: Lock, Path: l.name, Mode: mode, Ctx: ctx}, func() error { return l.inner.Lock(ctx, mode) })
}

func (l *lock) TryLock(mode vfs.Mode) (ok bool, err error) {
	err = l.fs.run(&Op{Kind: TryLock, Path: l.name, Mode: mode}, func() (err error) {
		ok, err = l.inner.TryLock(mode)
		return err
	})
	return ok && err == nil, err
}

func (l *lock) Unlock() error { return l.fs.run(&Op{Kind: Unlock, Path: l.name}, l.inner.Unlock) }
func (l *lock) Close() error  { return l.fs.run(&Op{Kind: Close, Path: l.name}, l.inner.Close) }

type shared struct {
	fs    *FS
	name  string
	inner vfs.Shared
}

// Load returns a word. Load, Store and CompareAndSwap cannot fail: errors of the hook are ignored.
func (s *shared) Load(word int) (v uint64) {
	s.fs.run(&Op{Kind: Load, Path: s.name, Word: word}, func() error {
		v = s.inner.Load(word)
		return nil
	})
	return v
}

func (s *shared) Store(word int, v uint64) {
	s.fs.run(&Op{Kind: Store, Path: s.name, Word: word, Value: v}, func() error {
		s.inner.Store(word, v)
		return nil
	})
}

func (s *shared) CompareAndSwap(word int, old, new uint64) (swapped bool) {
	s.fs.run(&Op{Kind: CompareAndSwap, Path: s.name, Word: word, Value: new}, func() error {
		swapped = s.inner.CompareAndSwap(word, old, new)
		return nil
	})
	return swapped
}

func (s *shared) Close() error { return s.fs.run(&Op{Kind: Close, Path: s.name}, s.inner.Close) }

type barrier struct {
	fs    *FS
	name  string
	inner vfs.Barrier
}

func (b *barrier) Sync() error {
	return b.fs.run(&Op{Kind: Barrier, Path: b.name, failer: b.inner}, b.inner.Sync)
}

// FailSync calls FailSync of the wrapped barrier.
func (b *barrier) FailSync(err error) error { return (&Op{failer: b.inner}).FailSync(err) }

func (b *barrier) Close() error {
	return b.fs.run(&Op{Kind: Close, Path: b.name}, b.inner.Close)
}
