package index

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/varve-db/varve/internal/errs"
)

// PurgeBackups writes every backup in backups/ that has one of some memories
// again, without them, in to.Dir, a folder of nobody else's on the same file
// system. What it covers and when it was made stay. One that is damaged, or of
// another store, is of no use to anybody and cannot be looked through: it goes.
// It may be killed anywhere and done again.
func PurgeBackups(dir string, to Target, ids []string) (rewritten, removed int, err error) {
	list, err := Backups(to.FS, dir)
	if err != nil {
		return 0, 0, err
	}
	for _, b := range list {
		changed, err := purgeBackup(dir, to, b, ids)
		if errors.Is(err, errs.ErrCorrupt) {
			if err := to.FS.Remove(filepath.Join(dir, filepath.FromSlash(b.Name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return rewritten, removed, err
			}
			removed++
			continue
		}
		if err != nil {
			return rewritten, removed, err
		}
		if changed {
			rewritten++
		}
	}
	if rewritten+removed > 0 {
		err = to.FS.SyncDir(filepath.Join(dir, BackupsDir))
	}
	return rewritten, removed, err
}

func purgeBackup(dir string, to Target, b Backup, ids []string) (changed bool, err error) {
	set, err := OpenBackup(to.FS, dir, b, to.Store)
	if err != nil {
		if set == nil && !passing(err) {
			err = errors.Join(errs.ErrCorrupt, err)
		}
		return false, err
	}
	defer func() { err = errors.Join(err, set.Release()) }()
	for err := range Verify(set) {
		return false, err
	}
	var ch Changes
	for _, id := range ids {
		_, ok, err := set.Get(nil, Memories, id)
		if err != nil {
			return false, err
		}
		if ok {
			ch.List = append(ch.List, Change{Section: Memories, ID: id, Version: b.LSN - 1, Deleted: true})
		}
	}
	if len(ch.List) == 0 {
		return false, nil
	}
	to.LSN, to.Now, to.Backup = b.LSN, set.Base().Meta().Updated, false
	to.Chain, _ = Chain(set)
	if _, err := WriteBase(set, to, ch); err != nil {
		return false, err
	}
	return true, to.FS.Rename(filepath.Join(to.Dir, BaseName), filepath.Join(dir, filepath.FromSlash(b.Name)))
}

// passing says that a file could not be read now, which is no damage.
func passing(err error) bool {
	var pe *fs.PathError
	return !errors.Is(err, errs.ErrCorrupt) && errors.As(err, &pe)
}
