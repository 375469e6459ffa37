package varve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/varve-db/varve/internal/copy"
	"github.com/varve-db/varve/internal/migrate"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

// Of migrations; see internal/migrate.
type (
	MigrateReport   = repair.MigrateReport
	UnfinishedError = repair.UnfinishedError
)

// MigrateOptions say how far a migration goes. The zero value copies, while
// everybody goes on using the store, and compares.
type MigrateOptions struct {
	// Switch makes the new folder the store, when nobody else has the old one open.
	Switch bool
	// RemoveSource empties the old folder after that, once the new one was verified
	// again. A note stays, and what is not of the store, or not as it was copied.
	RemoveSource bool
	// Options of both; ReadOnly and MustExist do not count. Without modes in them the
	// new place has those of the old one.
	Options *Options
	// Progress hears now and then how much of how much of a step is done; total may grow.
	Progress func(step string, done, total int64)
}

// Migrate brings a store to another folder, which must not be there, or be
// empty, or hold what an earlier call has begun: it may end anywhere and goes on
// when it is called again. The store keeps its UUID and its versions. Until the
// switch the new folder is no store; after it opening the old one is a *MovedError.
// ErrLocked names who has the store open when it is to be switched; ErrInvalid
// is a folder that will not do; ErrDiskFull says what is missing.
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
	random := &Store{o: filled}
	look := opt
	look.ReadOnly = true
	r, err := migrate.Run(ctx, migrate.Source{
		FS: vfs.Below(vfs.Below(filled.System.FS, from), to), From: from, To: to, FileMode: filled.FileMode, FolderMode: filled.FolderMode,
		LockWait: filled.LockWait, Clock: filled.Clock, Random: random.random, StateDir: filled.StateDir, Ignore: ignoreMoves,
		Switch: o.Switch, RemoveSource: o.RemoveSource, Progress: o.Progress,
		Open: func(ctx context.Context) (copy.Source, func() error, error) {
			st, err := Open(ctx, from, &opt)
			if err != nil {
				return copy.Source{}, nil, err
			}
			s, err := st.copied(ctx)
			if err != nil {
				return copy.Source{}, nil, errors.Join(err, st.Close())
			}
			return s, st.Close, nil
		},
		Processes: func(ctx context.Context) []int {
			st, err := Open(ctx, from, &look)
			if err != nil {
				return nil
			}
			defer func() { _ = st.Close() }()
			return st.log.Processes()
		},
		Sound: func(ctx context.Context) error {
			whole := look
			whole.unfinished = true
			return sound(ctx, from, to, &whole)
		},
	})
	if err != nil {
		place := to
		if pe := (*fs.PathError)(nil); errors.As(err, &pe) && (pe.Path == from || strings.HasPrefix(pe.Path, from+string(filepath.Separator))) {
			place = from
		}
		err = fmt.Errorf("moving the store %s to %s: %w", from, to, (&Store{dir: place, fs: filled.System.FS, o: filled}).explain(err))
	}
	return r, err
}

// keepModes takes those of a store where none are asked for.
func (o *Options) keepModes(dir string) {
	filled := *o
	filled.fill()
	file, ferr := filled.System.FS.Stat(filepath.Join(dir, configName))
	folder, derr := filled.System.FS.Stat(filepath.Join(dir, "memories"))
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

// copied is this store as a copy of it is made; its files were just flushed.
func (st *Store) copied(ctx context.Context) (copy.Source, error) {
	if err := st.writable(); err != nil {
		return copy.Source{}, err
	}
	if err := st.flush(ctx, mergeFlush); err != nil {
		return copy.Source{}, err
	}
	live, err := st.Count(ctx)
	if err != nil {
		return copy.Source{}, err
	}
	ids := func(k *kind) func(context.Context) iter.Seq2[string, error] {
		return func(ctx context.Context) iter.Seq2[string, error] { return st.ids(ctx, k, filters{expired: true}) }
	}
	read := func(k *kind) func(context.Context, string) (copy.Document, error) {
		return func(ctx context.Context, id string) (copy.Document, error) {
			v, err := st.find(ctx, k, id, true)
			return copy.Document{Bytes: v.doc, Version: v.lsn, Vector: vectorNumber(&v.line), Time: timeOf(&v.line)}, err
		}
	}
	return copy.Source{
		FS: st.fs, Dir: st.dir, Log: st.log, FileMode: st.o.FileMode, FolderMode: st.o.FolderMode, Clock: st.o.Clock,
		Count: live, Sight: st.sight, ModelAsOf: st.state.ModelAsOf, Model: st.state.Model,
		IDs: ids(st.memories), Read: read(st.memories), AssemblyIDs: ids(st.assemblies), ReadAssembly: read(st.assemblies),
		ScopeKeys: st.scopeKeys, ReadScope: st.readScope,
	}, nil
}

// sound reads everything in a folder: each memory has its entry, of the version
// and with the hash that its file has, and there are as many.
func sound(ctx context.Context, from, dir string, o *Options) error {
	st, err := Open(ctx, dir, o)
	if err != nil {
		return err
	}
	workers := 0
	if o.System != nil && o.System.Inline {
		workers = 1
	}
	for f, ferr := range st.Verify(ctx, VerifyOptions{Workers: workers}) {
		switch {
		case ferr != nil:
			err = ferr
		case f.Severity == SeverityInfo || f.Kind == repair.Leftover || f.Kind == repair.Foreign:
		case err == nil:
			err = fmt.Errorf("it is not sound: %s: %w: heal the store before it is moved: memctl --store %s repair --apply", f.String(), errors.Join(f.Err, ErrCorrupt), from)
		}
	}
	return errors.Join(err, st.Close())
}

// residence refuses a folder whose store has gone elsewhere, or is still to come.
// The end of a migration whose switch has happened is made up for.
func (st *Store) residence() error {
	if st.o.unfinished {
		return nil
	}
	done, err := migrate.Residence(st.fs, st.dir)
	if err == nil && done != nil && !st.o.ReadOnly {
		err = done()
	}
	return st.explain(err)
}

// moved is what a read-only handle, which keeps nobody from moving the store, knows
// of that.
type moved struct {
	looked atomic.Int64 // when, in ns
	where  atomic.Pointer[MovedError]
}

// movedLook is how long such a handle may go on reading what the old place holds.
const movedLook = time.Second

// movedSince is a *MovedError when the store has gone elsewhere since it was opened.
func (st *Store) movedSince() error {
	if !st.o.ReadOnly || st.o.unfinished {
		return nil
	}
	m := &st.moved
	if gone := m.where.Load(); gone != nil {
		return gone
	}
	now := st.o.Clock().UnixNano()
	last := m.looked.Load()
	if d := now - last; d >= 0 && d < int64(movedLook) || !m.looked.CompareAndSwap(last, now) {
		return nil
	}
	var gone *MovedError
	if err := st.residence(); errors.As(err, &gone) {
		m.where.Store(gone)
		return gone
	}
	return nil
}
