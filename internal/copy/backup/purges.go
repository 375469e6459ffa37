package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/purgefile"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// A purge lasts: a backup records what its store has purged, and a restore omits what the backup or the
// living store names as purged, whatever the moment.

// purgesMost is the maximum size of files.purges that is read.
const purgesMost = 1 << 30

// purges writes files.purges, the list of the purges that the store has recorded, without those of this store at or
// after the log position end. If a document was purged after it was copied, the backup has the document, so the list
// must have that purge too.
func (b *backup) purges(end wal.LSN) error {
	list, err := b.s.Purges()
	if err != nil {
		return err
	}
	own := b.s.Log.UUID()
	list = slices.DeleteFunc(slices.Clone(list), func(r purgefile.Row) bool { return r.Store == own && r.Since >= end })
	if len(list) == 0 {
		return nil
	}
	rows, err := purgefile.Rows(list)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(rows)
	b.info.Purges = hex.EncodeToString(sum[:])
	return b.f.file(backupPurges, rows)
}

// purgesIn reads files.purges of a backup. If the file is damaged, purgesIn returns the rows with a correct checksum
// together with the error.
func purgesIn(fsys vfs.FS, dir string, info *repair.BackupInfo) (c purgefile.Content, err error) {
	c.Rows = new(purgefile.Table)
	if info.Purges == "" {
		return c, nil
	}
	b, err := vfs.ReadFile(fsys, filepath.Join(dir, backupPurges), purgesMost)
	switch {
	case errors.Is(err, fs.ErrNotExist) || notAFile(err):
		return c, damagedBackup(backupPurges, err)
	case err != nil:
		return c, err
	}
	purgefile.ReadRows(b, &c)
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != info.Purges || len(c.Damaged) > 0 {
		return c, damagedBackup(backupPurges, errors.New("the content differs from what was backed up"))
	}
	return c, nil
}

// checkPurges verifies files.purges.
func checkPurges(fsys vfs.FS, dir string, info *repair.BackupInfo) error {
	_, err := purgesIn(fsys, dir, info)
	return err
}

// readPurges collects the purges that are recorded in the backup and in the store that was backed up.
func (r *restore) readPurges() error {
	r.gone = new(purgefile.Table)
	c, err := purgesIn(r.from, r.s.Backup, &r.info)
	if r.tolerated(err) {
		r.noteDamage(backupPurges, reason(err), "texts may have been restored although they were purged: the "+
			"damaged part records such purges")
		err = nil
	}
	if err != nil {
		return err
	}
	for _, row := range c.Rows.All() {
		r.gone.Add(row)
	}
	for _, row := range r.s.Purges {
		r.gone.Add(row)
	}
	return nil
}

// purges reports whether the restore must omit documents because of a purge.
func (r *restore) purges() bool { return !r.s.WithPurged && len(r.gone.All()) > 0 }

// leaveOut removes purged documents from the documents found in the logs.
func (r *restore) leaveOut() {
	if !r.purges() {
		return
	}
	for key, c := range r.newest {
		if !c.deleted && r.gone.Hides(key, c.lsn) {
			r.newest[key] = changed{c.lsn, true}
			r.report.Purged++
		}
	}
}

// hidden reports whether the file called name in the backup has purged content. It is called for files that no entry
// of the logs has changed.
func (r *restore) hidden(name string, data []byte) bool {
	k := kind.At(name)
	if k == nil || !k.IsDocument(k.Below(name)) || !r.purges() {
		return false
	}
	id := k.IDAt(k.Below(name))
	c, err := k.Decode(slices.Clone(data), kind.DecodeOptions{Limits: kind.StoredLimits, ID: id})
	if err == nil {
		id = c.ID
	}
	return r.gone.HidesAt(k.Key(id), r.info.From.LSN)
}
