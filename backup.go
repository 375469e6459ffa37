package varve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
	walpast "github.com/varve-db/varve/wal/past"
)

// These types describe backups, their contents and restores. They are declared in package repair.
type (
	BackupOptions = repair.BackupOptions
	BackupInfo    = repair.BackupInfo
	Moment        = repair.Moment
	RestoreReport = repair.RestoreReport
	Damage        = repair.Damage
	MomentError   = repair.MomentError
	Unseal        = repair.Unseal
)

// Backup copies the store into a new folder, or into one compressed file (BackupOptions.Packed), while other processes
// use the store. The backup contains every memory, and the log that was written between the start and the end of the
// backup. BackupInfo.First and BackupInfo.Last are the limits of the moments that can be restored. The folder gets its
// final name only after everything in it is durable and was read back. If more log accumulates during the backup than
// the store's budget allows (1 GiB), the backup fails with ErrLimit. If the store was opened read-only, other processes
// may release log that the backup needs, and the backup then fails.
func (st *Store) Backup(ctx context.Context, dir string, o BackupOptions) (BackupInfo, error) {
	if err := st.inner.Engine.BeginUse(); err != nil {
		return BackupInfo{}, err
	}
	defer st.inner.Engine.EndUse()
	if err := st.overwriteFirst(ctx); err != nil {
		return BackupInfo{}, err
	}
	source, err := st.inner.Copied(ctx, true)
	if err != nil {
		return BackupInfo{}, fmt.Errorf("flushing the store before the backup: %w", err)
	}
	source.Config = func() []byte {
		b, err := vfs.ReadFile(st.inner.Engine.Env().FS, filepath.Join(st.inner.Engine.Env().Dir, settings.Name),
			settings.Limit)
		if err != nil {
			st.inner.Engine.Env().Logger.Warn("config.json cannot be read, so the backup does not contain config.json",
				"err", err)
			return nil
		}
		return b
	}
	switch {
	case o.Seal != nil && !o.Packed && o.Output == nil:
		return BackupInfo{}, &errs.FieldError{Field: "Seal", Err: fmt.Errorf("a sealed (encrypted) backup must be "+
			"packed: set Packed or Output: %w", errs.ErrInvalid)}
	case o.Output == nil:
		if dir, err = target(dir); err != nil {
			return BackupInfo{}, err
		}
	}
	info, err := backup.Backup(ctx, source, dir, o)
	return info, st.inner.Engine.Env().Explain(err)
}

// mostRecord is the maximum size, in bytes, of a backup's description file. LastBackup ignores larger files.
const mostRecord = 1 << 20

// LastBackup returns the time of the newest backup in the store's folder backups/. This is the time that the backup's
// description names or, for a packed backup, the time of its file. LastBackup returns the zero time if the folder has
// no backup. The store does not know backups in other folders.
func (ad Admin) LastBackup() (newest time.Time) {
	e := ad.st.inner.Engine.Env()
	dir := filepath.Join(e.Dir, "backups")
	names, _ := e.FS.ReadDir(dir) // none, if the folder cannot be read
	for _, name := range names {
		at := filepath.Join(dir, name)
		if t := backup.PackedTime(e.FS, at); t.After(newest) {
			newest = t
		}
		b, err := vfs.ReadFile(e.FS, filepath.Join(at, repair.BackupName), mostRecord)
		var info BackupInfo
		if err == nil && json.Unmarshal(b, &info) == nil && info.Made.After(newest) {
			newest = info.Made
		}
	}
	return newest
}

// overwriteFirst overwrites the redacted versions whose bytes are still in the log, so that a backup does not copy
// them.
func (st *Store) overwriteFirst(ctx context.Context) error {
	rows, err := st.inner.Engine.ToOverwrite()
	if err != nil || len(rows) == 0 {
		return err
	}
	if err = st.inner.Engine.Writable(); err == nil {
		_, err = st.inner.Purger.Overwrite(ctx)
	}
	if err != nil {
		return fmt.Errorf("no backup was made, because it would copy the content of versions that are redacted but "+
			"not overwritten yet (number of versions: %d): %w", len(rows), err)
	}
	return nil
}

// CheckBackup reads a whole backup, a folder or a packed file. The error joins all faults that it finds; each of them
// is a *CorruptionError.
func CheckBackup(ctx context.Context, dir string) (BackupInfo, error) {
	return CheckSealedBackup(ctx, dir, nil)
}

// CheckSealedBackup is like CheckBackup, for a backup that may be sealed, that is, encrypted (see BackupOptions.Seal).
// unseal decrypts a sealed backup.
func CheckSealedBackup(ctx context.Context, dir string, unseal Unseal) (BackupInfo, error) {
	return backup.Check(ctx, vfs.Only(vfs.OS(), "", dir), dir, unseal, nil)
}

