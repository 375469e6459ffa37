package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/purgefile"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/worklog"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/wal/past"
)

// RestoreSource has the parameters of Restore.
type RestoreSource struct {
	FS         vfs.FS
	Backup     string        // folder of the backup, or the packed file
	Unseal     repair.Unseal // opens a sealed backup; nil: no identity is known
	Dir        string        // folder of the new store: missing or empty
	FileMode   fs.FileMode
	FolderMode fs.FileMode
	Self       vfs.Users
	Random     func([]byte) error

	// The restored moment: LSN includes every commit up to that version, and Time every commit up to the last one
	// whose time is not later. If LSN and Time are zero, the moment is the end of the backup.
	LSN  uint64
	Time time.Time

	// The log of the store that was backed up, if that store still exists: the log continues where the backup's log
	// ends. nil: the store does not exist.
	Living *past.Log
	To     wal.LSN // position up to which the living log is durable
	// Has reports whether the living store has a document now, expired or not.
	Has func(letter byte, id string) (bool, error)

	// Purges are the purges that the living store has recorded.
	Purges []purgefile.Row
	// WithPurged means that purged documents are restored too.
	WithPurged bool

	Features wal.Features // features of the living store; 0 if there is no living store
	Known    wal.Features // features that the new store may have, besides those that package wal knows

	Strict   bool // damage of the backup is an error
	Progress func(done, total int64)
	// Files are written to the folder in addition to the documents; "config.json" only if the
	// backup has none.
	Files map[string][]byte
	// Open opens the folder as a store, while the folder still has its temporary name, and verifies the store.
	Open func(ctx context.Context, dir string, as *Restored) error
}

// versionMargin is the distance between the versions of a restored store and the newest known version of the old
// store. A program may still have a version of the old store, and that version must not match a version of the
// restored store. The old store may have continued, and used more versions than the backup has.
const versionMargin = 1 << 40

// Restore creates a new store from a backup, as of a moment. The moment must be after the position from which the
// backup is complete. The log, first that of the backup and then that of the store that was backed up, must be
// unbroken up to the moment. Otherwise the error is a *MomentError or a *errs.TruncatedError.
//
// The folder gets its name only when it is complete and verified.
func Restore(ctx context.Context, s RestoreSource) (report repair.RestoreReport, err error) {
	from, err := open(s.FS, s.Backup, s.Unseal)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, from.close()) }()
	r := &restore{s: s, from: from}
	for _, err := range from.damage() {
		if s.Strict {
			return report, err
		}
		r.noteDamage(damagedLog(err), reason(err), "all files in the readable part of the list were read")
	}
	if err := r.readInfo(ctx); err != nil {
		return report, err
	}
	if err := r.room(from); err != nil {
		return report, err
	}
	features, err := featuresOf(&r.info)
	if err != nil {
		return report, damagedBackup(repair.BackupName, err)
	}
	features = (features | s.Features) &^ notCopied
	if err := features.Lacking(s.Known|wal.KnownFeatures, s.Backup, false); err != nil {
		return report, err
	}
	r.features, r.restored.SegmentSize = features, r.info.SegmentSize
	if err := r.choose(ctx); err != nil {
		return report, err
	}
	r.n, err = makeFolder(target{
		fs: s.FS, dir: s.Dir, source: s.Backup, kind: kindRestore, store: r.info.Store, file: s.FileMode,
		folder: s.FolderMode, self: s.Self, random: s.Random,
	})
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, r.n.close()) }()
	if err = r.run(ctx); err != nil {
		err = fmt.Errorf("restoring to %s: %w", s.Dir, errors.Join(err, r.n.discard()))
	} else {
		r.report.Damaged = append(r.report.Damaged, r.info.Damaged...)
		r.report.Left = r.n.left
		report = r.report
	}
	return report, err
}

