package crash

import (
	"context"
	"io/fs"
	"os"
	"slices"

	"github.com/varve-db/varve/internal/vfs"
)

// lock is a lock handle. The field on has the inode on which the handle holds a lock, or nil if it holds none.
type lock struct {
	p      *Process
	name   string
	perm   fs.FileMode
	mode   vfs.Mode
	on     *inode
	closed bool
}

func (p *Process) OpenLock(name string, perm fs.FileMode) (vfs.Lock, error) {
	l := &lock{p: p, name: name, perm: perm}
	err := p.do("open", name, func() error {
		_, err := l.file()
		if err == nil {
			p.locks = append(p.locks, l)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// file returns the inode of the path, and creates the file if it is missing. It is called for each acquire, which has
// the same effect as comparing the inode of the handle with the inode of the path.
func (l *lock) file() (*inode, error) {
	dir, base, in, err := l.p.d.lookup(l.name)
	if err == nil && in == nil {
		in, err = l.p.d.create(dir, base, l.perm)
	}
	return in, err
}

func (l *lock) Lock(ctx context.Context, mode vfs.Mode) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.p.block {
		stop := context.AfterFunc(ctx, func() {
			l.p.d.mu.Lock()
			defer l.p.d.mu.Unlock()
			l.p.d.wake()
		})
		defer stop()
	}
	var ended error
	err := l.p.do("lock", l.name, func() error {
		for {
			ok, err := l.try(mode)
			if ok || err != nil {
				return err
			}
			if ended = ctx.Err(); ended != nil {
				return nil
			}
			if err := l.p.wait(); err != nil {
				return err
			}
		}
	})
	if ended != nil {
		return ended
	}
	return err
}

func (l *lock) TryLock(mode vfs.Mode) (ok bool, err error) {
	err = l.p.do("lock", l.name, func() (err error) {
		ok, err = l.try(mode)
		return err
	})
	return ok, err
}

func (l *lock) try(mode vfs.Mode) (bool, error) {
	if l.closed {
		return false, os.ErrClosed
	}
	if l.on != nil { // held through this handle: its next caller waits
		return false, nil
	}
	in, err := l.file()
	if err != nil {
		return false, err
	}
	for _, other := range in.locks {
		if mode == vfs.ModeExclusive || other.mode == vfs.ModeExclusive {
			return false, nil
		}
	}
	l.on, l.mode = in, mode
	in.locks = append(in.locks, l)
	return true, nil
}

func (l *lock) Unlock() error {
	return l.p.do("unlock", l.name, func() error {
		if l.on == nil {
			return errNotHeld
		}
		l.drop()
		return nil
	})
}

func (l *lock) drop() {
	if l.on == nil {
		return
	}
	i := slices.Index(l.on.locks, l)
	l.on.locks = slices.Delete(l.on.locks, i, i+1)
	l.on = nil
	l.p.d.wake()
}

func (l *lock) Close() error {
	return l.p.do("close", l.name, func() error {
		if l.closed {
			return os.ErrClosed
		}
		l.closed = true
		l.drop()
		if i := slices.Index(l.p.locks, l); i >= 0 {
			l.p.locks = slices.Delete(l.p.locks, i, i+1)
		}
		l.p.d.wake()
		return nil
	})
}

func modeName(m vfs.Mode) string {
	if m == vfs.ModeExclusive {
		return "exclusive"
	}
	return "shared"
}
