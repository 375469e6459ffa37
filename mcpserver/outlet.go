package mcpserver

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// outlet writes messages whole, also when several goroutines write. A write cannot be interrupted: the
// goroutine of one that nobody reads ends with the reader, or with the process.
type outlet struct {
	to     io.Writer
	turn   chan struct{} // taken by the goroutine that has put something in, to write it
	closed chan struct{}
	wrote  atomic.Int64 // when something was last written
}

// io.EOF: for the SDK it is an end, no failure
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
	case <-ctx.Done(): // it is written all the same
		return ctx.Err()
	}
}

// told notes when something was written.
type told struct{ o *outlet }

func (t told) Write(b []byte) (int, error) {
	n, err := t.o.to.Write(b)
	if n > 0 {
		t.o.wrote.Store(time.Now().UnixNano())
	}
	return n, err
}
