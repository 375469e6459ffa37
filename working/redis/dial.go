package redis

import (
	"context"
	"errors"
	"net"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// dialer returns a dial function for go-redis that never fails. If dialing fails, it returns a connection that fails
// when it is first used. If the dial function failed, go-redis would print the failure on stderr, which a library must
// not use, try five times within half a second, and return an error that looks the same as that of a connection that
// broke later.
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

// dialError means that no connection could be made, so nothing was sent. It has the methods Is and As instead of
// Unwrap, because go-redis would unwrap it.
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
