package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
)

const (
	mostIdle = 4 // number of connections that stay open for the next call
	// mostMessage is the maximum number of bytes of a message of the server: a row with the bytes of a piece, which
	// arrive as hexadecimal digits.
	mostMessage = min(2*mostPiece+64<<10, math.MaxInt32)
	silence     = time.Minute // time after which a connection without an answer counts as lost
	// settings is the SQL text that begins a transaction and sets its parameters. The values are valid only for this
	// transaction: see the package comment. With the limits on locks and pauses, a client that stops in the middle
	// does not block others for long.
	settings = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit TO on; " +
		"SET LOCAL statement_timeout TO 0; SET LOCAL lock_timeout TO '30s'; " +
		"SET LOCAL idle_in_transaction_session_timeout TO '60s'; SET LOCAL bytea_output TO hex; " +
		"SET LOCAL datestyle TO ISO; "
	// noLock and lock are the two possible ends of the SQL statement that reads the row of the table remote: with
	// lock, the statement locks the row.
	noLock = ""
	lock   = " FOR UPDATE"
)

// errCancel is the error that prevents the driver from sending requests to cancel a statement: see the package
// comment.
var errCancel = errors.New("a request to cancel is not sent")

// session is a connection to the server.
type session struct {
	conn *pgx.Conn
	raw  net.Conn
	// warned is the server's warning that leaves the outcome of the transaction open.
	warned atomic.Pointer[pgconn.Notice]
	// answered reports whether the server has answered the end of the last transaction.
	answered bool
}

// patient is a connection whose reads and writes fail when the server does not answer for some time.
type patient struct{ net.Conn }

func (p patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

func (p patient) Write(b []byte) (int, error) {
	if err := p.SetWriteDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

// dial connects to the server and returns the connection as a new session.
func (r *Remote) dial(ctx context.Context) (*session, error) {
	s := &session{}
	c := r.config.Copy()
	var connected atomic.Bool
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if connected.Load() {
			return nil, errCancel
		}
		raw, err := (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		s.raw = raw
		return patient{raw}, nil
	}
	c.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		f := pgproto3.NewFrontend(r, w)
		f.SetMaxBodyLen(mostMessage) // the driver takes memory for what a message claims
		return f
	}
	c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.Code == "01000" {
			s.warned.Store(n)
		}
	}
	c.ValidateConnect = func(ctx context.Context, c *pgconn.PgConn) error { // of several hosts the primary is taken
		results, err := c.Exec(ctx, "SELECT pg_is_in_recovery()").ReadAll()
		if err == nil && string(results[0].Rows[0][0]) == "t" {
			err = errReplica
		}
		return err
	}
	var err error
	if s.conn, err = pgx.ConnectConfig(ctx, c); err != nil {
		return nil, err
	}
	connected.Store(true)
	return s, nil
}

// close ends the session, and tells the server so.
func (s *session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.conn.Close(ctx)
}

// drop closes the connection without telling the server. The server completes the statement that it is executing.
func (s *session) drop() {
	_ = s.raw.Close()
	s.close()
	<-s.conn.PgConn().CleanupDone()
}

// take returns an idle session, or a new one if no session is idle. used is true for an idle one: the server may have
// closed that session in the meantime.
func (r *Remote) take(ctx context.Context) (s *session, used bool, err error) {
	r.mu.Lock()
	if n := len(r.idle); n > 0 {
		s = r.idle[n-1]
		r.idle = r.idle[:n-1]
	}
	r.mu.Unlock()
	if s != nil {
		return s, true, nil
	}
	s, err = r.dial(ctx)
	return s, false, err
}

// give keeps a session for the next call. It closes the session instead if a transaction may be open in it, or if
// enough sessions are kept.
func (r *Remote) give(s *session) {
	r.mu.Lock()
	keep := !r.closed && len(r.idle) < mostIdle && s.answered && !s.conn.IsClosed()
	if keep {
		r.idle = append(r.idle, s)
	}
	r.mu.Unlock()
	if !keep {
		s.drop()
	}
}

// state is the row of the table remote.
type state struct {
	id     uuid.UUID
	number int64 // number of the newest entry, 0 if there is no entry
	epoch  int64
	floor  int64 // number of the oldest entry that is kept
}