type restore struct {
	s    RestoreSource
	from vfs.FS // file system in which the files of the backup are read
	info repair.BackupInfo
	n    *newFolder

	features wal.Features // features of the new store

	newest map[string]changed         // the newest entry of each key in the log up to the moment
	names  map[string]bool            // paths of the files of these keys, including the folder
	scopes map[string]*worklog.Replay // scopes of working memory that have entries in the log, by path of the file
	past   []stretch
	mended *past.Log        // the log of the backup, repaired as far as possible; nil: no repair was needed
	holed  bool             // mended has gaps
	cause  error            // the error of the holes, until one is reported
	fresh  map[string]bool  // files that are newer than the entries in a log with holes
	lost   map[string]*lost // files that must be restored from another source, by path

	restored Restored
	writers  *writers
	gone     *purgefile.Table // the purges that the backup or the living store has recorded
	purged   bool             // the living store's log has frames up to the moment that a purge erased
	deleted  map[string]bool  // keys that the living store deleted after the moment; nil: not read yet

	until  wal.LSN // version that corresponds to the requested time; 0: the log has no commit that early
	end    wal.LSN // position after the last commit that is restored
	report repair.RestoreReport
}

type changed struct {
	lsn     wal.LSN
	deleted bool
}

func (r *restore) requestedMoment() string {
	switch {
	case r.s.LSN != 0:
		return fmt.Sprintf("LSN %d", r.s.LSN)
	case !r.s.Time.IsZero():
		return r.s.Time.Format(time.RFC3339Nano)
	}
	return "the end of the backup"
}

func (r *restore) impossible(reason string) error {
	return &repair.MomentError{Asked: r.requestedMoment(), First: r.info.First, Last: r.info.Last, Why: reason}
}

// included reports whether a commit whose last entry is e belongs to the state that is restored.
func (r *restore) included(e *wal.Entry) bool {
	switch {
	case r.s.LSN != 0:
		return e.LSN <= r.s.LSN
	case !r.s.Time.IsZero():
		return e.LSN <= r.until
	}
	return true
}

// last sets r.until to the version of the last commit in the logs whose time is not after the requested time.
func (r *restore) last(ctx context.Context) error {
	for _, part := range r.past {
		at, err := part.past.Until(ctx, part.from, r.s.Time, part.to)
		if err != nil {
			return fmt.Errorf("reading the log up to %s: %w", r.requestedMoment(), err)
		}
		r.until = max(r.until, at)
	}
	return nil
}

// choose reads the log up to the restored moment, and records the position of the newest version of each document.
func (r *restore) choose(ctx context.Context) error {
	from, err := markAt(r.info.From)
	if err != nil {
		return damagedBackup(repair.BackupName, err)
	}
	end, err := markAt(r.info.End)
	if err != nil {
		return damagedBackup(repair.BackupName, err)
	}
	if r.s.LSN != 0 && r.s.LSN < r.info.First.LSN {
		return r.impossible("the backup is complete only from a later moment on; use an older backup")
	}
	own, err := r.log(ctx, from, end)
	if err != nil {
		return err
	}
	r.past = []stretch{own}
	last := end.LSN
	if l := r.s.Living; l != nil && r.s.To > end.LSN {
		if l.Geometry != geometryOf(&r.info) {
			return fmt.Errorf("%w: the log does not belong to the store that was backed up", errs.ErrInvalid)
		}
		if m, err := l.Chain(ctx, end.LSN); err != nil || m != end {
			if err == nil || errors.Is(err, errs.ErrNotFound) {
				err = fmt.Errorf("%w: the log diverged after the backup", errs.ErrInvalid)
			}
			return fmt.Errorf("continuing in the log of the store at position %d, the end of the backup: %w", end.LSN,
				err)
		}
		r.past = append(r.past, stretch{l, end, r.s.To})
		last = r.s.To
	}
	if !r.s.Time.IsZero() {
		if err := r.last(ctx); err != nil {
			return err
		}
		// If the log has no commit that early, the moment can only be the first one.
		if r.until == 0 && r.s.Time.Before(r.info.First.Time) {
			return r.impossible("the backup is complete only from a later moment on; use an older backup")
		}
	}
	if err := errors.Join(r.readWriters(), r.readPurges()); err != nil {
		return err
	}
	r.newest, r.names, r.scopes = map[string]changed{}, map[string]bool{}, map[string]*worklog.Replay{}
	if m := r.info.Models; m != nil {
		r.restored.Model, r.restored.Later = m.From, m.End
	}
	r.report.Moment = r.info.First
	r.end = r.info.Whole
	done, err := r.follow(ctx)
	if err == nil {
		err = r.lookForPurges(ctx)
	}
	r.unmet()
	r.leaveOut()
	switch {
	case err != nil:
		return err
	case r.s.Living == nil && r.s.Time.After(r.info.Until): // a later commit may have this time
		return r.impossible("the moment is after the end of the backup; the log of the store may reach this moment")
	case done:
		return nil
	case r.s.Living != nil && r.s.LSN == 0:
		return nil // nothing is written yet after the log's end
	case r.s.LSN > last:
		return r.impossible("the log that was read ends before this position; the log of the store may reach the " +
			"position by now")
	}
	return nil
}

