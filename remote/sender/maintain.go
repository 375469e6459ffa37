package sender

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
)

// Maintain saves a snapshot if one is due, and removes the data that the remote no longer needs. It may run at the same
// time as Round.
func (s *Sender) Maintain(ctx context.Context) (err error) {
	s.maintain.Lock()
	defer s.maintain.Unlock()
	defer func() {
		s.mu.Lock()
		s.status.SnapshotErr = err
		s.mu.Unlock()
	}()
	b := s.bound()
	if s.stoppedBy() != nil || b.Epoch == 0 || b.Request != uuid.Nil {
		return nil
	}
	if err = s.maintained(ctx, &b); errors.Is(err, errEnded) {
		return nil // the next Round begins an epoch, for which a snapshot is due; a purge is completed then
	}
	return err
}

// maintained saves a snapshot and removes data, if these are due according to the Binding b.
func (s *Sender) maintained(ctx context.Context, b *Binding) (err error) {
	if b.Snapshot.Erase && !b.Snapshot.Now { // the snapshot that the purge needs is saved already
		if err = s.erase(ctx, b); errors.Is(err, errEnded) {
			return err
		}
	}
	begun := s.o.Clock()
	if !s.due(b, begun) {
		return err
	}
	m, serr := s.save(ctx, b)
	if serr != nil {
		return errors.Join(err, serr)
	}
	if err := s.change(ctx, b, func(d *Due) {
		*d = Due{Erase: d.Erase, Clean: d.Clean, At: m.Begin.LSN, Time: begun}
	}); err != nil {
		return err
	}
	s.mu.Lock()
	s.status.Snapshot = m.Time
	s.mu.Unlock()
	if b.Snapshot.Erase && b.Snapshot.Now {
		err = s.erase(ctx, b)
	}
	return errors.Join(err, s.prune(ctx, b, m.Time))
}

// change applies the function change to Binding.Snapshot, the record of what is due, and makes the result durable. It
// changes nothing if, since b was read, this sender has begun another epoch or has requested one, because that epoch
// has its own record.
func (s *Sender) change(ctx context.Context, b *Binding, change func(d *Due)) error {
	return s.rebind(ctx, func(now *Binding) {
		if now.Epoch == b.Epoch && now.Request == uuid.Nil {
			change(&now.Snapshot)
		}
	})
}

// due reports whether a snapshot is due. A clock that was set back by Options.SnapshotEvery or more makes a snapshot
// due, too.
func (s *Sender) due(b *Binding, now time.Time) bool {
	d := &b.Snapshot
	passed := now.Sub(d.Time)
	return d.Now || passed >= s.o.SnapshotEvery || -passed >= s.o.SnapshotEvery ||
		s.source.Durable()-min(d.At, s.source.Durable()) >= s.o.SnapshotBytes
}

// errEnded means that a snapshot must be abandoned: while it was being made, the log has ended in a new epoch, or a
// Round has begun an epoch at the remote.
var errEnded = errors.New("the log has ended while a snapshot was made")

// confirm returns nil if the newest entry of the remote still belongs to the epoch of the Binding b, and ends at a
// mark that the log has. Only then may this sender save a snapshot or remove data there: it must not remove data of
// another sender. The error is errEnded if the log has ended or this sender has begun another epoch.
func (s *Sender) confirm(ctx context.Context, b *Binding) error {
	if has := s.remote.ID(); has != b.Remote {
		return &LostError{Place: s.remote.Place(), Want: b.Remote, Has: has}
	}
	head, err := s.remote.Head(ctx)
	if err != nil {
		return err
	}
	if now := s.bound(); now.Epoch != b.Epoch || now.Request != uuid.Nil {
		return errEnded
	}
	if err := s.mayFollow(*b, head); err != nil {
		return err
	}
	if err := s.follows(ctx, b, head); !errors.Is(err, errAgain) {
		return err
	}
	return errEnded
}

// save makes a snapshot of the store and saves it at the remote, for the epoch of the Binding b. It returns the
// description of the snapshot.
func (s *Sender) save(ctx context.Context, b *Binding) (*remote.Snapshot, error) {
	if err := s.confirm(ctx, b); err != nil {
		return nil, err
	}
	id, err := s.newID()
	if err != nil {
		return nil, err
	}
	snap, err := s.source.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	m := &remote.Snapshot{ID: id, Geometry: s.source.Past().Geometry, Log: b.Log, Epoch: b.Epoch,
		Begin: snap.Begin(), Machine: b.Machine, Format: remote.Format, Time: s.o.Clock()}
	if err := s.remote.Save(ctx, m, &ending{snap, m, s.o.Clock}); err != nil {
		return nil, err
	}
	if err := s.confirm(ctx, b); err != nil { // after a purge the snapshot may contain data that the purge has erased
		if derr := s.remote.Drop(ctx, m.ID); derr != nil {
			return nil, derr
		}
		return nil, err
	}
	return m, nil
}

