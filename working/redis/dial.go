package redis

import (
	"context"
	"errors"
	"net"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// dialer dials for go-redis, but answers a failure with a connection that fails
// at its first use. go-redis prints failures to dial on stderr, which is not the
// library's to write on, tries five times in half a second, and gives them back
// in a form that does not tell them from a connection that broke later.
func dialer(o *goredis.Options) func(context.Context, string, string) (net.Conn, error) {
	dial := goredis.NewDialer(o)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return noConn{&dialError{err}}, nil
		}
		return c, nil
	}
}

// dialError: there was no connection, so nothing was sent. Is and As stand for
// Unwrap, by which go-redis would take it off.
type dialError struct{ err error }

func (e *dialError) Error() string        { return e.err.Error() }
func (e *dialError) Is(target error) bool { return errors.Is(e.err, target) }
func (e *dialError) As(target any) bool   { return errors.As(e.err, target) }

type noConn struct{ err error }

func (c noConn) Read([]byte) (int, error)         { return 0, c.err }
func (c noConn) Write([]byte) (int, error)        { return 0, c.err }
func (c noConn) Close() error                     { return nil }
func (c noConn) LocalAddr() net.Addr              { return &net.UnixAddr{} }
func (c noConn) RemoteAddr() net.Addr             { return &net.UnixAddr{} }
func (c noConn) SetDeadline(time.Time) error      { return nil }
func (c noConn) SetReadDeadline(time.Time) error  { return nil }
func (c noConn) SetWriteDeadline(time.Time) error { return nil }
