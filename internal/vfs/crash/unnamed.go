package crash

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/varve-db/varve/internal/vfs"
)

// dir is a handle of a folder.
type dir struct {
	p    *Process
	in   *inode
	name string
}

// OpenDir opens a folder; it implements vfs.DirOpener.
func (p *Process) OpenDir(name string) (vfs.Dir, error) {
	d := &dir{p: p, name: name}
	err := p.do("open", name, func() (err error) {
		if err = p.d.unsupportedIf(p.d.lacks.Unnamed); err == nil {
			d.in, err = p.d.folder(name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// CreateUnnamed creates and opens a file that has no name. Until LinkUnnamed gives it a name, nothing of the file
// survives a crash, and closing the file removes it.
func (d *dir) CreateUnnamed(perm fs.FileMode) (vfs.File, error) {
	var f *file
	err := d.p.do("open", d.name, func() error {
		if err := d.p.d.charge(inodeCost); err != nil {
			return err
		}
		p := d.p
		f = &file{p: p, in: p.d.newInode(perm.Perm()), name: filepath.Join(d.name, "(unnamed)"), access: os.O_RDWR,
			refs: 1, index: len(p.files)}
		p.files = append(p.files, f)
		f.in.descs++
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// LinkUnnamed gives the file a name. Like the name that a link makes, this name is one pending step: whether it
// survives a crash does not depend on the content.
func (d *dir) LinkUnnamed(f vfs.File, name string) error {
	of, ok := f.(*file)
	if !ok || of.p != d.p {
		return errors.ErrUnsupported
	}
	return of.do("link", func() error {
		switch {
		case d.in.nlink == 0:
			return syscall.ENOENT
		case d.in.entries[name] != nil:
			return syscall.EEXIST
		case of.in.nlink > 0:
			return syscall.ENOENT // the system refuses a second name for a file that had one
		}
		of.in.nlink++
		d.p.d.change(entry{d.in, name, of.in})
		return nil
	})
}

func (d *dir) Stat() (info vfs.Info, err error) {
	err = d.p.do("stat", d.name, func() error {
		info = d.in.info()
		return nil
	})
	return info, err
}

func (d *dir) Close() error { return nil }