// ending reads the bytes of a snapshot. At their end it sets End and Time of the description m.
type ending struct {
	Snapshot
	m     *remote.Snapshot
	clock func() time.Time
}

// Read reads bytes of the snapshot, as io.Reader.
func (e *ending) Read(b []byte) (int, error) {
	n, err := e.Snapshot.Read(b)
	if err == io.EOF { // an error that wraps io.EOF is not the end
		e.m.End, e.m.Time = e.End(), e.clock()
	}
	return n, err
}

// erase is called after a purge. It removes everything before the first snapshot of the binding's epoch, because that
// snapshot was begun after the purge. Earlier snapshots without purged data stay; the pieces of the epoch, which were
// sent after the purge, complete them. If the epoch has no snapshot, erase removes nothing, and a snapshot becomes due.
// If the description of a snapshot is damaged, erase still removes the others, and returns the error, because the
// damaged snapshot may have purged data.
func (s *Sender) erase(ctx context.Context, b *Binding) error {
	if err := s.confirm(ctx, b); err != nil {
		return err
	}
	list, err := s.remote.Snapshots(ctx)
	if err != nil && !errors.Is(err, errs.ErrCorrupt) {
		return err
	}
	SortSnapshots(list)
	first := slices.IndexFunc(list, func(m remote.Snapshot) bool { return m.Epoch == b.Epoch && m.Log == b.Log })
	if first < 0 {
		b.Snapshot.Now = true
		return errors.Join(err, s.change(ctx, b, func(d *Due) { d.Now = true }))
	}
	kept, kerr := s.keeps(ctx, b, list[:first])
	if kerr != nil {
		return kerr
	}
	before := list[first].Begin.LSN
	for i := range kept {
		before = min(before, kept[i].Begin.LSN)
	}
	if _, err := s.remote.Prune(ctx, b.Epoch, before); err != nil {
		return err
	}
	for i := range list[:first] {
		if slices.ContainsFunc(kept, func(m remote.Snapshot) bool { return m.ID == list[i].ID }) {
			continue
		}
		err = errors.Join(err, s.remote.Drop(ctx, list[i].ID))
	}
	if err != nil {
		return err // Erase is still set
	}
	return s.change(ctx, b, func(d *Due) { d.Erase, d.Clean = false, 0 })
}

// SortSnapshots sorts snapshots by epoch and then by the mark at which they begin, the oldest first. It uses the times
// only if these are equal, because clocks may be wrong.
func SortSnapshots(list []remote.Snapshot) {
	slices.SortFunc(list, func(a, b remote.Snapshot) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Begin.LSN, b.Begin.LSN), a.Time.Compare(b.Time))
	})
}

// prune removes the data that is not needed to restore any moment within Options.Keep, if two newer snapshots exist. A
// snapshot may have a time in the future, because the clock was wrong when the snapshot was made. So that prune does
// not remove too much then, it uses as the present time at most the time of the second newest snapshot plus
// Options.SnapshotEvery.
func (s *Sender) prune(ctx context.Context, b *Binding, now time.Time) error {
	if err := s.confirm(ctx, b); err != nil {
		return err
	}
	list, err := s.remote.Snapshots(ctx)
	if err != nil && !errors.Is(err, errs.ErrCorrupt) {
		return err
	}
	list = slices.DeleteFunc(list, func(m remote.Snapshot) bool { return m.Epoch > b.Epoch })
	SortSnapshots(list)
	if n := len(list); n > 1 {
		if most := list[n-2].Time.Add(s.o.SnapshotEvery); now.After(most) {
			now = most
		}
	}
	oldest := -1
	for i := 0; i < len(list)-2; i++ {
		if !list[i].Time.After(now.Add(-s.o.Keep)) {
			oldest = i
		}
	}
	if oldest < 0 {
		return nil
	}
	if _, err := s.remote.Prune(ctx, list[oldest].Epoch, list[oldest].Begin.LSN); err != nil {
		return err
	}
	for i := range oldest {
		if err := s.remote.Drop(ctx, list[i].ID); err != nil {
			return err
		}
	}
	return nil
}
