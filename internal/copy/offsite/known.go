package offsite

import (
	"context"
	"errors"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/sealed"
	"github.com/varve-db/varve/segment"
)

// Proven returns nil if a piece or a snapshot of the copy ends at the position in known, or at a later one. Otherwise
// it returns a *sealed.OlderError. If the copy is sealed, only signed pieces and snapshots count. The newest entry
// that the remote claims to have proves nothing.
func Proven(ctx context.Context, r remote.Remote, known sealed.Known) error {
	epochs, err := r.Epochs(ctx)
	if err != nil && !errors.Is(err, errs.ErrCorrupt) {
		return err
	}
	best := remote.Position{}
	for _, e := range slices.Backward(epochs) {
		if e.Number < known.Epoch {
			break
		}
		from := e.From.LSN
		if e.Number == known.Epoch {
			from = max(from, known.Position-1) // the piece that ends at the position contains this one
		}
		if done, err := provenBy(ctx, r, e.Number, from, known, &best); done || err != nil {
			return err
		}
	}
	list, err := r.Snapshots(ctx)
	if err != nil && !errors.Is(err, errs.ErrCorrupt) {
		return err
	}
	for _, s := range slices.Backward(list) {
		at := remote.Position{Epoch: s.Epoch, At: s.End}
		if known.Check(r.Place(), &at) != nil {
			continue
		}
		b, err := r.Open(ctx, s.ID) // verifies that it is signed
		if err == nil {
			return b.Close()
		}
		if !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, errs.ErrNotFound) {
			return err
		}
	}
	return known.Check(r.Place(), &best)
}

// provenBy reports whether a sound piece of an epoch ends at or after the position in known. from is the position at
// which it begins to read the pieces; see remote.Remote.Read. If no such piece exists, provenBy sets best to the
// furthest end of a sound piece, unless best is already further.
func provenBy(ctx context.Context, r remote.Remote, epoch uint64, from segment.LSN, known sealed.Known,
	best *remote.Position) (bool, error) {
	for p, err := range r.Read(ctx, epoch, from) {
		if errors.Is(err, errs.ErrCorrupt) {
			continue
		}
		if errors.Is(err, errs.ErrTruncated) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		at := remote.Position{Epoch: p.Epoch, At: p.To}
		if known.Check(r.Place(), &at) == nil {
			return true, nil
		}
		if at.Epoch > best.Epoch || at.Epoch == best.Epoch && at.At.LSN > best.At.LSN {
			*best = at
		}
	}
	return false, nil
}
