package docfile

import (
	"errors"
	"io/fs"
	"os"

	"github.com/varve-db/varve/internal/vfs"
)

// Keep gives a file a second name in quarantine and syncs it, after it has written the file's note. It returns that
// name as a path in the store. The file stays in its place: replacing or removing it then loses nothing. If hard links
// are not supported, Keep copies the file, up to HashMost bytes.
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
