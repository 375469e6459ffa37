package over

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// Properties of a temporary folder. It has a mark (vfs.Mark), and a lock that is held as long as its process lives, so
// that a later process can remove what a killed one left.
const (
	prefix   = "varve-readonly-"
	kind     = "view" // kind of the folder, as the mark records it
	lockName = "lock"
	filesIn  = "store"
	newborn  = time.Minute // age below which a folder without mark or lock may be under construction
)

// Temporary overlays dir with a new folder in the system's temporary folder; remove removes that folder. known reports
// whether a path belongs to a file of a store. wait limits the waits for leases: see vfs.Patient.
func Temporary(dir string, known func(rel string, folder bool) bool,
	wait time.Duration) (over *FS, remove func() error, err error) {
	sweep(os.TempDir(), known)
	temp, err := vfs.MkdirTemp("", prefix)
	if err != nil {
		return nil, nil, err
	}
	err = vfs.WriteMark(vfs.OS(), temp, vfs.Mark{Kind: kind}, 0o600)
	var lock vfs.Lock
	if err == nil {
		lock, err = vfs.OS().OpenLock(filepath.Join(temp, lockName), 0o600)
	}
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
		err = vfs.OS().Mkdir(upper, 0o700)
	}
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return New(vfs.Patient(vfs.Only(vfs.OS(), "", dir, upper), wait), dir, upper), remove, nil
}

// sweep removes folders that killed processes have left in parent: the folders with the mark of such a process, and
// empty folders. It considers only folders whose names begin with prefix, that belong to this user, and that have not
// changed for at least newborn. If a folder contains anything other than a lock and the files of a store, sweep leaves
// the whole folder.
func sweep(parent string, known func(rel string, folder bool) bool) {
	list, _ := filepath.Glob(filepath.Join(parent, prefix+"*"))
	self := vfs.Self(func(string) string { return "" })
	for _, temp := range list {
		fsys := vfs.Below(vfs.OS(), temp)
		info, err := fsys.Stat(temp)
		if err != nil || !info.Mode.IsDir() || !self.Own(&info) || time.Since(info.Mtime) < newborn {
			continue
		}
		names, err := fsys.ReadDir(temp)
		m, marked := vfs.ReadMark(fsys, temp)
		if err != nil || len(names) > 0 && !(marked && m.Name == filepath.Base(temp) && m.Kind == kind) {
			continue // a user's folder
		}
		if name := filepath.Join(temp, lockName); len(names) > 0 {
			lock, err := fsys.OpenLock(name, 0o600)
			if err != nil {
				continue
			}
			had, err := lock.TryLock(vfs.ModeExclusive)
			_ = lock.Close()
			if err != nil || !had {
				continue
			}
		}
		_ = vfs.RemoveKnown(fsys, temp, func(rel string, folder bool) bool {
			below, in := strings.CutPrefix(rel, filesIn+"/")
			switch {
			case in:
				return known(below, folder)
			case folder:
				return rel == "." || rel == filesIn
			}
			return rel == lockName || rel == vfs.MarkName
		})
	}
}
