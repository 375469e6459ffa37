package mcpserver

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// outlet writes messages to the client, each as a whole, even if several goroutines write. A write cannot be
// interrupted: the goroutine that writes ends only when the client reads, when the client closes the stream, or when
// the process ends.
type outlet struct {
	to     io.Writer
	turn   chan struct{} // held by the goroutine that is writing
	closed chan struct{}
	wrote  atomic.Int64 // time of the last write
}

// errAbandoned wraps io.EOF, so that the SDK regards the connection as ended and not as failed.
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

// told is a writer that passes everything on to the client's stream and records the time of each write.
type told struct{ o *outlet }

func (t told) Write(b []byte) (int, error) {
	n, err := t.o.to.Write(b)
	if n > 0 {
		t.o.wrote.Store(time.Now().UnixNano())
	}
	return n, err
}
