package offsite

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/copy/pack"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/wal/past"
)

// Target is the folder of the store that Materialize makes.
type Target struct {
	FS                   vfs.FS
	Dir                  string // missing or empty
	FileMode, FolderMode fs.FileMode
	Self                 vfs.Users    // whose folders may be filled
	Known                wal.Features // features that the program knows besides those of package wal
	Progress             func(done, total int64)
}

// Kind is the kind in the mark of a folder that is being filled.
const Kind = "clone"

// Moment is a moment of a copy.
type Moment struct {
	Epoch uint64
	Store uuid.UUID
	End   past.Mark // end of the last commit
	Time  time.Time // clock reading of that commit; zero: none since the snapshot
	Log   uint64    // epoch of the store's own log
}

// MomentError reports that a moment cannot be restored from a copy. It matches errs.ErrNotFound.
type MomentError struct {
	Place string
	At    time.Time // zero: the newest moment
	First time.Time // the first moment that can be restored, zero: none can
}

// Error returns the message, in one line.
func (e *MomentError) Error() string {
	at := "the newest moment"
	if !e.At.IsZero() {
		at = "the moment " + e.At.UTC().Format(time.RFC3339Nano)
	}
	if e.First.IsZero() {
		return fmt.Sprintf("%s: %s cannot be restored: the copy has no snapshot yet -> let the store's process run until "+
			"memctl remote snapshots lists one", e.Place, at)
	}
	return fmt.Sprintf("%s: %s cannot be restored: no snapshot is that old; the first moment is %s -> name a later one",
		e.Place, at, e.First.UTC().Format(time.RFC3339Nano))
}

// Unwrap makes the error match errs.ErrNotFound.
func (e *MomentError) Unwrap() error { return errs.ErrNotFound }

// Materialize makes a store of what a remote has up to a moment, the newest one if at is zero. The folder keeps its
// mark until finish is called, after the store was verified.
func Materialize(ctx context.Context, r remote.Remote, at time.Time, t Target) (m Moment, finish func() error,
	err error) {
	names, err := vfs.Contents(t.FS, t.Dir)
	mark, left := vfs.Unfinished(t.FS, t.Dir)
	switch {
	case err == nil && left && mark.Kind == Kind:
		return m, nil, fmt.Errorf("%s: %w: a clone that was killed has left this folder, or one is filling it -> remove it, "+
			"or name a new folder", t.Dir, errs.ErrInvalid)
	case err == nil && len(names) > 0:
		return m, nil, fmt.Errorf("%s: %w: the folder is not empty (%s) -> name a new or an empty folder", t.Dir,
			errs.ErrInvalid, names[0])
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return m, nil, fmt.Errorf("reading %s: %w", t.Dir, err)
	}
	list, err := choices(ctx, r, at)
	if err != nil {
		return m, nil, err
	}
	if _, err := vfs.MakeRoot(t.FS, t.Dir, t.FolderMode, t.Self, false); err != nil {
		return m, nil, fmt.Errorf("creating %s: %w", t.Dir, err)
	}
	store := uuid.UUID(list[0].epoch.Geometry.UUID)
	if err := vfs.WriteMark(t.FS, t.Dir, vfs.Mark{Kind: Kind, Store: store}, t.FileMode); err != nil {
		return m, nil, err
	}
	for i := range list {
		f := &filling{r: r, at: at, t: &t, choice: &list[i]}
		m, err = f.run(ctx)
		if !errors.Is(err, errBefore) {
			break
		}
		if err := f.clear(); err != nil {
			return m, nil, err
		}
	}
	if errors.Is(err, errBefore) {
		err = &MomentError{Place: r.Place(), At: at, First: first(list)}
	}
	if err != nil {
		return m, nil, errors.Join(err, (&filling{t: &t}).clear(), t.unmark(), t.FS.Remove(t.Dir))
	}
	return m, t.unmark, nil
}

// unmark makes the folder a store.
func (t *Target) unmark() error {
	if err := t.FS.Remove(filepath.Join(t.Dir, vfs.MarkName)); err != nil {
		return err
	}
	return t.FS.SyncDir(t.Dir)
}

