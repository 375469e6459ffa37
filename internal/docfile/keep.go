package docfile

import (
	"errors"
	"io/fs"
	"os"

	"github.com/varve-db/varve/internal/vfs"
)

// Keep gives a file a second name in quarantine, durably, after it has written a note, and returns the second name as a
// path in the store. The file also stays at its own path, so that replacing or removing it there loses nothing. If the
// file system does not support hard links, Keep copies the file, up to HashMost bytes.
func (q *Quarantine) Keep(name string, n Note) (where string, err error) {
	f, err := q.l.FS.OpenFile(name, os.O_RDONLY, 0)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return "", failure("open", q.l.rel(name), err)
	}
	if err != nil {
		f = nil
	} else {
		defer func() { _ = f.Close() }()
	}
	if n.From == "" {
		n.From = q.l.rel(name)
	}
	k, err := q.keep(f, name, n, true)
	if err != nil || k.state != keptNot {
		return k.where, err
	}
	b, err := vfs.ReadFile(q.l.FS, name, HashMost)
	if err != nil {
		return "", failure("copy", q.l.rel(name), err)
	}
	n.Mtime = k.info.Mtime.UTC()
	return q.Bytes(n.From, b, n)
}
