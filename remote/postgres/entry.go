package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// The kinds of an entry.
const (
	kindAnchor = 0
	kindPiece  = 1
)

const mostPiece = 512 << 20 // bytes of a piece; PostgreSQL limits a value to 1 GiB, and a message too

// entry is a row of the table entries.
type entry struct {
	kind      int16
	number    uint64
	epoch     uint64
	geometry  segment.Geometry
	log       uint64
	from, to  past.Mark
	machine   uuid.UUID
	request   uuid.UUID
	format    uint32
	time      time.Time
	size      int64
	byteSum   [32]byte
	digest    [32]byte // checksum of the entry, as it was read
	readBytes []byte   // bytes of the piece; nil unless requested
}

const columns = "number, kind, epoch, store, segment, log, from_lsn, from_sum, to_lsn, to_sum, machine, request, " +
	"format, time, size, sha256, digest"

// sum returns the SHA-256 of the values of the entry's columns, as little-endian numbers in the order of the code.
func (e *entry) sum() [32]byte {
	le := binary.LittleEndian
	b := []byte("varve entry 1\n")
	b = le.AppendUint16(b, uint16(e.kind))
	for _, n := range []uint64{e.number, e.epoch, e.geometry.Size, e.log, e.from.LSN, e.from.Sum, e.to.LSN, e.to.Sum,
		uint64(e.format), uint64(e.time.UnixMicro()), uint64(e.size)} {
		b = le.AppendUint64(b, n)
	}
	for _, id := range [][16]byte{e.geometry.UUID, e.machine, e.request} {
		b = append(b, id[:]...)
	}
	return sha256.Sum256(append(b, e.byteSum[:]...))
}

func (e *entry) position() remote.Position {
	return remote.Position{Number: e.number, Geometry: e.geometry, Log: e.log, Epoch: e.epoch, At: e.to,
		Machine: e.machine, Request: e.request, Format: e.format, Time: e.time}
}

// valid reports whether the entry has only values that this or a compatible program can have written.
func (e *entry) valid() bool {
	switch {
	case e.kind != kindAnchor && e.kind != kindPiece, e.number == 0, e.epoch == 0, !e.geometry.Valid(), e.size < 0,
		e.size > min(mostPiece, remote.MostPiece(e.geometry)), e.kind == kindAnchor && (e.from != e.to || e.size != 0),
		e.kind == kindPiece && e.to.LSN <= e.from.LSN:
		return false
	}
	micro := e.time.UnixMicro()
	return micro >= 0 && micro <= past.MostTime
}

// scan reads an entry from a row. The query must have selected columns and, if withBytes is set, the bytes of the
// piece after them.
func (r *Remote) scan(row pgx.Row, withBytes bool) (*entry, error) {
	e := &entry{}
	var number, epoch, segmentSize, log, fromLSN, fromSum, toLSN, toSum, format int64
	var sum, digest []byte
	to := []any{&number, &e.kind, &epoch, (*[16]byte)(&e.geometry.UUID), &segmentSize, &log, &fromLSN, &fromSum, &toLSN,
		&toSum, (*[16]byte)(&e.machine), (*[16]byte)(&e.request), &format, &e.time, &e.size, &sum, &digest}
	if withBytes {
		to = append(to, &e.readBytes)
	}
	if err := row.Scan(to...); err != nil {
		return nil, err
	}
	e.number, e.epoch, e.geometry.Size, e.log = uint64(number), uint64(epoch), uint64(segmentSize), uint64(log)
	e.from = past.Mark{LSN: uint64(fromLSN), Sum: uint64(fromSum)}
	e.to = past.Mark{LSN: uint64(toLSN), Sum: uint64(toSum)}
	e.format, e.time = uint32(format), e.time.UTC()
	bad := error(nil)
	switch copy(e.byteSum[:], sum) + copy(e.digest[:], digest) {
	case 64:
		if e.sum() != e.digest {
			bad = errDigest
		} else if !e.valid() {
			bad = errForm
		}
	default:
		bad = errForm
	}
	if bad != nil {
		return e, r.damaged(entryName(number), bad)
	}
	return e, nil
}

func entryName(number int64) string { return fmt.Sprintf("entry %d", number) }

// asUUID returns an ID as an argument of the SQL type uuid.
func asUUID(id [16]byte) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }

// newest returns the newest entry, nil if nothing was sent yet.
func (r *Remote) newest(ctx context.Context, c *pgx.Conn, s *state) (*entry, error) {
	if s.number == 0 {
		return nil, nil
	}
	e, err := r.scan(c.QueryRow(ctx, "SELECT "+columns+" FROM "+r.schema+".entries WHERE number = $1", s.number), false)
	switch {
	case err == pgx.ErrNoRows:
		return nil, r.damaged(entryName(s.number), errMissing)
	case err != nil:
		return nil, err
	case e.epoch != uint64(s.epoch):
		return nil, r.damaged(entryName(s.number), errForm)
	}
	return e, nil
}

// add adds e as the entry after the newest one. data are the bytes of its piece. add sets the number, the size and the
// checksum of e. s is the row of the table remote, which the transaction must have locked.
func (r *Remote) add(ctx context.Context, c *pgx.Conn, s *state, e *entry, data []byte) error {
	e.number = uint64(s.number) + 1
	e.size, e.byteSum = int64(len(data)), sha256.Sum256(data)
	e.time = e.time.Truncate(time.Microsecond)
	digest := e.sum()
	_, err := c.Exec(ctx, "INSERT INTO "+r.schema+".entries ("+columns+", bytes) VALUES "+
		"($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
		int64(e.number), e.kind, int64(e.epoch), asUUID(e.geometry.UUID), int64(e.geometry.Size), int64(e.log),
		int64(e.from.LSN), int64(e.from.Sum), int64(e.to.LSN), int64(e.to.Sum), asUUID(e.machine), asUUID(e.request),
		int64(e.format), e.time, e.size, e.byteSum[:], digest[:], data)
	if err != nil {
		return err
	}
	// A second statement: another transaction cannot have come between, because of the lock.
	_, err = c.Exec(ctx, "UPDATE "+r.schema+".remote SET number = $1, epoch = $2, floor = GREATEST(floor, 1)",
		int64(e.number), int64(e.epoch))
	return err
}
