package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// verifier is implemented by a Remote whose pieces and snapshots are encrypted, so that only the Remote itself can
// verify them: the Remote of package remote/sealed.
type verifier interface {
	VerifyPiece(p *Piece, geo segment.Geometry) error
	// VerifySnapshot returns an error that matches errs.ErrNotFound if there is no such snapshot.
	VerifySnapshot(ctx context.Context, id uuid.UUID) error
}

// Verified is the result of Verify.
type Verified struct {
	Epochs    int
	Pieces    int
	Bytes     int64 // number of bytes of the pieces
	Snapshots []VerifiedSnapshot
	Damage    []error // damage; each error matches errs.ErrCorrupt
	// Complete reports whether a snapshot exists that sound pieces complete up to the newest entry, and whose bytes, as
	// far as they were read, are sound.
	Complete bool
	// Restorable reports whether the same is true of a snapshot whose bytes were read. It is false if none was read.
	Restorable bool
}

// VerifiedSnapshot is the result of Verify for one snapshot.
type VerifiedSnapshot struct {
	Snapshot
	To  past.Mark // mark up to which pieces complete it; zero if they do not reach its End
	Err error     // damage of its bytes
	by  uint64    // epoch whose pieces complete it
}

// Verify reads all pieces, and verifies every frame and the hash chain over all frames. If data is set, it also
// verifies the bytes of all snapshots. Verify continues after damage, and ends at any other error. Pieces and snapshots
// that are added or removed during the verification do not count as damage.
func Verify(ctx context.Context, r Remote, data bool) (*Verified, error) {
	v := &Verified{}
	head, err := r.Head(ctx)
	if err = v.damage(err); err != nil {
		return v, err
	}
	epochs, err := r.Epochs(ctx)
	if err = v.damage(err); err != nil {
		return v, err
	}
	list, err := r.Snapshots(ctx)
	if err = v.damage(err); err != nil {
		return v, err
	}
	for _, s := range list {
		v.Snapshots = append(v.Snapshots, VerifiedSnapshot{Snapshot: s, by: s.CompletedBy(epochs)})
	}
	v.Epochs = len(epochs)
	for i := range epochs {
		if err := v.epoch(ctx, r, &epochs[i]); err != nil {
			return v, err
		}
	}
	all := v.Snapshots
	v.Snapshots = nil
	for i := range all {
		s := &all[i]
		if s.To.LSN < s.End.LSN {
			s.To = past.Mark{}
		}
		if data {
			if s.Err = hashed(ctx, r, &s.Snapshot); errors.Is(s.Err, errs.ErrNotFound) {
				continue // dropped meanwhile
			}
			if err := v.damage(s.Err); err != nil {
				return v, err
			}
		}
		v.Snapshots = append(v.Snapshots, *s)
		if s.Err == nil && s.by == head.Epoch && head.Number > 0 && s.To.LSN >= head.At.LSN {
			v.Complete, v.Restorable = true, data
		}
	}
	return v, nil
}

// damage adds err to v.Damage and returns nil, if err matches errs.ErrCorrupt. It returns any other error, and nil,
// unchanged.
func (v *Verified) damage(err error) error {
	if err == nil || !errors.Is(err, errs.ErrCorrupt) {
		return err
	}
	v.Damage = append(v.Damage, err)
	return nil
}

// epoch verifies the pieces of the epoch e. For each snapshot that these pieces complete, it sets To to the mark up to
// which the pieces are undamaged and without a gap.
func (v *Verified) epoch(ctx context.Context, r Remote, e *Epoch) error {
	at := e.From
	v.follow(e.Number, past.Mark{}, at)
	for p, err := range r.Read(ctx, e.Number, e.From.LSN) {
		if errors.Is(err, errs.ErrTruncated) {
			return nil // pruned meanwhile
		}
		if err == nil {
			v.Pieces++
			v.Bytes += int64(len(p.Bytes))
			if sealed, ok := r.(verifier); ok {
				err = sealed.VerifyPiece(&p, e.Geometry)
			} else {
				err = p.Check(e.Geometry)
			}
		}
		if err != nil {
			if err := v.damage(err); err != nil {
				return err
			}
			at = past.Mark{}
			continue
		}
		if at.LSN != 0 && p.From != at {
			v.Damage = append(v.Damage, &errs.CorruptionError{Path: r.Place(), Offset: -1,
				Err: fmt.Errorf("epoch %d: a piece begins at position %d, but the piece before it ends at position "+
					"%d", e.Number, p.From.LSN, at.LSN)})
		}
		v.follow(e.Number, p.From, p.To)
		at = p.To
	}
	return nil
}

// follow records an undamaged piece of an epoch. The piece begins at the mark from and ends at the mark to. follow
// sets To of those snapshots that were complete up to from, or that begin within the piece. If from is the zero
// mark, there is no piece, and follow sets To of the snapshots that begin at to.
func (v *Verified) follow(epoch uint64, from, to past.Mark) {
	for i := range v.Snapshots {
		s := &v.Snapshots[i]
		within := from == s.Begin || from.LSN < s.Begin.LSN && s.Begin.LSN < to.LSN
		begins := s.Begin == to || from.LSN != 0 && within
		if s.by == epoch && (begins || from.LSN != 0 && s.To == from) {
			s.To = to
		}
	}
}

// hashed reads the bytes of a snapshot, and compares their hash with the hash in the snapshot's description. If there
// is no such snapshot, the error matches errs.ErrNotFound.
func hashed(ctx context.Context, r Remote, s *Snapshot) error {
	if sealed, ok := r.(verifier); ok {
		return sealed.VerifySnapshot(ctx, s.ID)
	}
	b, err := r.Open(ctx, s.ID)
	if err != nil {
		return err
	}
	size := b.Size()
	sum, err := Sum(ctx, b)
	if err != nil {
		return err
	}
	if size != s.Size || sum != s.SHA256 {
		return damagedSnapshot(r, s.ID)
	}
	return nil
}

func damagedSnapshot(r Remote, id uuid.UUID) error {
	return &errs.CorruptionError{Path: r.Place(), Offset: -1,
		Err: fmt.Errorf("the bytes of snapshot %s differ from the saved bytes", id)}
}