// follow applies the commits of the log, in order, up to the restored moment. done reports whether follow reached
// a commit after that moment.
func (r *restore) follow(ctx context.Context) (done bool, err error) {
	var batch []wal.Entry
	for _, part := range r.past {
		for e, err := range part.past.Entries(ctx, part.from, part.to) {
			if r.passed(err) {
				continue
			}
			if r.isLater(err) {
				return true, nil
			}
			if err != nil {
				return false, fmt.Errorf("reading the log up to %s: %w", r.requestedMoment(), err)
			}
			switch _, err := state.Check(&e); {
			case errors.Is(err, state.ErrEntry): // state ignores such an entry too
				e.Key, e.Kind, e.Value = "", 0, nil
			case e.Kind == record.KindModel:
				e.Value = slices.Clone(e.Value)
			case e.Kind == record.KindWriter:
				if err := r.writers.explain(&e); err != nil {
					return false, err
				}
				e.Value = nil
			default:
				e.Value = nil
			}
			batch = append(batch, e)
			if e.More {
				continue
			}
			if !r.included(&e) {
				if batch[0].LSN < r.info.Whole {
					return true, r.impossible("the backup is complete only from a later moment on; use an older backup")
				}
				return true, nil
			}
			for i := range batch {
				if batch[i].Kind == record.KindModel {
					if err := r.takeModel(&batch[i]); err != nil {
						return false, err
					}
					continue
				}
				r.take(&batch[i])
			}
			r.report.Moment, r.end = repair.Moment{LSN: e.LSN, Time: e.Reading}, max(r.end, e.LSN+e.Size)
			batch = batch[:0]
		}
	}
	return false, nil
}

func (r *restore) take(e *wal.Entry) {
	name, ok := backupFile(e.Key)
	if !ok {
		r.takeWork(e)
		return
	}
	if r.newerFile(name) {
		return
	}
	r.newest[e.Key] = changed{e.LSN, e.Delete}
	r.names[name] = true
}

