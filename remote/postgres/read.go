package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"iter"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

const (
	pageBytes = 4 << 20 // number of bytes of pieces that are read at once; the last piece may exceed it
	pageRows  = 256
)

// Read returns the pieces of an epoch; see remote.Remote. No transaction is open while the caller has a piece.
func (r *Remote) Read(ctx context.Context, epoch uint64, from segment.LSN) iter.Seq2[remote.Piece, error] {
	return func(yield func(remote.Piece, error) bool) {
		g := reading{r: r, epoch: min(epoch, math.MaxInt64), from: min(from, math.MaxInt64), rows: pageRows}
		for more := true; more; {
			var err error
			g.found = g.found[:0]
			more, err = g.page(ctx)
			for _, f := range g.found {
				if !yield(f.piece, f.err) {
					return
				}
			}
			if err != nil {
				yield(remote.Piece{}, err)
				return
			}
		}
	}
}

// reading is the state of one call of Read.
type reading struct {
	r     *Remote
	epoch uint64
	from  segment.LSN
	next  uint64 // number of the next entry, 0 at the beginning
	most  uint64 // number of the newest entry
	rows  int    // maximum number of entries of the next page
	end   past.Mark
	found []found
}

// found is a piece, or an error that reports damage in the place of a piece.
type found struct {
	piece remote.Piece
	err   error
}

// page reads the next entries of the epoch into g.found. more is false if no entries follow these.
func (g *reading) page(ctx context.Context) (more bool, err error) {
	begin := *g
	err = g.r.transact(ctx, "reading", noLock, func(ctx context.Context, c *pgx.Conn, s *state) error {
		found := g.found[:0]
		*g = begin
		g.found, g.most = found, uint64(s.number)
		if g.next == 0 {
			var err error
			if more, err = g.start(ctx, c); err != nil || !more {
				return err
			}
		}
		entries, err := g.query(ctx, c)
		if err != nil {
			return err
		}
		more = len(entries) > 0
		for _, e := range entries {
			if e.number != g.next {
				if err := g.gap(ctx, c); err != nil {
					return err
				}
			}
			g.add(e)
		}
		if more || g.epoch != uint64(s.epoch) || g.next > uint64(s.number) {
			return nil
		}
		return g.gap(ctx, c)
	})
	if g.next > 0 && isDamage(err) {
		return g.unreadable(err)
	}
	return more, err
}

// unreadable handles the error err of a server that could not read a page of entries. From then on, each page has one
// entry. If the page had only one entry already, unreadable records this entry as damaged and skips it. more is false
// if no entries follow.
func (g *reading) unreadable(err error) (more bool, _ error) {
	g.found = g.found[:0]
	if g.rows > 1 {
		g.rows = 1
		return true, nil
	}
	g.found = append(g.found, found{err: g.r.damaged(entryName(int64(g.next)), err)})
	g.next++
	g.end = past.Mark{}
	return g.next <= g.most, nil
}

// start sets g.next to the number of the first entry that Read must return: the one that contains the position g.from,
// or the one that begins there. more is false if the epoch ends at that position.
func (g *reading) start(ctx context.Context, c *pgx.Conn) (more bool, err error) {
	var before, first, begins *int64
	err = c.QueryRow(ctx, "SELECT (SELECT max(number) FROM "+g.r.schema+".entries WHERE epoch = $1 AND to_lsn <= $2), "+
		"number, from_lsn FROM (SELECT 1) AS one LEFT JOIN (SELECT number, from_lsn FROM "+g.r.schema+
		".entries WHERE epoch = $1 AND to_lsn > $2 ORDER BY to_lsn LIMIT 1) AS e ON true",
		int64(g.epoch), int64(g.from)).Scan(&before, &first, &begins)
	truncated := &remote.TruncatedError{Place: g.r.Place(), Epoch: g.epoch, From: g.from}
	switch {
	case err != nil:
		return false, err
	case first == nil && before == nil:
		return false, truncated
	case first == nil:
		return false, nil
	case before != nil:
		g.next = uint64(*before) + 1
	case uint64(*begins) <= g.from:
		g.next = uint64(*first)
	default:
		truncated.Oldest = uint64(*begins)
		return false, truncated
	}
	return true, nil
}

