package vfs

import (
	"context"
	"time"
)

// Sleep waits until the duration d has passed or ctx ends, and returns the error of ctx. It is the default of
// System.Sleep.
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
