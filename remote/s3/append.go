package s3

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/remote"
)

const pollEvery = time.Second

// Head returns the newest entry; see remote.Remote.
func (r *Remote) Head(ctx context.Context) (remote.Position, error) {
	d, _, err := r.load(ctx)
	if err != nil {
		return remote.Position{}, err
	}
	return d.newest(), nil
}

// Append appends a piece; see remote.Remote.
func (r *Remote) Append(ctx context.Context, p *remote.Piece) error {
	if err := p.Valid(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.change(ctx, func(d *document) (bool, error) {
		at := d.newest()
		if at.Number > 0 && at.Epoch == p.Epoch && at.At == p.To {
			return false, nil // added before
		}
		if at.Number == 0 || at.Epoch != p.Epoch || at.At != p.From {
			return false, &remote.MovedError{Place: r.Place(), Head: at}
		}
		return true, r.add(ctx, d, entry{Kind: kindPiece, Number: at.Number + 1, Epoch: p.Epoch,
			Store: at.Geometry.UUID, Segment: at.Geometry.Size, Log: at.Log, From: mark(p.From), To: mark(p.To),
			Machine: p.Machine, Request: p.Request, Format: p.Format, Time: p.Time.UnixMicro()}, p.Bytes)
	})
}

// Begin begins an epoch; see remote.Remote.
func (r *Remote) Begin(ctx context.Context, a *remote.Anchor) (epoch uint64, err error) {
	if err := a.Valid(); err != nil {
		return 0, err
	}
	err = r.change(ctx, func(d *document) (bool, error) {
		at := d.newest()
		store := uuid.UUID(at.Geometry.UUID)
		switch {
		case store != uuid.Nil && store != a.Geometry.UUID:
			return false, &remote.OtherStoreError{Place: r.Place(), Has: store, Want: a.Geometry.UUID}
		case at.Number > 0 && at.Request == a.Request && at.At == a.At && at.Log == a.Log &&
			d.Entries[len(d.Entries)-1].Kind == kindAnchor:
			epoch = at.Epoch
			return false, nil // begun before
		case at.Number != a.Follows:
			return false, &remote.MovedError{Place: r.Place(), Head: at}
		}
		epoch = at.Epoch + 1
		return true, r.add(ctx, d, entry{Kind: kindAnchor, Number: at.Number + 1, Epoch: epoch,
			Store: a.Geometry.UUID, Segment: a.Geometry.Size, Log: a.Log, From: mark(a.At), To: mark(a.At),
			Machine: a.Machine, Request: a.Request, Format: a.Format, Time: a.Time.UnixMicro()}, nil)
	})
	if err != nil {
		return 0, err
	}
	return epoch, nil
}

// Wait blocks until there is an entry after the one with the number beyond; see remote.Remote. It asks once a second.
func (r *Remote) Wait(ctx context.Context, beyond uint64) error {
	for tag := ""; ; {
		now, err := r.tagOf(ctx, headName)
		if err == nil && now != tag {
			var d *document
			if d, tag, err = r.load(ctx); err == nil && d.newest().Number > beyond {
				return nil
			}
		}
		if err != nil {
			if ctx.Err() != nil {
				return errors.Join(ctx.Err(), err)
			}
			return err
		}
		if err := r.o.Sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}
