package index

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/vfs"
)

// Backup is an older base file of the index, kept in backups/.
type Backup struct {
	Name string // path relative to the store, with slashes
	LSN  uint64
}

const (
	backupHead = "memory_index."
	backupTail = ".json"
)

func backupName(lsn uint64) string {
	return backupHead + strconv.FormatUint(lsn, 10) + backupTail
}

// Backups returns the older base files of the index, the newest first.
func Backups(fsys vfs.FS, dir string) ([]Backup, error) {
	names, err := fsys.ReadDir(filepath.Join(dir, BackupsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Backup
	for _, name := range names {
		mid, ok1 := strings.CutPrefix(name, backupHead)
		mid, ok2 := strings.CutSuffix(mid, backupTail)
		lsn, err := strconv.ParseUint(mid, 10, 64)
		if ok1 && ok2 && err == nil && name == backupName(lsn) { // other files are ignored
			list = append(list, Backup{Name: BackupsDir + "/" + name, LSN: lsn})
		}
	}
	slices.SortFunc(list, func(a, b Backup) int { return cmp.Compare(b.LSN, a.LSN) })
	return list, nil
}

// DropOldest removes the oldest backup and returns its name. It returns "" if there is no backup, or if the backup
// cannot be removed.
func DropOldest(fsys vfs.FS, dir string) string {
	list, err := Backups(fsys, dir)
	if err != nil || len(list) == 0 {
		return ""
	}
	name := list[len(list)-1].Name
	err = fsys.Remove(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return name
}

// OpenBackup opens an older base file of the index, mapped into memory, and returns it as a set of index files. The
// caller must check whether the log still reaches back to the LSN of the set.
func OpenBackup(fsys vfs.FS, dir string, b Backup, store string) (*Set, error) {
	t, err := table.Open(fsys, dir, filepath.FromSlash(b.Name), Schema())
	if err != nil {
		return nil, err
	}
	if m := t.Meta(); m.Store != store || m.LSN != b.LSN {
		err := fmt.Errorf("%s %w, or to another position: expected store %s and position %d, found store %s and "+
			"position %d", b.Name, table.ErrForeign, store, b.LSN, m.Store, m.LSN)
		return nil, errors.Join(err, t.Release())
	}
	return table.Of(t), nil
}

// backUp keeps the base file of the index as a backup, and returns the name of the backup, as in Backup.Name.
// backUp links the file to a second name in backups/. If the file system has no hard links, backUp copies the
// file. A base is never changed in place, so a link stays valid.
func backUp(target Target, base *table.Table) (string, error) {
	folder := filepath.Join(target.Dir, BackupsDir)
	if err := vfs.MkdirAll(target.FS, folder, 0o700); err != nil {
		return "", err
	}
	name := backupName(base.Meta().LSN)
	path := filepath.Join(folder, name)
	err := target.FS.Link(filepath.Join(target.Dir, BaseName), path)
	switch {
	case errors.Is(err, fs.ErrExist):
		return BackupsDir + "/" + name, nil
	case errors.Is(err, errors.ErrUnsupported):
		perm := target.Perm
		if perm == 0 {
			perm = 0o600
		}
		err = base.View(func(b []byte) error {
			return vfs.WriteDurable(target.FS, target.Temp+".backup", path, b, perm)
		})
	case err == nil:
		err = target.FS.SyncDir(folder)
	}
	if err != nil {
		return "", fmt.Errorf("back up %s: %w", BaseName, err)
	}
	return BackupsDir + "/" + name, nil
}

// prune removes the oldest backups of the index, so that at most keep backups are left.
func prune(fsys vfs.FS, dir string, keep int) error {
	list, err := Backups(fsys, dir)
	if err != nil || len(list) <= keep {
		return err
	}
	for _, b := range list[keep:] {
		if err := fsys.Remove(filepath.Join(dir, filepath.FromSlash(b.Name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fsys.SyncDir(filepath.Join(dir, BackupsDir))
}
