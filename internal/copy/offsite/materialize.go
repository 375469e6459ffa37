package offsite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	Dir                  string // folder of the new store, missing or empty
	FileMode, FolderMode fs.FileMode
	Self                 vfs.Users    // users whose folders may be filled
	Known                wal.Features // features that the program knows besides those of package wal
	Progress             func(done, total int64)
	Inline               bool // write all files in the goroutine of the caller
}

// Kind is the kind (vfs.Mark) in the mark of a folder that Materialize is filling.
const Kind = "clone"

// Moment describes the moment of a remote copy to which Materialize has restored a store.
type Moment struct {
	Epoch uint64
	Store uuid.UUID
	End   past.Mark // mark at which the log of the moment ends
	Read  past.Mark // mark up to which the pieces of the epoch were read
	Time  time.Time // clock reading of that commit; zero: none since the snapshot
	Log   uint64    // epoch of the store's own log
	// Damage describes the damaged parts of the copy that the moment does not need. Each error matches
	// errs.ErrCorrupt or errs.ErrTruncated.
	Damage []error
}

// MomentError reports that a moment cannot be restored from a copy. It matches errs.ErrNotFound.
type MomentError struct {
	Place string
	At    time.Time // the moment to restore; zero: the newest one
	First time.Time // the first moment that can be restored, zero: none can
	Last  time.Time // the last moment that can be restored, if the newest epoch has no snapshot yet; otherwise zero
	// Wrong is an epoch that may have the moment, but ends at an earlier time than it begins at or than one of its
	// snapshots, because the clock was set back: there the moment cannot be found by its time. Number 0: no such epoch.
	Wrong remote.Epoch
}

// Error returns the message, in one line.
func (e *MomentError) Error() string {
	at := "the newest moment"
	if !e.At.IsZero() {
		at = "the moment " + e.At.UTC().Format(time.RFC3339Nano)
	}
	if e.Wrong.Number > 0 {
		ended := e.Wrong.Ended.UTC().Format(time.RFC3339Nano)
		return fmt.Sprintf("%s: %s cannot be found: it may be in epoch %d, in which the clock of the machine was set "+
			"back (to %s at the end) -> memctl clone --at %s restores the last moment of that epoch", e.Place, at,
			e.Wrong.Number, ended, ended)
	}
	if !e.Last.IsZero() {
		return fmt.Sprintf("%s: %s cannot be restored: the copy was begun again and has no snapshot since -> memctl clone "+
			"--at %s restores the last moment before that, or let the store's process run until memctl remote snapshots "+
			"lists a newer one", e.Place, at, e.Last.UTC().Format(time.RFC3339Nano))
	}
	if e.First.IsZero() {
		return fmt.Sprintf("%s: %s cannot be restored: the copy has no snapshot yet -> let the store's process run until "+
			"memctl remote snapshots lists one", e.Place, at)
	}
	return fmt.Sprintf("%s: %s cannot be restored: no snapshot is that old; the first moment is %s -> give a later "+
		"moment",
		e.Place, at, e.First.UTC().Format(time.RFC3339Nano))
}

// Unwrap makes the error match errs.ErrNotFound.
func (e *MomentError) Unwrap() error { return errs.ErrNotFound }

// DamagedError reports that damage of a copy prevents the restoring of a moment. It matches what Err matches.
type DamagedError struct {
	Place string
	At    time.Time // zero: the newest moment
	Last  time.Time // clock reading of the last commit before the damage, which can be restored; zero: none is known
	Err   error     // what was found
}

// Error returns the message, in one line.
func (e *DamagedError) Error() string {
	at := "the newest moment"
	if !e.At.IsZero() {
		at = "the moment " + e.At.UTC().Format(time.RFC3339Nano)
	}
	fix := "memctl remote verify --read-data, run in the store, lists the damage"
	if !e.Last.IsZero() {
		fix = "memctl clone --at " + e.Last.UTC().Format(time.RFC3339Nano) + " restores the last moment before the damage"
	}
	return fmt.Sprintf("%s: %s cannot be restored, because the copy is damaged: %v -> %s", e.Place, at,
		strings.ReplaceAll(e.Err.Error(), "\n", "; "), fix)
}

