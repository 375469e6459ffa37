package postgres

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
)

const pollEvery = time.Second

// settle makes sure that, when this transaction commits, all earlier commits of other transactions are durable too:
// see the package comment.
func settle(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, "SELECT pg_logical_emit_message(true, 'varve', '')")
	return err
}

// Head returns the newest entry; see remote.Remote.
func (r *Remote) Head(ctx context.Context) (head remote.Position, err error) {
	err = r.transact(ctx, "reading", noLock, func(ctx context.Context, c *pgx.Conn, s *state) error {
		e, err := r.newest(ctx, c, s)
		if err != nil {
			return err
		}
		if head = (remote.Position{}); e != nil {
			head = e.position()
		}
		return settle(ctx, c)
	})
	if err != nil {
		return remote.Position{}, err
	}
	return head, nil
}

// Append appends a piece; see remote.Remote.
func (r *Remote) Append(ctx context.Context, p *remote.Piece) error {
	if err := p.Valid(); err != nil {
		return err
	}
	if len(p.Bytes) > mostPiece {
		return fmt.Errorf("%s: piece from %d to %d: %w: the piece has %d bytes, but PostgreSQL can store at most %d "+
			"-> copy the store to a folder or an "+
			"object store", r.Place(), p.From.LSN, p.To.LSN, errs.ErrTooLarge, len(p.Bytes), mostPiece)
	}
	if p.To.LSN > math.MaxInt64 || p.Epoch > math.MaxInt64 {
		return fmt.Errorf("%w: position %d or epoch %d is more than the largest number that PostgreSQL can store",
			errs.ErrInvalid, p.To.LSN, p.Epoch)
	}
	return r.change(ctx, "appending to", func(ctx context.Context, c *pgx.Conn, s *state) error {
		e, err := r.newest(ctx, c, s)
		if err != nil {
			return err
		}
		var at remote.Position
		if e != nil {
			at = e.position()
		}
		if e != nil && at.Epoch == p.Epoch && at.At == p.To {
			return settle(ctx, c) // added before
		}
		if e == nil || at.Epoch != p.Epoch || at.At != p.From {
			return &remote.MovedError{Place: r.Place(), Head: at}
		}
		return r.add(ctx, c, s, &entry{kind: kindPiece, epoch: p.Epoch, geometry: at.Geometry, log: at.Log, from: p.From,
			to: p.To, machine: p.Machine, request: p.Request, format: p.Format, time: p.Time}, p.Bytes)
	})
}

// Begin begins an epoch; see remote.Remote.
func (r *Remote) Begin(ctx context.Context, a *remote.Anchor) (epoch uint64, err error) {
	if err := a.Valid(); err != nil {
		return 0, err
	}
	if a.At.LSN > math.MaxInt64 {
		return 0, fmt.Errorf("%w: position %d is more than the largest number that PostgreSQL can store",
			errs.ErrInvalid, a.At.LSN)
	}
	err = r.change(ctx, "appending to", func(ctx context.Context, c *pgx.Conn, s *state) error {
		e, err := r.newest(ctx, c, s)
		if err != nil {
			return err
		}
		var at remote.Position
		if e != nil {
			at = e.position()
		}
		store := uuid.UUID(at.Geometry.UUID)
		switch {
		case e != nil && store != a.Geometry.UUID:
			return &remote.OtherStoreError{Place: r.Place(), Has: store, Want: a.Geometry.UUID}
		case e != nil && e.kind == kindAnchor && at.Request == a.Request && at.At == a.At && at.Log == a.Log:
			epoch = at.Epoch
			return settle(ctx, c) // begun before
		case at.Number != a.Follows:
			return &remote.MovedError{Place: r.Place(), Head: at}
		}
		epoch = at.Epoch + 1
		return r.add(ctx, c, s, &entry{kind: kindAnchor, epoch: epoch, geometry: a.Geometry, log: a.Log, from: a.At,
			to: a.At, machine: a.Machine, request: a.Request, format: a.Format, time: a.Time}, []byte{})
	})
	if err != nil {
		return 0, err
	}
	return epoch, nil
}

// change calls f in a transaction that has locked the one row of the table remote, and commits the transaction if f
// returns nil. doing describes the operation for messages.
func (r *Remote) change(ctx context.Context, doing string,
	f func(ctx context.Context, c *pgx.Conn, s *state) error) error {
	return r.transact(ctx, doing, lock, f)
}

// Wait blocks until there is an entry after the one with the number beyond; see remote.Remote. It asks once a second.
func (r *Remote) Wait(ctx context.Context, beyond uint64) error {
	for {
		there := false
		err := r.transact(ctx, "reading", noLock, func(ctx context.Context, c *pgx.Conn, s *state) error {
			if there = uint64(s.number) > beyond; !there {
				return nil
			}
			return settle(ctx, c)
		})
		if err != nil || there {
			return err
		}
		if err := r.o.Sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// Prune removes the oldest entries; see remote.Remote. It also removes what killed processes have left of snapshots.
func (r *Remote) Prune(ctx context.Context, epoch uint64, pos segment.LSN) (removed int, err error) {
	epoch, pos = min(epoch, math.MaxInt64), min(pos, math.MaxInt64)
	err = r.change(ctx, "pruning", func(ctx context.Context, c *pgx.Conn, s *state) error {
		removed = 0
		if s.number == 0 {
			return nil
		}
		floor := s.number
		var first *int64
		if err := c.QueryRow(ctx, "SELECT min(number) FROM "+r.schema+".entries WHERE epoch > $1 OR epoch = $1 "+
			"AND to_lsn > $2", int64(epoch), int64(pos)).Scan(&first); err != nil {
			return err
		}
		if first != nil {
			floor = min(floor, *first)
		}
		tag, err := c.Exec(ctx, "DELETE FROM "+r.schema+".entries WHERE number < $1", floor)
		if err != nil {
			return err
		}
		removed = int(tag.RowsAffected())
		_, err = c.Exec(ctx, "UPDATE "+r.schema+".remote SET floor = GREATEST(floor, $1)", floor)
		return err
	})
	if err != nil {
		return 0, err
	}
	return removed, r.sweepSnapshots(ctx)
}