// transact calls f in a transaction, and commits the transaction if f returns nil. The transaction first reads the row
// of the table remote; it locks the row if locked is lock, and not if locked is noLock. doing describes the operation
// for messages. The context that f gets is not cancelled: when ctx ends, the connection is closed.
func (r *Remote) transact(ctx context.Context, doing, locked string,
	f func(ctx context.Context, c *pgx.Conn, s *state) error) error {
	row := "SELECT version, id, number, epoch, floor FROM " + r.schema + ".remote" + locked
	return r.run(ctx, doing, row, func(ctx context.Context, c *pgx.Conn, rows [][]byte) error {
		s, err := r.state(rows)
		if err != nil {
			return err
		}
		return f(ctx, c, s)
	})
}

// state decodes the row of the table remote.
func (r *Remote) state(row [][]byte) (*state, error) {
	s := &state{}
	var version int64
	if row == nil {
		return nil, r.damaged("remote", errors.New("the row is missing"))
	}
	var err error
	if s.id, err = uuid.ParseBytes(row[1]); err == nil {
		for i, n := range map[int]*int64{0: &version, 2: &s.number, 3: &s.epoch, 4: &s.floor} {
			if _, serr := fmt.Sscan(string(row[i]), n); serr != nil {
				err = serr
			}
		}
	}
	switch {
	case err != nil:
		return nil, r.damaged("remote", err)
	case version > schemaVersion:
		return nil, &errs.NewerError{Path: r.Place(), Format: uint64(version), Reads: schemaVersion}
	case r.id != uuid.Nil && s.id != r.id:
		return nil, fmt.Errorf("%s: %w: the copy was removed, and another one was begun in its place", r.Place(),
			remote.ErrNoRemote)
	case s.number < 0 || s.epoch < 0 || s.floor < 0 || s.floor > s.number || (s.number == 0) != (s.epoch == 0):
		return nil, r.damaged("remote", errForm)
	}
	return s, nil
}

// run calls f in a transaction, and commits the transaction if f returns nil. The transaction first executes query,
// which has no parameters and returns at most one row; f gets that row. doing describes the operation for messages.
func (r *Remote) run(ctx context.Context, doing, query string,
	f func(ctx context.Context, c *pgx.Conn, row [][]byte) error) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		s, used, err := r.take(ctx)
		if err == nil {
			var began bool
			began, err = s.run(ctx, query, f)
			r.give(s)
			if err == nil {
				return nil
			}
			if used && !began && ctx.Err() == nil && s.conn.IsClosed() {
				continue // the server has ended since
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s %s: %w", doing, r.Place(), ctx.Err())
		}
		return r.wrapped(doing, err)
	}
}

// errOpen means that the answer to a commit does not show whether the commit is durable.
var errOpen = errors.New("the server has not confirmed that the commit is durable")

// run executes one transaction as Remote.run does. began reports whether the server has answered the first query.
func (s *session) run(ctx context.Context, query string,
	f func(ctx context.Context, c *pgx.Conn, row [][]byte) error) (began bool, err error) {
	stop := context.AfterFunc(ctx, func() { _ = s.raw.Close() })
	defer func() {
		if !stop() {
			s.drop()
		}
	}()
	ctx = context.WithoutCancel(ctx)
	s.answered = false
	s.warned.Store(nil)
	results, err := s.conn.PgConn().Exec(ctx, settings+query).ReadAll()
	if err != nil {
		return false, s.rolledBack(ctx, err)
	}
	var row [][]byte
	if last := results[len(results)-1]; len(last.Rows) > 0 {
		row = last.Rows[0]
	}
	if err := f(ctx, s.conn, row); err != nil {
		return true, s.rolledBack(ctx, err)
	}
	results, err = s.conn.PgConn().Exec(ctx, "COMMIT").ReadAll()
	s.answered = err == nil
	switch n := s.warned.Load(); {
	case err != nil:
		return true, s.rolledBack(ctx, err)
	case n != nil:
		return true, fmt.Errorf("%w: %s", errOpen, n.Message)
	case len(results) != 1 || results[0].CommandTag.String() != "COMMIT":
		return true, errors.New("the server has not committed the transaction")
	}
	return true, nil
}

// rolledBack rolls back a transaction that failed with err, and returns err. If err is an error of the network,
// rolledBack sends nothing, because the server rolls the transaction back when the connection ends.
func (s *session) rolledBack(ctx context.Context, err error) error {
	var failed net.Error
	if !s.conn.IsClosed() && !errors.As(err, &failed) {
		_, rerr := s.conn.PgConn().Exec(ctx, "ROLLBACK").ReadAll()
		s.answered = rerr == nil
	}
	return err
}