// Unwrap returns Err, the damage.
func (e *DamagedError) Unwrap() error { return e.Err }

// Materialize makes a store from a remote, with the content of the given moment; the zero time means the newest
// moment. It needs one snapshot and the pieces from the snapshot to the moment. If the snapshot or a piece is
// damaged, Materialize tries an older snapshot, and Moment.Damage lists the damage. If no snapshot with sound
// pieces leads to the moment, Materialize returns an error; it never restores an earlier moment instead. The
// folder keeps its mark until the caller has verified the store and calls finish.
func Materialize(ctx context.Context, r remote.Remote, moment time.Time, t Target) (m Moment, finish func() error,
	err error) {
	names, err := vfs.Contents(t.FS, t.Dir)
	mark, left := vfs.Unfinished(t.FS, t.Dir)
	switch {
	case err == nil && left && mark.Kind == Kind:
		return m, nil, fmt.Errorf("%s: %w: a killed memctl clone has left this folder, or a clone is filling it now "+
			"-> remove the folder if no clone is running, or give the path of a new folder", t.Dir, errs.ErrInvalid)
	case err == nil && len(names) > 0:
		return m, nil, fmt.Errorf("%s: %w: the folder is not empty (%s) -> give the path of a new or an empty folder",
			t.Dir,
			errs.ErrInvalid, names[0])
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return m, nil, fmt.Errorf("reading %s: %w", t.Dir, err)
	}
	list, wrong, damage, err := choices(ctx, r, moment)
	if err != nil {
		return m, nil, err
	}
	if _, err := vfs.MakeRoot(t.FS, t.Dir, t.FolderMode, t.Self, false); err != nil {
		return m, nil, vfs.Failed("creating", t.Dir, err)
	}
	store := uuid.UUID(list[0].epoch.Geometry.UUID)
	if err := vfs.WriteMark(t.FS, t.Dir, vfs.Mark{Kind: Kind, Store: store}, t.FileMode); err != nil {
		return m, nil, err
	}
	a := &attempts{r: r, at: moment, t: &t, damage: damage}
	for i := range list {
		var done bool
		if m, done, err = a.epoch(ctx, &list[i]); done || err != nil {
			break
		}
		err = &MomentError{Place: r.Place(), At: moment, First: first(list), Wrong: wrong}
	}
	if err != nil {
		return m, nil, errors.Join(err, t.Discard(store))
	}
	m.Damage = a.damage
	return m, t.unmark, nil
}

// attempts are the attempts to restore a moment from one snapshot after the other.
type attempts struct {
	r      remote.Remote
	at     time.Time
	t      *Target
	damage []error
}

// epoch tries to restore the requested moment from the snapshots of an epoch, one after the other. done reports whether
// epoch has restored it. done is false without an error if the moment is earlier than the epoch or than all its
// snapshots. If the moment may be in the epoch, but damage prevents restoring it, the error is a *DamagedError.
func (a *attempts) epoch(ctx context.Context, c *choice) (m Moment, done bool, err error) {
	var unusable []error
	var last time.Time
	for i := range c.snapshots {
		f := &filling{r: a.r, at: a.at, t: a.t, epoch: c.epoch, snapshot: &c.snapshots[i]}
		m, err = f.run(ctx)
		if err == nil {
			a.damage = append(append(a.damage, unusable...), f.damage...)
			return m, true, nil
		}
		switch {
		case errors.Is(err, errBefore):
		case errors.Is(err, errs.ErrCorrupt), errors.Is(err, errs.ErrTruncated), errors.Is(err, errs.ErrNotFound):
			unusable = append(unusable, err)
			if f.last.After(last) {
				last = f.last
			}
		default:
			return m, false, err
		}
		if err := f.clear(); err != nil {
			return m, false, err
		}
	}
	if len(unusable) == 0 {
		return m, false, nil
	}
	if !a.at.IsZero() && a.at.Before(c.epoch.Began) { // the moment is in an earlier epoch
		a.damage = append(a.damage, unusable...)
		return m, false, nil
	}
	return m, false, &DamagedError{Place: a.r.Place(), At: a.at, Last: last, Err: errors.Join(unusable...)}
}

