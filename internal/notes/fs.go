package notes

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/note"
)

// FS returns the notes as a read-only file system. Each of its calls shows the notes at the moment of that
// call.
func (ns *Notes) FS(ctx context.Context) fs.FS { return &fileSystem{ns, ctx} }

type fileSystem struct {
	ns  *Notes
	ctx context.Context
}

func (f *fileSystem) Open(name string) (fs.File, error) {
	fail := func(err error) error { return &fs.PathError{Op: "open", Path: name, Err: err} }
	if !fs.ValidPath(name) {
		return nil, fail(fs.ErrInvalid)
	}
	if name != "." && note.CheckPath(name) != nil {
		return nil, fail(fs.ErrNotExist)
	}
	if name != "." {
		n, err := f.ns.Read(f.ctx, name)
		if err == nil {
			return &file{info{Entry{Info: n.Info}}, bytes.NewReader(n.Content)}, nil
		}
		if !errors.Is(err, errs.ErrNotFound) {
			return nil, fail(err)
		}
	}
	list, err := f.ReadDir(name)
	if err != nil {
		return nil, fail(err.(*fs.PathError).Err)
	}
	self := Entry{Info: Info{Path: name}, Folder: true}
	for _, e := range list {
		if i, err := e.Info(); err == nil && i.ModTime().After(self.UpdatedAt) {
			self.UpdatedAt = i.ModTime()
		}
	}
	return &folder{info{self}, list}, nil
}

// ReadDir implements fs.ReadDirFS.
func (f *fileSystem) ReadDir(name string) (list []fs.DirEntry, err error) {
	o := ListOptions{Depth: 1}
	if name != "." {
		o.Folder = name
	}
	for e, err := range f.ns.List(f.ctx, o) {
		if err != nil {
			return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
		}
		if e.Folder {
			e.Size = 0 // what is in it has sizes of its own
		}
		list = append(list, fs.FileInfoToDirEntry(info{e}))
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	if len(list) == 0 && name != "." {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	return list, nil
}

// info is an Entry as an fs.FileInfo.
type info struct{ e Entry }

func (i info) Name() string       { return path.Base(i.e.Path) }
func (i info) Size() int64        { return i.e.Size }
func (i info) ModTime() time.Time { return i.e.UpdatedAt }
func (i info) IsDir() bool        { return i.e.Folder }
func (i info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode {
	if i.e.Folder {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

type file struct {
	info info
	*bytes.Reader
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *file) Close() error               { return nil }

type folder struct {
	info info
	left []fs.DirEntry
}

func (d *folder) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *folder) Close() error               { return nil }
func (d *folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.e.Path, Err: fs.ErrInvalid}
}

func (d *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.left)
	} else if len(d.left) == 0 {
		return nil, io.EOF
	}
	list := d.left[:min(n, len(d.left))]
	d.left = d.left[len(list):]
	return list, nil
}
