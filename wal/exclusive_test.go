package wal

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
)

// While one goroutine has the log exclusively, it appends and no other one does, in its process or in another;
// those that wait continue when it releases the log.
func TestExclusive(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	other, _ := open(t, dir)
	defer other.Close()
	mustAppend(t, other, put("a", "before"))
	x, err := l.Exclusive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []struct {
		log *FileLog
		ctx context.Context
	}{{l, ctx}, {other, ctx}, {other, x.In(ctx)}} { // an Exclusive belongs to one log, not to any log
		short, end := context.WithTimeout(by.ctx, 50*time.Millisecond)
		if _, err := by.log.Append(short, put("a", "beside")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("beside the holder: %v", err)
		}
		end()
	}
	short, end := context.WithTimeout(ctx, 50*time.Millisecond)
	defer end()
	if _, err := other.Exclusive(short); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errs.ErrLocked) {
		t.Errorf("a second holder: %v", err)
	}
	var waiting sync.WaitGroup
	for i := range 8 {
		who := []*FileLog{l, other}[i%2]
		waiting.Go(func() {
			if _, err := who.Append(ctx, put("w", "waits")); err != nil {
				t.Error(err)
			}
		})
	}
	var last LSN
	for range 3 {
		if last, err = l.Append(x.In(ctx), put("a", "alone")); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Release(); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
	if lsn := mustAppend(t, other, put("b", "after")); lsn <= last {
		t.Errorf("%d after %d", lsn, last)
	}
}

// A goroutine that waits for an Exclusive waits no longer than LockWait, and not at all once the log is closed.
func TestExclusiveEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	other, _ := open(t, dir, func(o *Options) { o.LockWait = 50 * time.Millisecond })
	x, err := l.Exclusive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var locked *errs.LockError
	if _, err := other.Exclusive(t.Context()); !errors.As(err, &locked) || locked.Path == "" {
		t.Errorf("past LockWait: %v", err)
	}
	if err := x.Release(); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exclusive(t.Context()); !errors.Is(err, errs.ErrClosed) {
		t.Errorf("of a closed log: %v", err)
	}
	mustAppend(t, l, put("a", "after"))
}
