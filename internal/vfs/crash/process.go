package crash

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/varve-db/varve/internal/vfs"
)

// Process is the view that one process has of a Disk. It is a vfs.FS.
type Process struct {
	d     *Disk
	pid   int
	name  string
	block bool // operations wait as on the operating system
	dead  bool
	files []*file
	locks []*lock
}

// Process starts a process whose operations wait for locks and leases, as those of a real system do.
func (d *Disk) Process(name string) *Process { return d.start(name, true) }

// NonBlocking starts a process whose operations return ErrWouldBlock instead of waiting, for a scheduler.
func (d *Disk) NonBlocking(name string) *Process { return d.start(name, false) }

func (d *Disk) start(name string, block bool) *Process {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &Process{d: d, pid: d.nextPID, name: name, block: block}
	d.nextPID++
	d.procs[p.pid] = p
	return p
}

// enter locks the disk for one operation of the process. It returns errKilled if the process was killed.
func (p *Process) enter() error {
	p.d.mu.Lock()
	if p.dead {
		p.d.mu.Unlock()
		return errKilled
	}
	return nil
}

func (p *Process) do(op, name string, f func() error) error {
	err := p.enter()
	if err == nil {
		err = f()
		p.d.mu.Unlock()
	}
	return pathError(op, name, err)
}