// choice is an epoch from which a moment may be restored, with its snapshots, newest first.
type choice struct {
	epoch     remote.Epoch
	snapshots []remote.Snapshot
}

func first(list []choice) (at time.Time) {
	for _, c := range list {
		for _, s := range c.snapshots {
			if at.IsZero() || s.Time.Before(at) {
				at = s.Time
			}
		}
	}
	return at
}

// choices returns the epochs that may have a moment, newest first.
func choices(ctx context.Context, r remote.Remote, at time.Time) (list []choice, err error) {
	epochs, err := r.Epochs(ctx)
	if err != nil {
		return nil, err
	}
	if len(epochs) == 0 {
		return nil, fmt.Errorf("%s: %w: nothing was sent yet", r.Place(), remote.ErrNoRemote)
	}
	snapshots, err := r.Snapshots(ctx)
	if err != nil && !errors.Is(err, errs.ErrCorrupt) { // the others may do
		return nil, err
	}
	slices.SortFunc(snapshots, func(a, b remote.Snapshot) int { return cmp.Compare(b.End.LSN, a.End.LSN) })
	for i := len(epochs) - 1; i >= 0; i-- {
		c := choice{epoch: epochs[i]}
		for _, s := range snapshots {
			if s.Format > remote.Format {
				return nil, &errs.NewerError{Path: r.Place(), Format: uint64(s.Format), Reads: remote.Format}
			}
			if s.Epoch == c.epoch.Number {
				c.snapshots = append(c.snapshots, s)
			}
		}
		newest := i == len(epochs)-1
		switch {
		case newest && at.IsZero() && len(c.snapshots) == 0:
			return nil, &MomentError{Place: r.Place()}
		case len(c.snapshots) > 0 && (newest || !at.IsZero() && !at.After(c.epoch.Ended)):
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil, &MomentError{Place: r.Place(), At: at}
	}
	return list, nil
}

// errBefore reports that a moment is before those that an epoch has.
var errBefore = errors.New("the moment is before the snapshots of the epoch")

// filling fills the folder.
type filling struct {
	r  remote.Remote
	at time.Time
	t  *Target
	*choice

	end      past.Mark // end of the log in the folder
	features wal.Features
}

func (f *filling) path(rel string) string { return filepath.Join(f.t.Dir, filepath.FromSlash(rel)) }

// clear removes what was written, except the mark.
func (f *filling) clear() error {
	names, err := f.t.FS.ReadDir(f.t.Dir)
	for _, name := range names {
		if name != vfs.MarkName {
			err = errors.Join(err, Remove(f.t.FS, filepath.Join(f.t.Dir, name)))
		}
	}
	return err
}

// Remove removes a file or a folder that Materialize has made, with everything in it.
func Remove(fsys vfs.FS, name string) error {
	return vfs.RemoveKnown(fsys, name, func(string, bool) bool { return true })
}

func (f *filling) run(ctx context.Context) (m Moment, err error) {
	geo := f.epoch.Geometry
	m = Moment{Epoch: f.epoch.Number, Store: geo.UUID, Log: f.epoch.Log}
	oldest := f.snapshots[0].Begin
	for _, s := range f.snapshots {
		if s.Begin.LSN < oldest.LSN {
			oldest = s.Begin
		}
	}
	if err := vfs.MkdirAll(f.t.FS, f.path("wal"), f.t.FolderMode); err != nil {
		return m, err
	}
	if err := f.log(ctx, oldest); err != nil {
		return m, err
	}
	log := &past.Log{FS: f.t.FS, Dir: f.path("wal"), Geometry: geo}
	until := segment.LSN(0)
	if !f.at.IsZero() {
		if until, err = log.Until(ctx, oldest, f.at, f.end.LSN); err != nil {
			return m, err
		}
	}
	for i := range f.snapshots {
		s := &f.snapshots[i]
		if s.End.LSN > f.end.LSN {
			continue // pieces do not complete it yet
		}
		end, last, err := f.moment(ctx, log, s, until)
		if errors.Is(err, errBefore) {
			continue
		}
		if err != nil {
			return m, err
		}
		m.End, m.Time = end, last
		return m, f.from(ctx, s, end)
	}
	if f.at.IsZero() {
		return m, &MomentError{Place: f.r.Place()}
	}
	return m, errBefore
}

// moment returns where the log of the moment ends that begins with a snapshot, and the time of the last commit.
func (f *filling) moment(ctx context.Context, log *past.Log, s *remote.Snapshot, until segment.LSN) (end past.Mark,
	last time.Time, err error) {
	end = s.End
	f.features = 0
	reached := segment.LSN(0) // end of the last commit of the moment
	for e, err := range log.Entries(ctx, s.Begin, f.end.LSN) {
		if err != nil {
			return end, last, err
		}
		if !f.at.IsZero() && e.LSN > until && e.LSN >= s.End.LSN {
			break
		}
		f.needs(&e)
		if e.LSN == until {
			reached = e.LSN + e.Size
		}
		if e.More {
			continue
		}
		last = e.Reading
		if e.LSN+e.Size > end.LSN {
			end = past.Mark{LSN: e.LSN + e.Size}
		}
	}
	if f.at.IsZero() {
		return f.end, last, nil
	}
	if reached < s.End.LSN && f.at.Before(s.Time) {
		return end, last, errBefore
	}
	if end != s.End {
		end, err = log.Chain(ctx, end.LSN)
	}
	return end, last, err
}

// needs notes the features that a program must know to read an entry: they may have been raised after the snapshot.
func (f *filling) needs(e *past.Entry) {
	if e.Writer != 0 || e.Kind == record.KindWriter {
		f.features |= wal.FeatureWriters | wal.FeatureFields
	}
	if e.Cause != 0 || e.Restores != 0 || !e.Reading.Equal(e.Time) {
		f.features |= wal.FeatureFields
	}
	switch e.Kind {
	case record.KindKept:
		f.features |= wal.FeatureKept
	case record.KindPurge:
		f.features |= wal.FeaturePurges
	}
	if e.Key != "" {
		if k := kind.Lettered(e.Key[0]); k != nil {
			f.features |= k.Feature
		}
	}
}

// log writes the pieces from a mark on as segments.
func (f *filling) log(ctx context.Context, from past.Mark) error {
	geo := f.epoch.Geometry
	var out vfs.File
	number := uint64(0)
	done := func() error {
		if out == nil {
			return nil
		}
		err := errors.Join(out.Sync(), out.Close())
		out = nil
		return err
	}
	f.end = from
	for p, err := range f.r.Read(ctx, f.epoch.Number, from.LSN) {
		if err != nil {
			return errors.Join(err, done())
		}
		if err := p.Check(geo); err != nil {
			return errors.Join(err, done())
		}
		if p.From != f.end {
			return errors.Join(&errs.CorruptionError{Path: f.r.Place(), Offset: -1, LSN: p.From.LSN,
				Err: fmt.Errorf("a piece from %d follows position %d", p.From.LSN, f.end.LSN)}, done())
		}
		at, _ := p.At()
		if n := geo.Number(at); out == nil || n != number {
			if err := done(); err != nil {
				return err
			}
			if out, err = vfs.CreateNew(f.t.FS, f.path("wal/"+segment.Name(n)), f.t.FileMode); err != nil {
				return err
			}
			if number = n; geo.Offset(at) != 0 {
				return errors.Join(&errs.CorruptionError{Path: f.r.Place(), Offset: -1, LSN: at,
					Err: errors.New("the copy lacks the start of the segment")}, done())
			}
			if err := out.Truncate(int64(geo.Size)); err != nil {
				return errors.Join(err, done())
			}
		}
		if _, err := out.WriteAt(p.Bytes, geo.Offset(at)); err != nil {
			return errors.Join(err, done())
		}
		f.end = p.To
	}
	return done()
}

// from completes the store with a snapshot, and ends the log.
func (f *filling) from(ctx context.Context, s *remote.Snapshot, end past.Mark) error {
	if err := f.cut(s.Begin, end); err != nil {
		return err
	}
	if err := f.files(ctx, s); err != nil {
		return err
	}
	c, err := wal.ReadCheckpoint(f.t.FS, f.t.Dir)
	if err != nil {
		return &errs.CorruptionError{Path: f.r.Place(), Offset: -1, Err: fmt.Errorf("snapshot %s: %w", s.ID, err)}
	}
	c.Features |= f.features
	if err := c.Features.Lacking(f.t.Known|wal.KnownFeatures, f.r.Place(), false); err != nil {
		return err
	}
	if end.LSN < c.Flushed.LSN || s.End.LSN < c.Flushed.LSN {
		return &errs.CorruptionError{Path: f.r.Place(), Offset: -1,
			Err: fmt.Errorf("snapshot %s ends at %d, and its files at %d", s.ID, s.End.LSN, c.Flushed.LSN)}
	}
	c.Attested, c.Home, c.Mtimes = end, 0, [wal.Folders]int64{}
	for _, folder := range append(kind.FoldersOf(c.Features), "tmp") {
		if err := f.folder(folder); err != nil {
			return err
		}
	}
	return wal.NewCheckpoint(f.t.FS, f.t.Dir, c, f.t.FileMode)
}

// cut removes the log before a mark and after another.
func (f *filling) cut(begin, end past.Mark) error {
	geo := f.epoch.Geometry
	names, err := f.t.FS.ReadDir(f.path("wal"))
	if err != nil {
		return err
	}
	first := geo.Number(begin.LSN-1) + 1
	if begin.Sum == 0 {
		first = geo.Number(begin.LSN)
	}
	last := geo.Number(end.LSN - 1)
	for _, name := range names {
		if n, ok := segment.ParseName(name); ok && (n < first || n > last) {
			if err := f.t.FS.Remove(f.path("wal/" + name)); err != nil {
				return err
			}
		}
	}
	out, err := f.t.FS.OpenFile(f.path("wal/"+segment.Name(last)), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	at := geo.Offset(end.LSN-1) + 1
	err = errors.Join(out.Truncate(at), out.Truncate(int64(geo.Size)), out.Sync(), out.Close())
	return errors.Join(err, f.t.FS.SyncDir(f.path("wal")))
}

func (f *filling) folder(rel string) error {
	return vfs.MkdirAll(f.t.FS, f.path(rel), f.t.FolderMode)
}

// files unpacks a snapshot.
func (f *filling) files(ctx context.Context, s *remote.Snapshot) error {
	body, err := f.r.Open(ctx, s.ID)
	if err != nil {
		return err
	}
	defer body.Close()
	p, err := pack.Open(body, body.Size(), f.r.Place()+" snapshot "+s.ID.String(), valid)
	if err != nil {
		return err
	}
	if damage := p.Damage(); len(damage) > 0 {
		return errors.Join(damage...)
	}
	if p.Header().Store != f.epoch.Geometry.UUID {
		return &errs.CorruptionError{Path: f.r.Place(), Offset: -1,
			Err: fmt.Errorf("snapshot %s is of store %s", s.ID, uuid.UUID(p.Header().Store))}
	}
	made := map[string]bool{}
	n := int64(0)
	for entry, err := range p.All() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if f.t.Progress != nil && n%16 == 0 {
			f.t.Progress(n, int64(p.Files()))
		}
		n++
		name := f.path(entry.Name)
		if folder := filepath.Dir(name); !made[folder] {
			if err := vfs.MkdirAll(f.t.FS, folder, f.t.FolderMode); err != nil {
				return err
			}
			made[folder] = true
		}
		if err := f.file(name, &entry, p.Body(entry)); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	for folder := range made {
		if err := f.t.FS.SyncDir(folder); err != nil {
			return fmt.Errorf("%w: %w", errs.ErrSyncFailed, err)
		}
	}
	if f.t.Progress != nil {
		f.t.Progress(n, n)
	}
	return nil
}

// file writes a file of a snapshot.
func (f *filling) file(name string, entry *pack.File, body io.ReaderAt) error {
	out, err := vfs.CreateNew(f.t.FS, name, f.t.FileMode)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(io.NewOffsetWriter(vfs.Streamed(out), 0), sum),
		io.NewSectionReader(body, 0, entry.Size))
	if err == nil && [32]byte(sum.Sum(nil)) != entry.Sum {
		err = &errs.CorruptionError{Path: entry.Name, Offset: -1, Err: errors.New("checksum mismatch")}
	}
	if err == nil && !entry.Mtime.IsZero() {
		err = out.SetMtime(entry.Mtime)
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
