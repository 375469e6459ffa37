package wrap

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve/internal/vfs"
)

type dir struct {
	fs    *FS
	name  string
	inner vfs.Dir
}

// OpenDir opens a folder if the wrapped file system has handles of folders; it implements vfs.DirOpener.
func (f *FS) OpenDir(name string) (vfs.Dir, error) {
	if _, ok := f.inner.(vfs.DirOpener); !ok {
		return nil, errors.ErrUnsupported
	}
	var out vfs.Dir
	err := f.run(&Op{Kind: OpenDir, Path: name}, func() (err error) {
		out, err = vfs.OpenDir(f.inner, name)
		return err
	})
	if err != nil {
		return nil, closing(out, err)
	}
	return &dir{f, name, out}, nil
}

func (d *dir) CreateUnnamed(perm fs.FileMode) (vfs.File, error) {
	var out vfs.File
	err := d.fs.run(&Op{Kind: CreateUnnamed, Path: d.name, Perm: perm}, func() (err error) {
		out, err = d.inner.CreateUnnamed(perm)
		return err
	})
	if err != nil {
		return nil, closing(out, err)
	}
	return &file{d.fs, out}, nil
}

func (d *dir) LinkUnnamed(f vfs.File, name string) error {
	of, ok := f.(*file)
	if !ok {
		return errors.ErrUnsupported
	}
	return d.fs.run(&Op{Kind: LinkUnnamed, Path: of.inner.Name(), To: filepath.Join(d.name, name)}, func() error {
		return d.inner.LinkUnnamed(of.inner, name)
	})
}

func (d *dir) Stat() (info vfs.Info, err error) {
	err = d.fs.run(&Op{Kind: Stat, Path: d.name}, func() (err error) {
		info, err = d.inner.Stat()
		return err
	})
	return info, err
}

func (d *dir) Close() error { return d.fs.run(&Op{Kind: Close, Path: d.name}, d.inner.Close) }
