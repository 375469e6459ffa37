package vfs

import (
	"context"
	"io"
)

// Until returns a reader that reads from r until ctx ends. After that it returns the error of ctx.
func Until(ctx context.Context, r io.Reader) io.Reader { return &until{ctx, r} }

type until struct {
	ctx context.Context
	r   io.Reader
}

// Read reads from r.
func (u *until) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(b)
}
