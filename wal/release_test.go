package wal

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// TestReleaseEnds: a release whose context ends stops within the segment that it is copying into the archive, and a
// later one completes it. Otherwise a store that must close within a time limit would take seconds longer.
func TestReleaseEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	written := 0
	hook := func(op *wrap.Op, call func() error) error {
		if op.Kind == wrap.Write && filepath.Base(filepath.Dir(op.Path)) == "archive" {
			if written++; written == 2 {
				cancel()
			}
		}
		return call()
	}
	l, _ := open(t, dir, func(o *Options) {
		o.SegmentSize = 8 << 20
		o.FS = wrap.New(vfs.OS(), hook)
		o.Archive = func() (int64, time.Duration) { return 1 << 30, 0 }
	})
	defer l.Close()
	want := fill(t, l, 3)
	release := func(ctx context.Context) error {
		held := mustHold(t, l)
		defer held.Unlock()
		m := l.AppliedMark()
		if err := l.SetCheckpoint(held, m, m, [Folders]int64{}); err != nil {
			t.Fatal(err)
		}
		if err := l.Archive().Release(ctx, held, "index", m.LSN); err != nil {
			return err
		}
		return l.Archive().Release(ctx, held, "index", m.LSN)
	}
	if err := release(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the canceled release returned %v", err)
	}
	if written != 2 {
		t.Errorf("%d blocks written, want 2", written)
	}
	if err := release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if written < 8 {
		t.Errorf("%d blocks written by a complete release", written)
	}
	sameEntries(t, l, want[0].LSN, want)
}