// query returns the next entries of the epoch, with the bytes of their pieces.
func (g *reading) query(ctx context.Context, c *pgx.Conn) (all []*entry, err error) {
	rows, err := c.Query(ctx, "SELECT "+columns+", bytes FROM (SELECT *, sum(size) OVER (ORDER BY number) - size AS "+
		"before FROM "+g.r.schema+".entries WHERE epoch = $1 AND number >= $2 ORDER BY number LIMIT $3) AS page "+
		"WHERE before < $4 ORDER BY number", int64(g.epoch), int64(g.next), int64(g.rows), int64(pageBytes))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		e, err := g.r.scan(rows, true)
		if err != nil && !errors.Is(err, errs.ErrCorrupt) {
			return nil, err
		}
		if err != nil {
			e.readBytes = nil
		}
		all = append(all, e)
	}
	return all, rows.Err()
}

// gap is called if an entry is missing. If the entry was pruned, gap returns a *remote.TruncatedError. Otherwise the
// entry was lost, and gap records it as damaged.
func (g *reading) gap(ctx context.Context, c *pgx.Conn) error {
	var floor int64
	if err := c.QueryRow(ctx, "SELECT floor FROM "+g.r.schema+".remote").Scan(&floor); err != nil {
		return err
	}
	if uint64(floor) > g.next {
		return &remote.TruncatedError{Place: g.r.Place(), Epoch: g.epoch, From: g.from}
	}
	g.found = append(g.found, found{err: g.r.damaged(entryName(int64(g.next)), errMissing)})
	g.end = past.Mark{}
	return nil
}

// add verifies an entry that was read. It adds the piece of the entry to g.found, or an error if the entry is damaged.
func (g *reading) add(e *entry) {
	g.next = e.number + 1
	bad := error(nil)
	switch {
	case e.sum() != e.digest:
		bad = errDigest
	case !e.valid():
		bad = errForm
	case int64(len(e.readBytes)) != e.size || sha256.Sum256(e.readBytes) != e.byteSum:
		bad = errBytes
	case g.end != (past.Mark{}) && e.from != g.end:
		bad = errString
	}
	if bad != nil {
		g.found, g.end = append(g.found, found{err: g.r.damaged(entryName(int64(e.number)), bad)}), past.Mark{}
		return
	}
	g.from, g.end = e.to.LSN, e.to
	if e.kind == kindPiece {
		g.found = append(g.found, found{piece: remote.Piece{From: e.from, To: e.to, Epoch: e.epoch, Machine: e.machine,
			Request: e.request, Format: e.format, Time: e.time, Bytes: e.readBytes}})
	}
}

// Epochs returns the epochs of which entries are kept; see remote.Remote.
func (r *Remote) Epochs(ctx context.Context) (all []remote.Epoch, err error) {
	err = r.transact(ctx, "reading", noLock, func(ctx context.Context, c *pgx.Conn, _ *state) error {
		all = nil
		// One statement, so that an epoch is not pruned between two.
		rows, err := c.Query(ctx, "SELECT "+columns+", entries FROM (SELECT *, count(*) OVER same AS entries, "+
			"row_number() OVER (same ORDER BY number) AS up, row_number() OVER (same ORDER BY number DESC) AS down "+
			"FROM "+r.schema+".entries WINDOW same AS (PARTITION BY epoch)) AS e WHERE up = 1 OR down = 1 ORDER BY number")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			count := counted{row: rows}
			e, err := r.scan(&count, false)
			if err != nil {
				return err
			}
			if n := len(all); n == 0 || all[n-1].Number != e.epoch {
				all = append(all, remote.Epoch{Number: e.epoch, Geometry: e.geometry, Log: e.log, From: e.from,
					Entries: uint64(count.entries), Began: e.time})
			}
			last := &all[len(all)-1]
			last.To, last.Ended = e.to, e.time
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// counted is a pgx.Row with one more column after the columns of an entry: a number of entries.
type counted struct {
	row     pgx.Row
	entries int64
}

// Scan reads the row.
func (c *counted) Scan(to ...any) error { return c.row.Scan(append(to, &c.entries)...) }
