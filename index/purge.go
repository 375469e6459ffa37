package index

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index/table"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/vfs"
)

// PurgedBackups is the result of PurgeBackups: what it did with each backup of the index.
type PurgedBackups struct {
	Rewritten []string // names of rewritten backups, as in Backup.Name
	Removed   []string // names of removed backups that had a line to purge and were damaged or of another store
	Unread    []string // names of removed backups that were damaged and may have had a line to purge
	// Names of removed backups that were not overwritten, because a process has them mapped, or this is unknown.
	Unlinked []string
	// Errors, each a *vfs.UnwipedError, of backups that were not overwritten because of another hard link or
	// permissions.
	Unwiped []error
}

// backupMost is the maximum size of a damaged backup that is searched, in bytes.
const backupMost = 2 << 30

// PurgeBackups removes the lines of the documents with these ids from every backup in backups/, by rewriting the
// backup. section is the index section of the documents' kind, and file returns the path of a document's file in a
// store. PurgeBackups writes in target.Dir, a folder on the same file system that no other process uses. The LSNs and
// the time in a backup stay the same.
//
// Some backups cannot be rewritten, because they are damaged or belong to another store. PurgeBackups removes such a
// backup if it has a line of one of these documents. A damaged backup is also removed if it may have had such a line.
// PurgeBackups may be interrupted at any point and repeated.
func PurgeBackups(dir string, target Target, section int, ids []string, file func(id string) string) (r PurgedBackups,
	err error) {
	list, err := Backups(target.FS, dir)
	if err != nil {
		return r, err
	}
	for _, b := range list {
		if err := r.backup(dir, target, b, section, ids, file); err != nil {
			return r, err
		}
	}
	if len(r.Removed) > 0 {
		err = target.FS.SyncDir(filepath.Join(dir, BackupsDir))
	}
	return r, err
}

func (r *PurgedBackups) backup(dir string, to Target, b Backup, section int, ids []string,
	file func(id string) string) error {
	path := filepath.Join(dir, filepath.FromSlash(b.Name))
	old, err := vfs.Doom(to.FS, path, filepath.Join(filepath.Dir(to.Temp), filepath.Base(path)+docfile.DoomedSuffix), true)
	if err != nil {
		return err
	}
	changed, err := purgeBackup(dir, to, b, section, ids)
	if err == nil && changed { // otherwise the name would lead to zeros after a loss of power
		err = to.FS.SyncDir(filepath.Join(dir, BackupsDir))
	}
	if err != nil && !errors.Is(err, errs.ErrCorrupt) {
		return errors.Join(err, old.Close())
	}
	ino := old.Named()
	left, werr := old.Wipe()
	if changed && ino != 0 {
		r.Unwiped = append(r.Unwiped, &vfs.UnwipedError{Path: path, Ino: ino, Err: vfs.ErrLinked})
	}
	switch {
	case errors.Is(err, errs.ErrCorrupt):
		return errors.Join(werr, r.unusable(dir, to.FS, b, ids, file))
	case werr != nil:
		return werr
	}
	if changed {
		r.Rewritten = append(r.Rewritten, b.Name)
	}
	if changed && left {
		r.Unlinked = append(r.Unlinked, b.Name)
	}
	return nil
}

// unusable searches the bytes of a backup that cannot be read as an index of this store. It removes the backup if the
// backup contains data of the documents with these ids, or if the backup is damaged and may have contained such data.
func (r *PurgedBackups) unusable(dir string, fsys vfs.FS, b Backup, ids []string, file func(id string) string) error {
	path := filepath.Join(dir, filepath.FromSlash(b.Name))
	all, err := vfs.ReadFile(fsys, path, backupMost)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(bytes.Trim(all, "\x00")) == 0 { // an earlier purge was interrupted while overwriting it
		r.Removed = append(r.Removed, b.Name)
		return fsys.Remove(path)
	}
	gone := &r.Removed
	if !slices.ContainsFunc(ids, func(id string) bool {
		key := jsondoc.AppendEscaped([]byte("\n\""), id)
		return bytes.Contains(all, append(key, `":`...)) ||
			bytes.Contains(all, append(jsondoc.AppendEscaped([]byte(`"`), file(id)), '"')) ||
			bytes.Contains(all, append(key, `\u0000`...)) // a pair
	}) {
		if isIntact(fsys, dir, b) {
			return nil
		}
		gone = &r.Unread // no index can be read from it
	}
	left, err := vfs.WipeUnmapped(fsys, path)
	if err := vfs.Unwiped(&r.Unwiped, err); err != nil {
		return err
	}
	if *gone = append(*gone, b.Name); left {
		r.Unlinked = append(r.Unlinked, b.Name)
	}
	return nil
}

