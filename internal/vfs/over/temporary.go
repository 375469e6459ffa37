package over

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// A temporary folder is locked as long as its process lives, so that the next one can remove what a
// killed one has left.
const (
	prefix   = "varve-readonly-"
	lockName = "lock"
	filesIn  = "store"
	newborn  = time.Minute // one without a lock may be just being made
)

// Temporary lays a new folder of the system's temporary one over dir; remove takes it away again.
// wait bounds the waits for leases: see vfs.Patient.
func Temporary(dir string, wait time.Duration) (over *FS, remove func() error, err error) {
	sweep(os.TempDir())
	temp, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, nil, err
	}
	lock, err := vfs.OS().OpenLock(filepath.Join(temp, lockName), 0o600)
	remove = func() error {
		err := os.RemoveAll(temp)
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
		return err
	}
	if err == nil {
		_, err = lock.TryLock(vfs.ModeExclusive)
	}
	upper := filepath.Join(temp, filesIn)
	if err == nil {
		err = os.Mkdir(upper, 0o700)
	}
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return New(vfs.Patient(vfs.Only(vfs.OS(), "", dir, upper), wait), dir, upper), remove, nil
}

// sweep removes what processes that were killed have left.
func sweep(parent string) {
	list, _ := filepath.Glob(filepath.Join(parent, prefix+"*"))
	for _, temp := range list {
		info, err := vfs.OS().Stat(temp)
		if err != nil || !info.Mode.IsDir() || os.Getuid() >= 0 && int(info.UID) != os.Getuid() || time.Since(info.Mtime) < newborn {
			continue
		}
		names, err := os.ReadDir(temp)
		if err != nil || slices.ContainsFunc(names, func(d os.DirEntry) bool { return d.Name() != lockName && d.Name() != filesIn }) {
			continue // somebody else's
		}
		name := filepath.Join(temp, lockName)
		if _, err := vfs.OS().Stat(name); err == nil {
			lock, err := vfs.OS().OpenLock(name, 0o600)
			if err != nil {
				continue
			}
			had, err := lock.TryLock(vfs.ModeExclusive)
			_ = lock.Close()
			if err != nil || !had {
				continue
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		_ = os.RemoveAll(temp)
	}
}