// Discard removes the folder with everything in it. Until nothing else is left in the folder, also after a loss of
// power, the folder has the mark of an unfinished folder: half a store must not open.
func (t *Target) Discard(store uuid.UUID) error {
	var err error
	if _, ok := vfs.Unfinished(t.FS, t.Dir); !ok {
		err = vfs.WriteMark(t.FS, t.Dir, vfs.Mark{Kind: Kind, Store: store}, t.FileMode)
	}
	if err = errors.Join(err, (&filling{t: t}).clear(), t.FS.SyncDir(t.Dir)); err != nil {
		return err
	}
	return errors.Join(t.unmark(), t.FS.Remove(t.Dir))
}

// unmark makes the folder a store: it removes the file that marks the folder as unfinished.
func (t *Target) unmark() error {
	if err := t.FS.Remove(filepath.Join(t.Dir, vfs.MarkName)); err != nil {
		return err
	}
	return t.FS.SyncDir(t.Dir)
}

// choice is an epoch from which a moment may be restored, with its snapshots, newest first; snapshots that are later
// than the moment are last.
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

// wrongClock reports whether the epoch may have a moment that is after the epoch's recorded end, because the clock was
// set back during the epoch. at is the moment, and next is the following epoch.
func (c *choice) wrongClock(at time.Time, next *remote.Epoch) bool {
	if at.IsZero() || !at.After(c.epoch.Ended) || !at.Before(next.Began) {
		return false
	}
	return c.epoch.Ended.Before(c.epoch.Began) ||
		slices.ContainsFunc(c.snapshots, func(s remote.Snapshot) bool { return c.epoch.Ended.Before(s.Time) })
}