// RestoreOptions are the settings of Restore. The zero value restores everything in the backup.
type RestoreOptions struct {
	// Version restores everything committed at this position of the log (LSN) or before it. Time restores everything up
	// to the last commit whose clock time is not after it, including earlier commits that were made with the clock
	// ahead. At most one of them may be set.
	Version uint64
	Time    time.Time
	// Log is the folder of the store that was backed up, if it still exists. From the end of the backup on, the restore
	// reads the log and the archive of that store, up to the requested moment or to the end of the log. The folder is
	// only read.
	Log string
	// WithPurged also restores documents that were purged after the backup. Without it, a restore to any moment
	// omits everything that is purged according to the backup or to the store of Log.
	WithPurged bool
	// Unseal opens a sealed backup (BackupOptions.Seal).
	Unseal Unseal
	// Strict refuses a damaged backup. Otherwise the undamaged part is restored, and RestoreReport.Damage lists the
	// rest.
	Strict bool
	// Options are the options with which the new store is opened; ReadOnly and MustExist are ignored.
	Options *Options
	// Progress is called from time to time with the number of memories written so far, and the total number.
	Progress func(done, total int64)
}

// Restore creates a new store from a backup, in a folder that is missing or empty. The new store has its own UUID and
// its memories have new versions. The requested moment must not be before BackupInfo.First. It must not be after the
// end of the backup's log or, with RestoreOptions.Log, the end of that store's log. Otherwise the error is a
// *MomentError. If the log has a hole before the requested moment, the error is a *TruncatedError.
func Restore(ctx context.Context, from, dir string, o *RestoreOptions) (RestoreReport, error) {
	if o == nil {
		o = new(RestoreOptions)
	}
	if o.Version != 0 && !o.Time.IsZero() {
		return RestoreReport{}, &errs.FieldError{Field: "Version and Time",
			Err: fmt.Errorf("only one of the two may be set: %w", errs.ErrInvalid)}
	}
	var opt Options
	if o.Options != nil {
		opt = *o.Options
	}
	if err := opt.Validate(); err != nil {
		return RestoreReport{}, err
	}
	from, berr := absolute(from)
	dir, derr := target(dir)
	if err := errors.Join(berr, derr); err != nil {
		return RestoreReport{}, err
	}
	opt.fill()
	opt.ReadOnly, opt.MustExist, opt.NoBackground = false, false, true
	place := opt.environment(dir)
	s := backup.RestoreSource{
		Self: place.Self, Random: place.Random,
		FS: vfs.Patient(vfs.Only(opt.env.System.FS, opt.StateDir, from, dir), opt.LockWait), Backup: from, Dir: dir,
		Unseal:   o.Unseal,
		FileMode: opt.FileMode, FolderMode: opt.FolderMode,
		Known: wal.Features(opt.env.System.Features), LSN: o.Version, Time: o.Time, Strict: o.Strict, Progress: o.Progress,
		WithPurged: o.WithPurged,
		Files:      map[string][]byte{".gitignore": []byte(engine.Ignore)},
	}
	if o.Log != "" {
		past := opt
		past.ReadOnly = true
		living, err := Open(ctx, o.Log, &past)
		if err != nil {
			return RestoreReport{}, err
		}
		defer living.Close()
		s.Living, s.To = living.past()
		gone, err := living.inner.Engine.Purged()
		if err != nil {
			return RestoreReport{}, err
		}
		s.Purges = gone.Sorted()
		s.Features = living.inner.Engine.Log().Features()
		s.Has = func(letter byte, id string) (bool, error) {
			_, err := living.inner.Engine.State().Find(letter, id)
			if errors.Is(err, errs.ErrNotFound) {
				return false, nil
			}
			return err == nil, err
		}
	}
	s.Open = func(ctx context.Context, dir string, as *backup.Restored) error {
		opt := opt
		opt.restored, opt.SegmentSize = as, int(as.SegmentSize)
		return openRestored(ctx, dir, &opt)
	}
	report, err := backup.Restore(ctx, s)
	return report, place.ExplainWith(err, from)
}

// past returns a reader of the store's log that includes the archive, and the position up to which the log is durable.
func (st *Store) past() (*walpast.Log, wal.LSN) {
	return st.inner.Engine.Log().Past(), st.inner.Engine.Log().Durable()
}

// openRestored opens a restored store for the first time, verifies everything in it, and closes it. Opening creates
// the index and the log. The error is the first one that was found.
func openRestored(ctx context.Context, dir string, o *Options) error {
	st, err := Open(ctx, dir, o)
	if err != nil {
		return err
	}
	if err := st.inner.Embedding.Restore(ctx, o.restored); err != nil {
		return errors.Join(err, st.Close())
	}
	if err := st.inner.Vectors.Complete(ctx); err != nil { // no backup contains the vectors
		return errors.Join(err, st.Close())
	}
	for f, ferr := range st.Admin().Verify(ctx, VerifyOptions{}) {
		switch {
		case ferr != nil:
			err = ferr
		case f.Severity != SeverityInfo && err == nil:
			err = fmt.Errorf("the restored store is damaged: %s: %w", f.String(), errors.Join(f.Err, errs.ErrCorrupt))
		}
	}
	return errors.Join(err, st.Close())
}
