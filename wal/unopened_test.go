package wal

import (
	"context"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// FAILURES 17: a segment that cannot be opened because no file descriptor is free has not failed to sync. The
// log is not poisoned, and the waiter is served as soon as the segment can be opened.
func TestNoFilesLeftToSync(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var left, failed atomic.Int64
	l, _ := open(t, dir, func(o *Options) {
		o.FS = fault.New(vfs.OS(), func(op *fault.Op) error {
			if op.Kind == wrap.Open && strings.HasSuffix(op.Path, ".wal") && left.Add(-1) >= 0 {
				return syscall.EMFILE
			}
			return nil
		})
		o.Event = func(e Event) {
			if e.Kind == EventSyncFailed {
				failed.Add(1)
			}
		}
	})
	defer l.Close()
	other, _ := open(t, dir)
	defer other.Close()
	ctx := context.Background()
	if err := other.lock(ctx, roleSync, vfs.ModeExclusive); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := l.Append(ctx, put("ma", "x"))
		done <- err
	}()
	for end := l.shared.Durable(); l.shared.Tail() == end; {
		time.Sleep(time.Millisecond) // the batch is written, and waits for sync.lock
	}
	left.Store(3)
	l.closeFiles()
	other.unlock(roleSync)
	poisoned := false
	for waits := true; waits; {
		poisoned = poisoned || l.Notes().Poisoned()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			waits = false
		default:
			time.Sleep(100 * time.Microsecond)
		}
	}
	if left.Load() >= 0 || poisoned || failed.Load() > 0 {
		t.Errorf("%d opens left to fail, poisoned %v, %d failed syncs told", left.Load(), poisoned, failed.Load())
	}
}