// isIntact reports whether a backup is an undamaged index file, of this store or another.
func isIntact(fsys vfs.FS, dir string, b Backup) bool {
	t, err := table.Open(fsys, dir, filepath.FromSlash(b.Name), Schema())
	if err != nil {
		return false
	}
	for cerr := range t.Check() {
		err = cerr
	}
	return t.Release() == nil && err == nil
}

// DropBackups removes the backups of the index that have lines of the documents with these ids. If the documents are
// memories, it also removes the backups in which an assembly has one of them as a member. section is the index section
// of the documents' kind. DropBackups is for a disk that has no room to rewrite the backups; it may remove them,
// because the index does not need them. unlinked are the names of removed backups that were not overwritten, because a
// process has them mapped or this is unknown, or because of another hard link or permissions. A process may have the
// newest backup mapped, because that file was the base until just before.
func DropBackups(fsys vfs.FS, dir, store string, section int, ids []string) (dropped, unlinked []string, err error) {
	list, err := Backups(fsys, dir)
	if err != nil {
		return nil, nil, err
	}
	for _, b := range list {
		set, err := OpenBackup(fsys, dir, b, store)
		if err != nil {
			continue // PurgeBackups handles it
		}
		ch, _ := purging(set, section, b.LSN-1, ids) // on an error PurgeBackups handles it
		if err := set.Release(); err != nil {
			return dropped, unlinked, err
		}
		if len(ch.List) == 0 {
			continue
		}
		left, err := vfs.WipeUnmapped(fsys, filepath.Join(dir, filepath.FromSlash(b.Name)))
		var unwiped []error
		if err := vfs.Unwiped(&unwiped, err); err != nil {
			return dropped, unlinked, err
		}
		if dropped = append(dropped, b.Name); left || len(unwiped) > 0 {
			unlinked = append(unlinked, b.Name)
		}
	}
	if len(dropped) > 0 {
		err = fsys.SyncDir(filepath.Join(dir, BackupsDir))
	}
	return dropped, unlinked, err
}

func purgeBackup(dir string, to Target, b Backup, section int, ids []string) (changed bool, err error) {
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
	ch, err := purging(set, section, b.LSN-1, ids)
	if err != nil || len(ch.List) == 0 {
		return false, err
	}
	to.LSN, to.Now, to.Backup = b.LSN, set.Base().Meta().Updated, false
	to.Chain, _ = Chain(set)
	if _, err := WriteBase(set, to, ch); err != nil {
		return false, err
	}
	return true, to.FS.Rename(filepath.Join(to.Dir, BaseName), filepath.Join(dir, filepath.FromSlash(b.Name)))
}

// purging returns the changes to the index set that remove all data of the documents with these ids. version becomes
// the version of the deletions.
func purging(set *Set, section int, version uint64, ids []string) (ch Changes, err error) {
	for _, id := range ids {
		_, ok, err := set.Get(nil, section, id)
		if err != nil {
			return ch, err
		}
		if ok {
			ch.List = append(ch.List, Change{Section: section, ID: id, Version: version, Deleted: true})
		}
	}
	if section == Memories {
		err = ch.removeMembers(set, ids)
	}
	return ch, err
}

// passing reports whether err is a temporary failure to read a file, as opposed to damage.
func passing(err error) bool {
	var pe *fs.PathError
	return !errors.Is(err, errs.ErrCorrupt) && errors.As(err, &pe)
}
