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

// These types describe backups, their contents and restores; they are declared in internal/copy/backup.
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
// use it: every memory, and the log from the start of the backup to its end, so that each moment between the two can be
// restored. The folder gets its name only after everything in it is durable and was read back. If more log accumulates
// meanwhile than the store's budget allows (1 GiB), the backup fails with ErrLimit. The backup of a store that was
// opened read-only does not keep the log from being released: while other processes write, it may fail.
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
		return BackupInfo{}, fmt.Errorf("a backup must first flush the store: %w", err)
	}
	source.Config = func() []byte {
		b, err := vfs.ReadFile(st.inner.Engine.Env().FS, filepath.Join(st.inner.Engine.Env().Dir, settings.Name),
			settings.Limit)
		if err != nil {
			st.inner.Engine.Env().Logger.Warn("config.json cannot be read and is not in the backup", "err", err)
			return nil
		}
		return b
	}
	switch {
	case o.Seal != nil && !o.Packed && o.Output == nil:
		return BackupInfo{}, &errs.FieldError{Field: "Seal", Err: fmt.Errorf("only a packed backup is sealed: %w",
			errs.ErrInvalid)}
	case o.Output == nil:
		if dir, err = target(dir); err != nil {
			return BackupInfo{}, err
		}
	}
	info, err := backup.Backup(ctx, source, dir, o)
	return info, st.inner.Engine.Env().Explain(err)
}

// mostRecord is the largest size, in bytes, of the file describing a backup that LastBackup reads.
const mostRecord = 1 << 20

// LastBackup returns when the newest backup in the folder backups/ of the store was made, as its record says, or for a
// packed backup the time of its file; the zero time if there is none. The store does not know backups that are
// elsewhere.
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
		return fmt.Errorf("%d redacted versions are not overwritten yet, and a backup would copy them: %w", len(rows), err)
	}
	return nil
}

// CheckBackup reads a backup, a folder or a packed file, from end to end. It returns all faults that it finds, joined;
// each is a *CorruptionError.
func CheckBackup(ctx context.Context, dir string) (BackupInfo, error) {
	return CheckSealedBackup(ctx, dir, nil)
}

// CheckSealedBackup is like CheckBackup, for a backup that may be sealed (BackupOptions.Seal). unseal opens a sealed
// one.
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
	// reads the log and the archive of that store, up to the requested moment or to the end of the log. The folder is only
	// read.
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

// Restore creates a new store from a backup, in a folder that is missing or empty. The new store
// has its own UUID and its memories have new versions. The requested moment must be between the
// time at which the backup was complete and the end of its log, or of the log of the living store;
// otherwise the error is a *MomentError, or a *TruncatedError if the log has a hole before the
// moment.
func Restore(ctx context.Context, from, dir string, o *RestoreOptions) (RestoreReport, error) {
	if o == nil {
		o = new(RestoreOptions)
	}
	if o.Version != 0 && !o.Time.IsZero() {
		return RestoreReport{}, &errs.FieldError{Field: "Version and Time",
			Err: fmt.Errorf("set at most one of them: %w", errs.ErrInvalid)}
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

// openRestored opens a restored store, whereby its index and log are created, and verifies everything in it.
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
