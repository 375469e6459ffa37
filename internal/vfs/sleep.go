package vfs

import (
	"context"
	"time"
)

// Sleep waits, or ends with ctx and its error. It is System.Sleep where none is given.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
