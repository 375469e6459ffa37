package varve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/copy/backup"
	"github.com/varve-db/varve/internal/copy/migrate"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
)

// These types describe the result of a migration, and the error of an unfinished one; they are declared in
// internal/copy/migrate.
type (
	MigrateReport   = repair.MigrateReport
	UnfinishedError = repair.UnfinishedError
)

// MigrateOptions are the settings of Migrate. The zero value copies the store, while other
// processes use it, and compares the copy.
type MigrateOptions struct {
	// Switch makes the new folder the store, provided that no other process has the old one open.
	Switch bool
	// RemoveSource empties the old folder after the switch and a second verification of the new one. Files that do not
	// belong to the store, or that were changed after they were copied, are kept, and so is a note that names the new
	// folder.
	RemoveSource bool
	// Options are the options with which both stores are opened; ReadOnly and MustExist are ignored. If they have no
	// modes, the new folder gets those of the old one.
	Options *Options
	// Progress is called from time to time with the name of the step, the amount done and the
	// total, which may grow.
	Progress func(step string, done, total int64)
}

// Migrate copies a store to another folder. This folder must be missing, empty, or left by an earlier call. Migrate may
// be interrupted at any point; another call continues the migration. The store keeps its UUID and its versions. At the
// end Migrate switches from the old folder to the new one. Before the switch the new folder is not a store. After the
// switch, opening the old folder returns a *MovedError. If other processes have the store open at the switch, the error
// is ErrLocked and names them. ErrInvalid means that the folder is not suitable. ErrDiskFull names the space that is
// missing.
func Migrate(ctx context.Context, from, to string, o *MigrateOptions) (MigrateReport, error) {
	if o == nil {
		o = new(MigrateOptions)
	}
	var opt Options
	if o.Options != nil {
		opt = *o.Options
	}
	if err := opt.Validate(); err != nil {
		return MigrateReport{}, err
	}
	from, ferr := filepath.Abs(from)
	to, terr := filepath.Abs(to)
	if err := errors.Join(ferr, terr); err != nil {
		return MigrateReport{}, fmt.Errorf("finding the current folder: %w", err)
	}
	opt.ReadOnly, opt.MustExist, opt.NoBackground = false, true, true
	opt.keepModes(from)
	filled := opt
	filled.fill()
	own := filled.environment(from)
	look := opt
	look.ReadOnly = true
	r, err := migrate.Run(ctx, migrate.Source{
		FS: vfs.Patient(vfs.Only(filled.env.System.FS, filled.StateDir, from, to), filled.LockWait), From: from, To: to,
		FileMode: filled.FileMode, FolderMode: filled.FolderMode,
		Known: wal.Features(filled.env.System.Features), LockWait: filled.LockWait, Clock: filled.Clock, Random: own.Random,
		Self: own.Self, Ignore: engine.IgnoreMoves,
		Switch: o.Switch, RemoveSource: o.RemoveSource, Progress: o.Progress,
		Open: func(ctx context.Context) (backup.Source, func() error, error) {
			st, err := Open(ctx, from, &opt)
			if err != nil {
				return backup.Source{}, nil, err
			}
			s, err := st.inner.Copied(ctx, false)
			if err != nil {
				return backup.Source{}, nil, errors.Join(err, st.Close())
			}
			return s, st.Close, nil
		},
		Processes: func(ctx context.Context) []wal.Attached {
			st, err := Open(ctx, from, &look)
			if err != nil {
				return nil
			}
			defer func() { _ = st.Close() }()
			return st.inner.Engine.Log().Processes().All()
		},
		Sound: func(ctx context.Context) error {
			whole := look
			whole.unfinished = true
			return sound(ctx, from, to, &whole)
		},
	})
	if err != nil {
		place := to
		if pe := (*fs.PathError)(nil); errors.As(err, &pe) &&
			(pe.Path == from || strings.HasPrefix(pe.Path, from+string(filepath.Separator))) {
			place = from
		}
		err = fmt.Errorf("moving the store %s to %s: %w", from, to, filled.environment(place).Explain(err))
	}
	return r, err
}

// keepModes sets FileMode and FolderMode, where they are 0, to the modes of config.json and memories/ in the
// existing store at dir.
func (o *Options) keepModes(dir string) {
	filled := *o
	filled.fill()
	file, ferr := filled.env.System.FS.Stat(filepath.Join(dir, settings.Name))
	folder, derr := filled.env.System.FS.Stat(filepath.Join(dir, kind.Memories.Folder))
	kept := *o
	if ferr == nil && o.FileMode == 0 {
		kept.FileMode = file.Mode.Perm()
	}
	if derr == nil && o.FolderMode == 0 {
		kept.FolderMode = folder.Mode.Perm()
	}
	if kept.Validate() == nil {
		*o = kept
	}
}

// sound opens the store in dir, verifies everything in it and closes it. It returns the first fault as an
// error, with a remedy that names from, the store to be repaired.
func sound(ctx context.Context, from, dir string, o *Options) error {
	st, err := Open(ctx, dir, o)
	if err != nil {
		return err
	}
	workers := 0
	if o.env.System.Inline {
		workers = 1
	}
	for f, ferr := range st.Admin().Verify(ctx, VerifyOptions{Workers: workers}) {
		switch {
		case ferr != nil:
			err = ferr
		case f.Severity == SeverityInfo || f.Kind == repair.Leftover || f.Kind == repair.Foreign:
		case err == nil:
			err = fmt.Errorf("the store is damaged: %s: %w: repair the store before moving it: memctl --store %s "+
				"repair --apply",
				f.String(), errors.Join(f.Err, errs.ErrCorrupt), from)
		}
	}
	return errors.Join(err, st.Close())
}
