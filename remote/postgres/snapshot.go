package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/wal/past"
)

const (
	partSize = 1 << 20 // bytes of a row of parts; the last one may have fewer
	// leftAfter is the age, by the clock of the database, from which an incomplete snapshot counts as left by a
	// process that was killed. If the process is in fact alive and only slow, its Save fails, because its rows were
	// removed.
	leftAfter = "interval '48 hours'"
)

const described = "id, store, segment, log, epoch, begin_lsn, begin_sum, end_lsn, end_sum, machine, format, time, " +
	"size, sha256, digest"

// snapshotSum returns the SHA-256 of the values of a snapshot's columns, as little-endian numbers in the order of the
// code.
func snapshotSum(s *remote.Snapshot) [32]byte {
	le := binary.LittleEndian
	b := []byte("varve snapshot 1\n")
	for _, n := range []uint64{s.Geometry.Size, s.Log, s.Epoch, s.Begin.LSN, s.Begin.Sum, s.End.LSN, s.End.Sum,
		uint64(s.Format), uint64(s.Time.UnixMicro()), uint64(s.Size)} {
		b = le.AppendUint64(b, n)
	}
	for _, id := range [][16]byte{s.ID, s.Geometry.UUID, s.Machine} {
		b = append(b, id[:]...)
	}
	return sha256.Sum256(append(b, s.SHA256[:]...))
}

// scanSnapshot reads the description of a snapshot from a row.
func (r *Remote) scanSnapshot(row pgx.Row) (s remote.Snapshot, err error) {
	var n [10]int64
	var sum, digest []byte
	if err := row.Scan((*[16]byte)(&s.ID), (*[16]byte)(&s.Geometry.UUID), &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6],
		(*[16]byte)(&s.Machine), &n[7], &s.Time, &s.Size, &sum, &digest); err != nil {
		return s, err
	}
	s.Geometry.Size, s.Log, s.Epoch = uint64(n[0]), uint64(n[1]), uint64(n[2])
	s.Begin, s.End = past.Mark{LSN: uint64(n[3]), Sum: uint64(n[4])}, past.Mark{LSN: uint64(n[5]), Sum: uint64(n[6])}
	s.Format, s.Time = uint32(n[7]), s.Time.UTC()
	copy(s.SHA256[:], sum)
	want := snapshotSum(&s)
	switch {
	case !bytes.Equal(digest, want[:]) || len(sum) != len(s.SHA256):
		err = errDigest
	case s.Valid() != nil || s.Size < 0:
		err = errForm
	}
	if err != nil {
		return s, r.damaged("snapshot "+s.ID.String(), err)
	}
	return s, nil
}

// Save stores a snapshot; see remote.Remote. Many transactions store the bytes, and Save does not wait until these are
// durable. The last transaction, which completes the snapshot, checks that all parts are there and makes them durable.
func (r *Remote) Save(ctx context.Context, s *remote.Snapshot, body io.Reader) error {
	err := r.transact(ctx, "storing", noLock, func(ctx context.Context, c *pgx.Conn, _ *state) error {
		tag, err := c.Exec(ctx, "INSERT INTO "+r.schema+".snapshots (id, complete, began) VALUES ($1, false, now()) "+
			"ON CONFLICT DO NOTHING", asUUID(s.ID))
		if err == nil && tag.RowsAffected() == 0 {
			return fmt.Errorf("%s: snapshot %s: %w: a snapshot with this ID exists", r.Place(), s.ID, errs.ErrInvalid)
		}
		return err
	})
	if err != nil {
		return err
	}
	size, sum, err := r.saveParts(ctx, s.ID, body)
	if err == nil {
		s.Size, s.SHA256 = size, sum
		s.Time = s.Time.Truncate(time.Microsecond)
		err = s.Valid()
	}
	if err == nil {
		err = r.readBack(ctx, s)
	}
	if err == nil {
		return r.complete(ctx, s)
	}
	_ = r.drop(context.WithoutCancel(ctx), s.ID, "AND NOT complete")
	return err
}

func (r *Remote) saveParts(ctx context.Context, id uuid.UUID, body io.Reader) (size int64, sum [32]byte, err error) {
	return remote.Parts(body, partSize, func(n int64, part []byte) error {
		return r.transact(ctx, "storing", noLock, func(ctx context.Context, c *pgx.Conn, _ *state) error {
			if _, err := c.Exec(ctx, "SET LOCAL synchronous_commit TO off"); err != nil {
				return err
			}
			_, err := c.Exec(ctx, "INSERT INTO "+r.schema+".parts VALUES ($1, $2, now(), $3)", asUUID(id), n, part)
			return err
		})
	})
}

// readBack reads the stored bytes of a snapshot, and compares their SHA-256 with that of the bytes that were written.
func (r *Remote) readBack(ctx context.Context, s *remote.Snapshot) error {
	sum, err := remote.Sum(ctx, r.body(ctx, s.ID, s.Size))
	if err == nil && sum != s.SHA256 {
		err = r.damaged("snapshot "+s.ID.String(), errors.New("the bytes in the database differ from the bytes that "+
			"were stored"))
	}
	return err
}

