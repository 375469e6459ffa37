package docfile

import (
	"io"
	"os"

	"github.com/varve-db/varve/internal/vfs"
)

// Glance reads the file of a document once into buf, with as few system calls as possible. If buf is too small, Glance
// allocates a larger one. Unlike Read, Glance does not detect that the file is replaced or saved in place meanwhile. A
// caller that knows the expected hash can detect that, and then calls Read.
func (f *Folder) Glance(name string, buf []byte, limit int64) ([]byte, vfs.Info, error) {
	if err := f.enter(name); err != nil {
		return buf[:0], vfs.Info{}, err
	}
	if g, ok := f.l.FS.(vfs.Glancer); ok {
		return g.Glance(f.Path(name), buf, limit)
	}
	file, err := f.l.FS.OpenFile(f.Path(name), os.O_RDONLY, 0)
	if err != nil {
		return buf[:0], vfs.Info{}, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil || !info.Mode.IsRegular() || info.Size > limit {
		return buf[:0], info, err
	}
	if int64(cap(buf)) < info.Size {
		buf = make([]byte, info.Size, 2*info.Size)
	}
	n, err := file.ReadAt(buf[:info.Size], 0)
	if err == io.EOF {
		err = nil
	}
	return buf[:n], info, err
}
