package mcpserver

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// outlet writes messages to the client, each completely, even if several goroutines write. A write cannot be
// interrupted: its goroutine ends when the client reads or closes the stream, or with the process.
type outlet struct {
	to     io.Writer
	turn   chan struct{} // held by the goroutine that is writing
	closed chan struct{}
	wrote  atomic.Int64 // time of the last write
}

// errAbandoned wraps io.EOF, so that the SDK treats the connection as ended, not as failed.
var errAbandoned = fmt.Errorf("the connection was abandoned: %w", io.EOF)

func (o *outlet) write(ctx context.Context, f func(io.Writer) error) error {
	select {
	case <-o.closed:
		return errAbandoned
	default:
	}
	select {
	case o.turn <- struct{}{}:
	case <-o.closed:
		return errAbandoned
	case <-ctx.Done():
		return ctx.Err()
	}
	done := make(chan error, 1)
	go func() {
		err := f(told{o})
		<-o.turn
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-o.closed:
		return errAbandoned
	case <-ctx.Done(): // the message will be written nevertheless
		return ctx.Err()
	}
}

// told is a writer that records the time of each write.
type told struct{ o *outlet }

func (t told) Write(b []byte) (int, error) {
	n, err := t.o.to.Write(b)
	if n > 0 {
		t.o.wrote.Store(time.Now().UnixNano())
	}
	return n, err
}