// complete writes the description of a snapshot, which makes the snapshot complete. It first checks the number of
// parts again: if the server has crashed since readBack, it may have lost parts that were not durable yet.
func (r *Remote) complete(ctx context.Context, s *remote.Snapshot) error {
	digest := snapshotSum(s)
	return r.transact(ctx, "storing", noLock, func(ctx context.Context, c *pgx.Conn, _ *state) error {
		tag, err := c.Exec(ctx, "UPDATE "+r.schema+".snapshots SET complete = true, store = $2, segment = $3, log = $4, "+
			"epoch = $5, begin_lsn = $6, begin_sum = $7, end_lsn = $8, end_sum = $9, machine = $10, format = $11, time = $12, "+
			"size = $13, sha256 = $14, digest = $15 WHERE id = $1 AND (SELECT count(*) FROM "+r.schema+
			".parts WHERE snapshot = $1) = $16", asUUID(s.ID), asUUID(s.Geometry.UUID), int64(s.Geometry.Size), int64(s.Log),
			int64(s.Epoch), int64(s.Begin.LSN), int64(s.Begin.Sum), int64(s.End.LSN), int64(s.End.Sum), asUUID(s.Machine),
			int64(s.Format), s.Time, s.Size, s.SHA256[:], digest[:], (s.Size+partSize-1)/partSize)
		if err == nil && tag.RowsAffected() == 0 {
			return fmt.Errorf("%s: the server has lost bytes of snapshot %s: store the snapshot again", r.Place(), s.ID)
		}
		return err
	})
}

// Snapshots returns the complete snapshots; see remote.Remote.
func (r *Remote) Snapshots(ctx context.Context) (all []remote.Snapshot, err error) {
	var bad error
	err = r.transact(ctx, "reading", noLock, func(ctx context.Context, c *pgx.Conn, _ *state) error {
		all, bad = nil, nil
		rows, err := c.Query(ctx, "SELECT "+described+" FROM "+r.schema+".snapshots WHERE complete ORDER BY time, id")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			s, err := r.scanSnapshot(rows)
			switch {
			case err == nil:
				all = append(all, s)
			case errors.Is(err, errs.ErrCorrupt):
				bad = errors.Join(bad, err)
			default:
				return err
			}
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return all, bad
}

// Open opens the bytes of a snapshot; see remote.Remote.
func (r *Remote) Open(ctx context.Context, id uuid.UUID) (remote.Body, error) {
	var s remote.Snapshot
	err := r.transact(ctx, "reading", noLock, func(ctx context.Context, c *pgx.Conn, _ *state) (err error) {
		s, err = r.scanSnapshot(c.QueryRow(ctx, "SELECT "+described+" FROM "+r.schema+".snapshots WHERE complete AND id = $1",
			asUUID(id)))
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("%s: snapshot %s: %w", r.Place(), id, errs.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return r.body(context.WithoutCancel(ctx), id, s.Size), nil
}

// body returns a Body with the bytes of a snapshot. The Body fetches whole parts.
func (r *Remote) body(ctx context.Context, id uuid.UUID, size int64) remote.Body {
	return remote.NewBody(ctx, size, func(ctx context.Context, at, _ int64) (data []byte, begin int64, err error) {
		part := at / partSize
		if data, err = r.fetch(ctx, id, part); err != nil {
			return nil, 0, err
		}
		if int64(len(data)) != min(partSize, size-part*partSize) {
			return nil, 0, r.damaged("snapshot "+id.String(),
				fmt.Errorf("part %d is missing or has another length", part))
		}
		return data, part * partSize, nil
	})
}

// fetch returns the bytes of one part of a snapshot. data is nil if the part is missing. If the snapshot was removed,
// the error matches errs.ErrNotFound.
func (r *Remote) fetch(ctx context.Context, id uuid.UUID, part int64) (data []byte, err error) {
	err = r.transact(ctx, "reading", noLock, func(ctx context.Context, c *pgx.Conn, _ *state) error {
		err := c.QueryRow(ctx, "SELECT bytes FROM "+r.schema+".parts WHERE snapshot = $1 AND number = $2",
			asUUID(id), part).Scan(&data)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		var there bool
		if err := c.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+r.schema+".snapshots WHERE id = $1)",
			asUUID(id)).Scan(&there); err != nil || there {
			return err
		}
		return fmt.Errorf("%s: snapshot %s: %w: it was dropped", r.Place(), id, errs.ErrNotFound)
	})
	return data, err
}

// Drop removes a snapshot; see remote.Remote.
func (r *Remote) Drop(ctx context.Context, id uuid.UUID) error { return r.drop(ctx, id, "") }

func (r *Remote) drop(ctx context.Context, id uuid.UUID, and string) error {
	return r.transact(ctx, "removing", noLock, func(ctx context.Context, c *pgx.Conn, _ *state) error {
		_, err := c.Exec(ctx, "DELETE FROM "+r.schema+".snapshots WHERE id = $1 "+and, asUUID(id))
		return err
	})
}

// sweepSnapshots removes the incomplete snapshots that were begun before leftAfter and have no part that was stored
// since then.
func (r *Remote) sweepSnapshots(ctx context.Context) error {
	return r.transact(ctx, "removing", noLock, func(ctx context.Context, c *pgx.Conn, _ *state) error {
		_, err := c.Exec(ctx, "DELETE FROM "+r.schema+".snapshots AS s WHERE NOT complete AND began < now() - "+leftAfter+
			" AND NOT EXISTS (SELECT FROM "+r.schema+".parts AS p WHERE p.snapshot = s.id AND stored >= now() - "+leftAfter+")")
		return err
	})
}