// choices returns the epochs from which a moment may be restored, newest first. wrong is the newest epoch that may have
// the moment after its recorded end. damage reports descriptions of snapshots that are damaged.
func choices(ctx context.Context, r remote.Remote, at time.Time) (list []choice, wrong remote.Epoch, damage []error,
	err error) {
	epochs, err := r.Epochs(ctx)
	if err != nil {
		return nil, wrong, nil, err
	}
	if len(epochs) == 0 {
		return nil, wrong, nil, fmt.Errorf("%s: %w: no store has sent anything to this place yet", r.Place(),
			remote.ErrNoRemote)
	}
	snapshots, err := r.Snapshots(ctx)
	switch {
	case errors.Is(err, errs.ErrCorrupt):
		damage = append(damage, err) // the other snapshots may be sound
	case err != nil:
		return nil, wrong, nil, err
	}
	slices.SortFunc(snapshots, func(a, b remote.Snapshot) int {
		late := func(s *remote.Snapshot) int { // a snapshot that is later than the moment serves only if its clock was wrong
			if !at.IsZero() && s.Time.After(at) {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(late(&a), late(&b)), cmp.Compare(b.End.LSN, a.End.LSN))
	})
	none := &MomentError{Place: r.Place(), At: at}
	last := func(c *choice) {
		if n := len(epochs); c.epoch.Number != epochs[n-1].Number && c.epoch.Ended.After(none.Last) {
			none.Last = c.epoch.Ended
		}
	}
	for i := len(epochs) - 1; i >= 0; i-- {
		c := choice{epoch: epochs[i]}
		for _, s := range snapshots {
			if err := remote.FormatError(r.Place(), s.Format); err != nil {
				return nil, wrong, nil, err
			}
			if s.CompletedBy(epochs) == c.epoch.Number {
				c.snapshots = append(c.snapshots, s)
			}
		}
		newest := i == len(epochs)-1
		if len(c.snapshots) == 0 {
			continue
		}
		if newest || !at.IsZero() && !at.After(c.epoch.Ended) {
			list = append(list, c)
		} else if wrong.Number == 0 && c.wrongClock(at, &epochs[i+1]) {
			wrong = c.epoch
		}
		last(&c)
	}
	if len(list) == 0 {
		none.Wrong = wrong
		return nil, wrong, nil, none
	}
	return list, wrong, damage, nil
}

// errBefore means that the requested moment is earlier than those that can be restored from a snapshot.
var errBefore = errors.New("the moment is earlier than all snapshots of the epoch")

// filling is one attempt to fill the folder of a Target with the store as it was at a moment, from one snapshot of a
// remote copy and the pieces of the log after it.
type filling struct {
	r        remote.Remote
	at       time.Time
	t        *Target
	epoch    remote.Epoch
	snapshot *remote.Snapshot

	begin    past.Mark // beginning of the log in the folder
	end      past.Mark // end of the log in the folder
	out      vfs.File  // the segment that is being written; nil if none is
	number   uint64    // its number
	features wal.Features
	damage   []error   // damage of parts that the moment does not need
	last     time.Time // clock reading of the last commit in the folder, if the log after it is damaged
}

func (f *filling) path(rel string) string { return filepath.Join(f.t.Dir, filepath.FromSlash(rel)) }

// clear removes everything that was written, except the mark.
func (f *filling) clear() error {
	names, err := f.t.FS.ReadDir(f.t.Dir)
	for _, name := range names {
		if name != vfs.MarkName {
			err = errors.Join(err, vfs.RemoveKnown(f.t.FS, filepath.Join(f.t.Dir, name),
				func(string, bool) bool { return true }))
		}
	}
	return err
}

func (f *filling) run(ctx context.Context) (m Moment, err error) {
	geo, s := f.epoch.Geometry, f.snapshot
	m = Moment{Epoch: f.epoch.Number, Store: geo.UUID, Log: f.epoch.Log}
	if s.Geometry != geo || s.Log != f.epoch.Log && !f.earlier() {
		return m, f.corrupt("belongs to another log than the pieces of epoch %d in the copy", s.Epoch)
	}
	if err := vfs.MkdirAll(f.t.FS, f.path("wal"), f.t.FolderMode); err != nil {
		return m, err
	}
	log := &past.Log{FS: f.t.FS, Dir: f.path("wal"), Geometry: geo}
	need, err := f.needed(ctx)
	if err != nil {
		return m, err
	}
	lerr := f.log(ctx, need)
	damaged := errors.Is(lerr, errs.ErrCorrupt)
	switch {
	case damaged && f.earlier() && f.end == s.Begin:
		return m, errBefore // the epoch is that of another log
	case damaged && f.end.LSN > f.begin.LSN:
		if f.last, err = lastReading(ctx, log, f.begin, f.end.LSN); err != nil {
			return m, err
		}
		if f.at.IsZero() || f.last.Before(f.at) || s.End.LSN > f.end.LSN {
			return m, lerr // the moment is not before the damage
		}
		f.damage = append(f.damage, lerr)
	case lerr != nil:
		return m, lerr
	case s.End.LSN > f.end.LSN:
		return m, f.corrupt("ends at position %d, but the pieces of the log that complete it end at position %d",
			s.End.LSN, f.end.LSN)
	}
	if at, err := log.Chain(ctx, s.End.LSN); s.End != f.begin && (err != nil || at != s.End) {
		if err != nil && !errors.Is(err, errs.ErrNotFound) {
			return m, err
		}
		if f.earlier() {
			return m, errBefore
		}
		return m, f.corrupt("has another chain hash at position %d than the pieces of the log", s.End.LSN)
	}
	until := segment.LSN(0)
	if !f.at.IsZero() {
		if until, err = log.Until(ctx, f.begin, f.at, f.end.LSN); err != nil {
			return m, err
		}
	}
	m.Read = f.end
	if m.End, m.Time, err = f.moment(ctx, log, until); err != nil {
		return m, err
	}
	return m, f.from(ctx, s, m.End)
}

// earlier reports whether the snapshot was made in an epoch that is no longer kept: see remote.Snapshot.CompletedBy.
func (f *filling) earlier() bool { return f.snapshot.Epoch != f.epoch.Number }

// corrupt returns an error that describes damage of the snapshot; its text begins with the snapshot's id.
func (f *filling) corrupt(format string, args ...any) error {
	return &errs.CorruptionError{Path: f.r.Place(), Offset: -1,
		Err: fmt.Errorf("snapshot %s "+format, append([]any{f.snapshot.ID}, args...)...)}
}

// lastReading returns the clock reading of the last commit in the log between two positions.
func lastReading(ctx context.Context, log *past.Log, from past.Mark, to segment.LSN) (last time.Time, err error) {
	for e, err := range log.Entries(ctx, from, to) {
		if err != nil {
			return last, err
		}
		if !e.More {
			last = e.Reading
		}
	}
	return last, nil
}

// moment returns the mark at which the log of the requested moment ends, and the clock reading of the last commit
// before that mark. until is the position of the last entry of the last commit of the moment, 0 if there is no such
// commit; without a requested moment, the log ends where the pieces end. moment also collects the features that the
// entries need. The error is errBefore if the snapshot has commits from after the moment.
func (f *filling) moment(ctx context.Context, log *past.Log, until segment.LSN) (end past.Mark, last time.Time,
	err error) {
	s := f.snapshot
	end = s.End
	f.features = 0
	reached := segment.LSN(0) // end of the last commit of the moment
	for e, err := range log.Entries(ctx, f.begin, f.end.LSN) {
		if err != nil {
			return end, last, err
		}
		if !f.at.IsZero() && e.LSN > until {
			if e.LSN < s.End.LSN { // the snapshot has what was committed after the moment
				return end, last, errBefore
			}
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

// needs records the features that a program must know to read an entry: the store may have raised them after the
// snapshot.
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

// log writes the pieces of the log as segments, beginning at the snapshot's Begin. The snapshot's files need the log
// only from the segment that contains position need; the log before that segment is history. If a piece of the history
// is damaged or missing, the log in the folder begins after that piece, and the error is added to f.damage.
func (f *filling) log(ctx context.Context, need segment.LSN) (err error) {
	f.begin, f.end = f.snapshot.Begin, f.snapshot.Begin
	from := f.begin.LSN
	for {
		err = f.pieces(ctx, from, f.epoch.Geometry.Start(f.epoch.Geometry.Number(need-1)))
		err = errors.Join(err, f.done())
		truncated := (*remote.TruncatedError)(nil)
		if !errors.As(err, &truncated) || f.end != f.begin || truncated.Oldest <= from {
			break
		}
		f.damage = append(f.damage, truncated)
		f.begin, f.end, from = past.Mark{}, past.Mark{}, truncated.Oldest
	}
	if err == nil && f.end.LSN == 0 {
		err = errors.Join(f.damage...)
	}
	return err
}

// pieces writes the pieces of the log, beginning at the position from. need is the start of the first segment that the
// snapshot needs. Damage before need is added to f.damage, and the log in the folder then begins after the damage.
func (f *filling) pieces(ctx context.Context, from, need segment.LSN) error {
	geo := f.epoch.Geometry
	for p, err := range f.r.Read(ctx, f.epoch.Number, from) {
		if err == nil {
			err = f.fits(&p)
		}
		if errors.Is(err, errs.ErrCorrupt) && f.end.LSN <= need {
			f.damage = append(f.damage, err)
			if err := errors.Join(f.done(), f.dropSegments()); err != nil {
				return err
			}
			f.begin, f.end = past.Mark{}, past.Mark{}
			continue
		}
		if err != nil {
			return err
		}
		at, _ := p.At()
		if f.end.LSN == 0 { // the log begins again at the start of a segment
			if at > need {
				return errors.Join(f.damage...)
			}
			if geo.Offset(at) != 0 {
				continue
			}
			f.begin = p.From
		}
		if err := f.write(&p, at); err != nil {
			return err
		}
		f.end = p.To
	}
	return nil
}

// fits returns an error if a piece is not valid or does not follow the piece that was read before it.
func (f *filling) fits(p *remote.Piece) error {
	if err := remote.FormatError(f.r.Place(), p.Format); err != nil {
		return err
	}
	if err := p.Check(f.epoch.Geometry); err != nil {
		return err
	}
	if f.end.LSN != 0 && p.From != f.end || p.Epoch != f.epoch.Number {
		return &errs.CorruptionError{Path: f.r.Place(), Offset: -1, LSN: p.From.LSN,
			Err: fmt.Errorf("a piece of epoch %d begins at position %d, but should continue the earlier pieces of "+
				"the copy, which end at position %d", p.Epoch, p.From.LSN, f.end.LSN)}
	}
	return nil
}

// write writes a piece, whose bytes begin at position pos of the log, into its segment.
func (f *filling) write(p *remote.Piece, pos segment.LSN) (err error) {
	geo := f.epoch.Geometry
	if n := geo.Number(pos); f.out == nil || n != f.number {
		if err := f.done(); err != nil {
			return err
		}
		if f.out, err = vfs.CreateNew(f.t.FS, f.path("wal/"+segment.Name(n)), f.t.FileMode); err != nil {
			return err
		}
		if f.number = n; geo.Offset(pos) != 0 {
			return &errs.CorruptionError{Path: f.r.Place(), Offset: -1, LSN: pos,
				Err: errors.New("the copy lacks the beginning of the segment of the log that has this position")}
		}
		if err := f.out.Truncate(int64(geo.Size)); err != nil {
			return err
		}
	}
	_, err = f.out.WriteAt(p.Bytes, geo.Offset(pos))
	return err
}

// done closes the segment that is being written.
func (f *filling) done() error {
	if f.out == nil {
		return nil
	}
	err := errors.Join(f.out.Sync(), f.out.Close())
	f.out = nil
	return err
}

// dropSegments removes the segments that were written.
func (f *filling) dropSegments() error {
	names, err := f.t.FS.ReadDir(f.path("wal"))
	for _, name := range names {
		if _, ok := segment.ParseName(name); ok {
			err = errors.Join(err, f.t.FS.Remove(f.path("wal/"+name)))
		}
	}
	return err
}

// from completes the store: it cuts the log at end, unpacks the snapshot, and writes the checkpoint.
func (f *filling) from(ctx context.Context, s *remote.Snapshot, end past.Mark) error {
	if err := f.cut(f.begin, end); err != nil {
		return err
	}
	if err := f.files(ctx); err != nil {
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
			Err: fmt.Errorf("snapshot %s has document files as of position %d of the log, but the log in the copy "+
				"ends before that, at position %d", s.ID,
				c.Flushed.LSN, min(end.LSN, s.End.LSN))}
	}
	c.Attested, c.Home, c.Mtimes = end, 0, [wal.Folders]int64{}
	for _, folder := range append(kind.FoldersOf(c.Features), "tmp") {
		if err := f.folder(folder); err != nil {
			return err
		}
	}
	return wal.NewCheckpoint(f.t.FS, f.t.Dir, c, f.t.FileMode)
}

// cut removes the segments that are completely before the mark begin, and the whole log after the mark end.
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

// packed opens the snapshot. The caller closes the body.
func (f *filling) packed(ctx context.Context) (body remote.Body, p *pack.Reader, err error) {
	s := f.snapshot
	if body, err = f.r.Open(ctx, s.ID); err != nil {
		return nil, nil, err
	}
	p, err = pack.Open(body, body.Size(), f.r.Place()+" snapshot "+s.ID.String(), valid)
	if err == nil {
		err = errors.Join(p.Damage()...)
	}
	if err == nil && p.Header().Store != f.epoch.Geometry.UUID {
		err = f.corrupt("belongs to store %s, but the copy belongs to store %s", uuid.UUID(p.Header().Store),
			uuid.UUID(f.epoch.Geometry.UUID))
	}
	if err != nil {
		return nil, nil, errors.Join(err, body.Close())
	}
	return body, p, nil
}

// needed returns the position up to which the index in the snapshot is complete: the log is needed from there on.
func (f *filling) needed(ctx context.Context) (segment.LSN, error) {
	body, p, err := f.packed(ctx)
	if err != nil {
		return 0, err
	}
	at := p.Header().LSN
	if err := body.Close(); err != nil {
		return 0, err
	}
	if !f.epoch.Geometry.Holds(at) || at < f.snapshot.Begin.LSN || at > f.snapshot.End.LSN {
		return 0, f.corrupt("has an index up to position %d, which is not a valid position between %d and %d", at,
			f.snapshot.Begin.LSN, f.snapshot.End.LSN)
	}
	return at, nil
}