func pathError(op, name string, err error) error {
	if err == nil || err == ErrWouldBlock {
		return err
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func (p *Process) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	var f *file
	err := p.do("open", name, func() (err error) {
		f, err = p.openFile(name, flag, perm)
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (p *Process) openFile(name string, flag int, perm fs.FileMode) (*file, error) {
	d := p.d
	for {
		dir, base, in, err := d.lookup(name)
		if err != nil {
			return nil, err
		}
		access := flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR)
		switch {
		case in == nil && flag&os.O_CREATE == 0:
			return nil, syscall.ENOENT
		case in == nil:
			if in, err = d.create(dir, base, perm); err != nil {
				return nil, err
			}
		case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
			return nil, syscall.EEXIST
		case in.entries != nil:
			return nil, &vfs.NotRegularError{Path: name, Mode: in.mode}
		}
		if in.lease != nil {
			if err := p.wait(); err != nil {
				return nil, err
			}
			continue // the name may lead to another file now
		}
		if flag&os.O_TRUNC != 0 && access != os.O_RDONLY && in.cache.size > 0 {
			if err := in.truncate(d, 0); err != nil {
				return nil, err
			}
		}
		f := &file{p: p, in: in, name: name, access: access, refs: 1, index: len(p.files)}
		p.files = append(p.files, f)
		in.descs++
		return f, nil
	}
}

// wait blocks until a lock or a lease is released. In a process of NonBlocking it returns ErrWouldBlock at once. It
// returns errKilled if the process is killed meanwhile.
func (p *Process) wait() error {
	if !p.block {
		return ErrWouldBlock
	}
	p.d.changed.Wait()
	if p.dead {
		return errKilled
	}
	return nil
}

func (d *Disk) create(dir *inode, base string, perm fs.FileMode) (*inode, error) {
	if err := d.charge(inodeCost); err != nil {
		return nil, err
	}
	in := d.newInode(perm)
	in.nlink = 1
	d.change(entry{dir, base, in})
	return in, nil
}

func (p *Process) Mkdir(name string, perm fs.FileMode) error {
	return p.do("mkdir", name, func() error {
		dir, base, in, err := p.d.lookup(name)
		if err != nil {
			return err
		}
		if in != nil {
			return syscall.EEXIST
		}
		_, err = p.d.create(dir, base, fs.ModeDir|perm.Perm())
		return err
	})
}

func (p *Process) Remove(name string) error {
	return p.do("remove", name, func() error {
		dir, base, in, err := p.d.lookupExisting(name)
		if err != nil {
			return err
		}
		if in == p.d.root {
			return syscall.EINVAL
		}
		if len(in.entries) > 0 {
			return syscall.ENOTEMPTY
		}
		p.d.change(entry{dir, base, nil})
		p.d.unlink(in)
		return nil
	})
}

func (d *Disk) unlink(node *inode) {
	if node.nlink--; node.nlink == 0 {
		node.early = !d.keepsFreed
	}
	d.release(node)
}

func (p *Process) Rename(old, new string) error {
	return p.pair("rename", old, new, func(a, b place) error {
		switch {
		case b.in == a.in:
			return nil
		case b.in != nil && b.in.entries != nil:
			if a.in.entries == nil {
				return syscall.EISDIR
			}
			if len(b.in.entries) > 0 {
				return syscall.ENOTEMPTY
			}
		case b.in != nil && a.in.entries != nil:
			return syscall.ENOTDIR
		}
		p.d.change(entry{a.dir, a.base, nil}, entry{b.dir, b.base, a.in})
		if b.in != nil {
			p.d.unlink(b.in)
		}
		return nil
	})
}

func (p *Process) RenameNew(old, new string) error {
	return p.pair("rename", old, new, func(a, b place) error {
		if b.in != nil {
			return syscall.EEXIST
		}
		p.d.change(entry{a.dir, a.base, nil}, entry{b.dir, b.base, a.in})
		return nil
	})
}

func (p *Process) Exchange(a, b string) error {
	return p.pair("exchange", a, b, func(a, b place) error {
		if err := p.d.unsupportedIf(p.d.lacks.Exchange); err != nil {
			return err
		}
		if b.in == nil {
			return syscall.ENOENT
		}
		if a.in != b.in {
			p.d.change(entry{a.dir, a.base, b.in}, entry{b.dir, b.base, a.in})
		}
		return nil
	})
}

func (p *Process) Link(old, new string) error {
	return p.pair("link", old, new, func(a, b place) error {
		if err := p.d.unsupportedIf(p.d.lacks.Link); err != nil {
			return err
		}
		switch {
		case b.in != nil:
			return syscall.EEXIST
		case a.in.entries != nil:
			return syscall.EPERM
		}
		a.in.nlink++
		p.d.change(entry{b.dir, b.base, a.in})
		return nil
	})
}

type place struct {
	dir  *inode
	base string
	in   *inode
}

// pair calls f with the folders and inodes of two names, a for old and b for new. The name old must exist; b.in is nil
// if new does not exist. An error becomes an *os.LinkError of the operation op.
func (p *Process) pair(op, old, new string, f func(a, b place) error) error {
	err := p.enter()
	if err == nil {
		var a, b place
		a.dir, a.base, a.in, err = p.d.lookupExisting(old)
		if err == nil {
			b.dir, b.base, b.in, err = p.d.lookup(new)
		}
		if err == nil && (a.in == p.d.root || b.in == p.d.root) {
			err = syscall.EINVAL
		}
		if err == nil {
			err = f(a, b)
		}
		p.d.mu.Unlock()
	}
	if err != nil {
		return &os.LinkError{Op: op, Old: old, New: new, Err: err}
	}
	return nil
}

func (p *Process) Stat(name string) (info vfs.Info, err error) {
	err = p.do("lstat", name, func() error {
		_, _, in, err := p.d.lookupExisting(name)
		if err == nil {
			info = in.info()
		}
		return err
	})
	return info, err
}

func (node *inode) info() vfs.Info {
	return vfs.Info{
		Size: node.cache.size, Mtime: node.cache.mtime, Mode: node.mode,
		Ino: node.ino, Dev: 1, Nlink: uint64(node.nlink),
	}
}

// ReadDir returns sorted names, so that runs are reproducible.
func (p *Process) ReadDir(name string) (names []string, err error) {
	err = p.do("readdir", name, func() error {
		in, err := p.d.folder(name)
		if err != nil {
			return err
		}
		names = make([]string, 0, len(in.entries))
		for n := range in.entries {
			names = append(names, n)
		}
		slices.Sort(names)
		return nil
	})
	return names, err
}

func (p *Process) SyncDir(name string) error {
	return p.do("syncdir", name, func() error {
		in, err := p.d.folder(name)
		if err != nil {
			return err
		}
		if err := p.d.syncFault("syncdir", name); err != nil {
			return err
		}
		p.d.syncDir(in)
		return nil
	})
}

func (d *Disk) syncFault(op, name string) error {
	if d.failSync == nil {
		return nil
	}
	return d.failSync(op, name)
}

func (p *Process) OpenBarrier(name string) (vfs.Barrier, error) {
	err := p.do("barrier", name, func() error {
		if err := p.d.unsupportedIf(p.d.lacks.Barrier); err != nil {
			return err
		}
		_, err := p.d.folder(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &barrier{p, name}, nil
}

type barrier struct {
	p    *Process
	name string
}

func (b *barrier) Sync() error { return b.FailSync(nil) }

// FailSync acts like a Sync that fails with err: all unsynced data are lost.
func (b *barrier) FailSync(err error) error {
	return b.p.do("syncfs", b.name, func() error {
		d := b.p.d
		if err == nil {
			err = d.syncFault("barrier", b.name)
		}
		if err != nil {
			for in := range d.dirty {
				in.lose()
			}
			return err
		}
		d.barrier()
		return nil
	})
}

func (b *barrier) Close() error { return nil }

func (p *Process) Volume(name string) (v vfs.Volume, err error) {
	err = p.do("statfs", name, func() error {
		if _, _, _, err := p.d.lookupExisting(name); err != nil {
			return err
		}
		const roomy = 1 << 40
		v = vfs.Volume{Type: "ext4", Total: roomy, Coherent: true}
		if p.d.capacity > 0 {
			v.Total = p.d.capacity
		}
		v.Free = max(0, v.Total-p.d.used)
		return nil
	})
	return v, err
}

func (p *Process) Host() vfs.Host {
	return vfs.Host{
		Boot: [2]uint64{0x7661727665, p.d.boot}, PID: p.pid,
		Command: p.name, Name: "crash",
	}
}

// PID returns the number of the process.
func (p *Process) PID() int { return p.pid }

var errNotHeld = errors.New("the lock is not held")
