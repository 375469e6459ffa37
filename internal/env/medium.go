package env

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// Medium returns the reason for which the system would refuse to write to the store: a *errs.PermissionError that names
// the mount, the file or the folder. It returns nil if it finds no reason. It changes nothing.
func (e *Env) Medium() error {
	if e.Refused != nil {
		return e.Refused
	}
	if v, err := e.FS.Volume(e.Dir); err == nil && v.ReadOnly {
		return e.Explain(&fs.PathError{Op: "open", Path: e.Dir, Err: syscall.EROFS})
	}
	p := &errs.PermissionError{You: os.Getuid(), Err: &fs.PathError{Op: "open", Path: e.Dir, Err: syscall.EACCES}}
	root, _ := e.FS.Stat(e.Dir + "/.")
	for _, at := range []string{e.Dir, filepath.Join(e.Dir, "wal"), filepath.Join(e.Dir, "wal", "append.lock")} {
		info, ok := e.describe(p, at)
		if !ok {
			continue
		}
		if why, fix := refuses(e.Dir, at, &info, &root, p.You, vfs.FlagsOf(e.FS, at)); why != "" {
			p.Path, p.Why, p.Fix = at, why, fix
			return p
		}
	}
	return nil
}
