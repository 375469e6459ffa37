package over

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/varve-db/varve/internal/vfs"
)

// FS is a file system in which a writable folder overlays a read-only one.
type FS struct {
	fs           vfs.FS
	lower, upper string
	gone         *gone
}

// gone has the names in the lower folder that count as removed.
type gone struct {
	mu    sync.Mutex
	names map[string]bool
}

// New returns a file system in which the folder upper overlays lower. Callers use the paths of lower.
func New(fsys vfs.FS, lower, upper string) *FS {
	return &FS{fs: fsys, lower: filepath.Clean(lower), upper: filepath.Clean(upper), gone: &gone{names: map[string]bool{}}}
}

// Below returns a copy of f that accesses the file system under the overlay through vfs.Below for root.
func (f *FS) Below(root string) vfs.FS {
	g := *f
	g.fs = vfs.Below(f.fs, root)
	return &g
}

// upperPath returns the path in the upper folder that corresponds to name, a path in the lower folder. If name is
// outside the lower folder, upperPath returns "".
func (f *FS) upperPath(name string) string {
	rel, err := filepath.Rel(f.lower, filepath.Clean(name))
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return ""
	}
	return filepath.Join(f.upper, rel)
}

// lowerInfo returns the Info of a file or folder in the lower folder, and whether it exists there and was not
// removed.
func (f *FS) lowerInfo(name string) (vfs.Info, bool) {
	if f.hidden(name) {
		return vfs.Info{}, false
	}
	info, err := f.fs.Stat(name)
	return info, err == nil
}

// hidden reports whether name was removed from the overlay, or a folder above it was removed.
func (f *FS) hidden(name string) bool {
	f.gone.mu.Lock()
	defer f.gone.mu.Unlock()
	for at := filepath.Clean(name); at != f.lower && len(at) > len(f.lower); at = filepath.Dir(at) {
		if f.gone.names[at] {
			return true
		}
	}
	return false
}

func (f *FS) hide(name string) {
	f.gone.mu.Lock()
	defer f.gone.mu.Unlock()
	f.gone.names[filepath.Clean(name)] = true
}

// readPath returns the path under which the content of name can be read: the path in the upper folder if the upper
// folder has the name, otherwise the path in the lower folder. For a folder that is in both, readPath returns the
// path in the lower folder, whose times and inode number do not change.
func (f *FS) readPath(name string) (path string, info vfs.Info, err error) {
	up := f.upperPath(name)
	low, ok := f.lowerInfo(name)
	if up == "" || ok && low.Mode.IsDir() {
		if !ok {
			_, err = f.fs.Stat(name)
		}
		return name, low, err
	}
	info, err = f.fs.Stat(up)
	if errors.Is(err, fs.ErrNotExist) && ok {
		return name, low, nil
	}
	return up, info, named(err, name)
}

// named returns err with name, the path that the caller used, in place of the path in the upper folder.
func named(err error, name string) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return &fs.PathError{Op: p.Op, Path: name, Err: p.Err}
	}
	return err
}

// folder creates the parent folder of name in the upper folder, and its missing parents, unless it exists there. If
// the lower folder does not have the parent folder, the error is ENOENT.
func (f *FS) folder(name string) error {
	dir := filepath.Dir(name)
	up := f.upperPath(dir)
	if up == "" || up == f.upper {
		return nil
	}
	if _, err := f.fs.Stat(up); err == nil {
		return nil
	}
	if info, ok := f.lowerInfo(dir); !ok || !info.Mode.IsDir() {
		return &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOENT}
	}
	if err := f.folder(dir); err != nil {
		return err
	}
	if err := f.fs.Mkdir(up, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// raise copies a file from the lower folder to the upper one, if the upper one does not have it, and returns the path
// of the file in the upper folder.
func (f *FS) raise(name string) (string, error) {
	up := f.upperPath(name)
	if up == "" {
		return name, nil // not in the lower folder
	}
	if err := f.folder(name); err != nil {
		return "", err
	}
	if _, err := f.fs.Stat(up); !errors.Is(err, fs.ErrNotExist) {
		return up, err
	}
	info, ok := f.lowerInfo(name)
	if !ok {
		return up, nil
	}
	if !info.Mode.IsRegular() {
		return "", &fs.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	}
	return up, f.copy(name, up)
}

func (f *FS) copy(from, to string) (err error) {
	in, err := f.fs.OpenFile(from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := f.fs.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := out.Truncate(info.Size); err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	for at := int64(0); at < info.Size; at += int64(len(buf)) {
		b := buf[:min(int64(len(buf)), info.Size-at)]
		if _, err := in.ReadAt(b, at); err != nil {
			return err
		}
		if slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) {
			if _, err := out.WriteAt(b, at); err != nil {
				return err
			}
		}
	}
	return out.SetMtime(info.Mtime)
}
