package over

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/varve-db/varve/internal/vfs"
)

func (f *FS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND) == 0 {
		path, _, err := f.readPath(name)
		if err != nil {
			return nil, err
		}
		return f.fs.OpenFile(path, flag, perm)
	}
	if _, _, err := f.readPath(name); err == nil && flag&os.O_EXCL != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EEXIST}
	}
	up, err := f.raise(name)
	if err != nil {
		return nil, err
	}
	return f.fs.OpenFile(up, flag, perm)
}

func (f *FS) Mkdir(name string, perm fs.FileMode) error {
	if _, _, err := f.readPath(name); err == nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.EEXIST}
	}
	up := f.upperPath(name)
	if up == "" {
		return f.fs.Mkdir(name, perm)
	}
	if err := f.folder(name); err != nil {
		return err
	}
	return f.fs.Mkdir(up, perm)
}

func (f *FS) Remove(name string) error {
	up := f.upperPath(name)
	if up == "" {
		return f.fs.Remove(name)
	}
	_, info, err := f.readPath(name)
	if err != nil {
		return err
	}
	if info.Mode.IsDir() {
		if names, err := f.ReadDir(name); err != nil || len(names) > 0 {
			return errors.Join(err, &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOTEMPTY})
		}
	}
	if err := f.fs.Remove(up); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, ok := f.lowerInfo(name); ok {
		f.hide(name)
	}
	return nil
}

func (f *FS) Rename(old, new string) error { return f.move(old, new, f.fs.Rename) }

func (f *FS) RenameNew(old, new string) error {
	_, _, oerr := f.readPath(old)
	if _, _, err := f.readPath(new); err == nil && oerr == nil {
		return &os.LinkError{Op: "rename", Old: old, New: new, Err: syscall.EEXIST}
	}
	return f.move(old, new, f.fs.RenameNew)
}

func (f *FS) move(old, new string, how func(old, new string) error) error {
	if _, _, err := f.readPath(old); err != nil || filepath.Clean(old) == filepath.Clean(new) {
		return err
	}
	if _, info, err := f.readPath(new); err == nil && info.Mode.IsDir() {
		return &os.LinkError{Op: "rename", Old: old, New: new, Err: syscall.EISDIR}
	}
	from, err := f.raise(old)
	if err != nil {
		return err
	}
	if err := f.folder(new); err != nil {
		return err
	}
	to := f.upperPath(new)
	if to == "" {
		to = new
	}
	if err := how(from, to); err != nil {
		return err
	}
	if _, ok := f.lowerInfo(old); ok {
		f.hide(old)
	}
	return nil
}

func (f *FS) Exchange(a, b string) error {
	if f.upperPath(a) == "" && f.upperPath(b) == "" {
		return f.fs.Exchange(a, b)
	}
	return errors.ErrUnsupported
}

func (f *FS) Link(old, new string) error {
	if f.upperPath(old) == "" && f.upperPath(new) == "" {
		return f.fs.Link(old, new)
	}
	if _, _, err := f.readPath(new); err == nil {
		return &os.LinkError{Op: "link", Old: old, New: new, Err: syscall.EEXIST}
	}
	return errors.ErrUnsupported // a link to a file of the lower folder is not possible
}

func (f *FS) Stat(name string) (vfs.Info, error) {
	_, info, err := f.readPath(name)
	return info, err
}

func (f *FS) ReadDir(name string) ([]string, error) {
	up := f.upperPath(name)
	low, ok := f.lowerInfo(name)
	var names []string
	if up == "" || ok {
		list, err := f.fs.ReadDir(name)
		if err != nil {
			return nil, err
		}
		for _, n := range list {
			if up == "" || !f.hidden(filepath.Join(name, n)) {
				names = append(names, n)
			}
		}
	}
	if up == "" || ok && !low.Mode.IsDir() {
		return names, nil
	}
	list, err := f.fs.ReadDir(up)
	if errors.Is(err, fs.ErrNotExist) && ok {
		return names, nil
	}
	if err != nil {
		return nil, named(err, name)
	}
	names = append(names, list...)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// SyncDir does nothing for a folder of the overlay: the upper folder does not outlive the process.
func (f *FS) SyncDir(name string) error {
	if f.upperPath(name) != "" {
		return nil
	}
	return f.fs.SyncDir(name)
}

func (f *FS) OpenLock(name string, perm fs.FileMode) (vfs.Lock, error) {
	up, err := f.prepareUpper(name)
	if err != nil {
		return nil, err
	}
	return f.fs.OpenLock(up, perm)
}

func (f *FS) OpenShared(name string, create bool, perm fs.FileMode) (vfs.Shared, error) {
	up, err := f.prepareUpper(name)
	if err != nil {
		return nil, err
	}
	return f.fs.OpenShared(up, create, perm)
}

// prepareUpper returns the path in the upper folder at which a file is to be created, and creates the parent
// folder if necessary. It does not matter whether the lower folder has a file of that name. If name is outside the
// lower folder, prepareUpper returns name.
func (f *FS) prepareUpper(name string) (string, error) {
	up := f.upperPath(name)
	if up == "" {
		return name, nil
	}
	return up, f.folder(name)
}

func (f *FS) OpenBarrier(name string) (vfs.Barrier, error) {
	if f.upperPath(name) != "" {
		return nil, errors.ErrUnsupported
	}
	return f.fs.OpenBarrier(name)
}

func (f *FS) Volume(name string) (vfs.Volume, error) {
	if up := f.upperPath(name); up != "" {
		name = f.upper
	}
	return f.fs.Volume(name)
}

func (f *FS) Host() vfs.Host { return f.fs.Host() }

// Glance reads a file from the upper folder, or from the lower one if the upper one does not have it.
func (f *FS) Glance(name string, buf []byte, limit int64) ([]byte, vfs.Info, error) {
	path, info, err := f.readPath(name)
	g, ok := f.fs.(vfs.Glancer)
	if err != nil || !ok {
		return nil, info, err
	}
	return g.Glance(path, buf, limit)
}
