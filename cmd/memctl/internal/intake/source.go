package intake

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// Slurp returns the content of the file name, or of stdin if name is "-". If the content is longer than limit
// bytes, the error is a FieldError that wraps ErrTooLarge.
func Slurp(ctx context.Context, stdin io.Reader, name string, limit int) ([]byte, error) {
	b, err := cli.Await(ctx, func() ([]byte, error) {
		r, err := source(stdin, name)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(io.LimitReader(r, int64(limit)+1))
	})
	if err != nil {
		return nil, fmt.Errorf("reading the input %s: %w", name, err)
	}
	if len(b) > limit {
		return nil, &varve.FieldError{Field: "input " + name, Value: fmt.Sprintf("of more than %d bytes", limit),
			Limit: fmt.Sprintf("%d bytes", limit), Err: varve.ErrTooLarge}
	}
	return b, nil
}

func source(stdin io.Reader, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(stdin), nil
	}
	return os.Open(name)
}

// Interruptible returns a reader that reads from r. When ctx ends, a Read that waits for input returns the error of
// ctx.
func Interruptible(ctx context.Context, r io.Reader) io.Reader { return &interruptibleReader{ctx, r} }

type interruptibleReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *interruptibleReader) Read(p []byte) (int, error) {
	// An abandoned read may still write into its buffer.
	own := make([]byte, len(p))
	b, err := cli.Await(r.ctx, func() ([]byte, error) {
		n, err := r.r.Read(own)
		return own[:n], err
	})
	return copy(p, b), err
}

// ReadEach reads all values of a file, or of stdin if name is "-", before any of them is used. The values are one
// object, an array of objects, or objects one after another. noun is the noun for a value in messages.
func ReadEach[T any](ctx context.Context, stdin io.Reader, name, noun string,
	decode func(raw []byte) (T, error)) (all []T, err error) {
	_, err = cli.Await(ctx, func() ([]byte, error) {
		r, err := source(stdin, name)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		all, err = decodeEach(r, noun, decode)
		return nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("input %s: %w", name, err)
	}
	return all, nil
}