func (r *restore) run(ctx context.Context) error {
	for _, folder := range kind.FoldersOf(r.features) {
		if err := r.n.fs.Mkdir(r.n.path(folder), r.n.folder); err != nil {
			return err
		}
	}
	if err := r.files(ctx); err != nil {
		return err
	}
	if err := r.heal(ctx); err != nil {
		return err
	}
	if err := r.fromLog(ctx); err != nil {
		return err
	}
	if err := r.nothingLeft(); err != nil {
		return err
	}
	if err := r.computed(ctx); err != nil {
		return err
	}
	if r.n.barrier != nil {
		if err := r.n.barrier.Sync(); err != nil {
			return fmt.Errorf("%w: %w", errs.ErrSyncFailed, err)
		}
	}
	for _, folder := range append(kind.FoldersOf(r.features), r.n.inners()...) {
		if err := r.n.fs.SyncDir(r.n.path(folder)); err != nil {
			return fmt.Errorf("%w: %w", errs.ErrSyncFailed, err)
		}
	}
	if len(r.info.Config) > 0 {
		r.s.Files["config.json"] = append(append([]byte(nil), r.info.Config...), '\n')
	}
	for _, name := range []string{"config.json", ".gitignore"} {
		if data, ok := r.s.Files[name]; ok {
			if err := vfs.WriteDurable(r.n.fs, r.n.path(name+".new"), r.n.path(name), data, r.n.mode); err != nil {
				return err
			}
		}
	}
	above := max(r.info.End.LSN, r.s.To) + versionMargin
	if err := wal.BeginAbove(r.n.fs, r.n.part, above, geometryOf(&r.info), r.features, r.n.mode); err != nil {
		return err
	}
	r.restored.Purges = r.gone.Sorted()
	r.restored.Writers, r.restored.by = r.writers.numbered()
	slices.Sort(r.restored.older)
	r.restored.Settled = r.restored.settled()
	if err := r.s.Open(ctx, r.n.part, &r.restored); err != nil {
		return err
	}
	return r.n.finish("", nil)
}

// files copies the documents that did not change between the backup and the restored moment.
func (r *restore) files(ctx context.Context) error {
	n := int64(0)
	list, err := r.list(ctx)
	if err != nil {
		return err
	}
	for f, err := range list {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if n++; r.s.Progress != nil && n%HeldEvery == 0 {
			r.s.Progress(n, filesOf(&r.info)+int64(len(r.newest)))
		}
		if r.names[f.name] {
			continue
		}
		data, info, err := f.read(r.from, r.s.Backup)
		if err == nil && r.purged && !r.s.WithPurged {
			switch gone, err := r.wasPurged(ctx, f.name, data); {
			case err != nil:
				return fmt.Errorf("searching the store for purged documents: %w", err)
			case gone:
				r.report.Purged++
				continue
			}
		}
		if r.tolerated(err) {
			err = r.spoilt(ctx, f, err)
		} else if err == nil {
			err = r.deliver(f, data, info.Mtime, 0, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fromLog writes the documents that changed between the backup and the restored moment, from the log.
func (r *restore) fromLog(ctx context.Context) error {
	var codec record.Codec
	for _, part := range r.past {
		codec.Bound(part.past.Geometry.Limit())
		for e, err := range part.past.Entries(ctx, part.from, min(part.to, r.end)) {
			if err != nil && r.holed && ctx.Err() == nil {
				continue // follow has reported it
			}
			if err != nil {
				return err
			}
			if err := r.playWork(&codec, &e); err != nil {
				return fmt.Errorf("entry %d: %w", e.LSN, err)
			}
			c, ok := r.newest[e.Key]
			if !ok || c.lsn != e.LSN || c.deleted {
				continue
			}
			line, _, err := state.LineIn(&e)
			if err != nil {
				return err
			}
			doc, _, err := state.DocumentIn(&codec, &e, places.DocumentMost)
			if err != nil {
				return err
			}
			name, _ := backupFile(e.Key)
			r.note(name, false, e.LSN, line.VectorNumber())
			r.writers.wrote(name, e.Writer, e.LSN)
			if err := r.put(name, doc, e.Time); err != nil {
				return err
			}
			r.report.FromLog++
		}
	}
	return r.putScopes()
}

func (r *restore) put(name string, data []byte, mtime time.Time) error {
	if folder, _, _ := strings.Cut(name, "/"); folder == kind.Scopes.Folder {
		r.report.Scopes++
	} else {
		counted(folder, 1, &r.report.Memories, &r.report.Assemblies, &r.report.Others)
	}
	r.report.Bytes += int64(len(data))
	return r.n.write(filepath.FromSlash(name), data, mtime)
}
