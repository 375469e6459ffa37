package wal

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// Batch.Written is called as soon as the batch is written. A conflict of a batch with Written is returned at once,
// even if it rests on an entry that is written but not durable; all other answers wait for the sync. Another process
// observes the same.
func TestAhead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var hold atomic.Bool
	gate := make(chan struct{})
	dir := t.TempDir()
	l, m := open(t, dir, func(o *Options) {
		o.FS = wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
			if hold.Load() && op.Kind == wrap.Datasync {
				<-gate
			}
			return call()
		})
	})
	defer l.Close()
	other, _ := open(t, dir)
	defer other.Close()
	old, err := l.Append(ctx, put("k", "0"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := l.Ahead(ctx, "k"); ok {
		t.Error("what is applied is ahead")
	}
	hold.Store(true)
	var released atomic.Bool
	written, done := make(chan struct{}), make(chan error, 3)
	b := put("k", "1")
	b.Written = func() { close(written) }
	go func() {
		_, err := l.Append(ctx, b)
		if !released.Load() {
			t.Error("it was answered before the sync")
		}
		done <- err
	}()
	<-written
	for _, l := range []*FileLog{l, other} {
		if e, sole, ok := l.Ahead(ctx, "k"); !ok || !sole || string(e.Value) != "1" || e.LSN <= old {
			t.Errorf("ahead is %v, %q at %d", ok, e.Value, e.LSN)
		}
		if _, _, ok := l.Ahead(ctx, "other"); ok {
			t.Error("another key is ahead")
		}
		early := put("k", "2")
		early.Preconditions, early.Written = []Precondition{{Key: "k", LSN: old}}, func() { t.Error("it was written") }
		var conflict *ConflictError
		if _, err := l.Append(ctx, early); !errors.As(err, &conflict) || conflict.Found <= old {
			t.Errorf("it was not refused by what is written: %v", err)
		}
	}
	go func() {
		late := put("k", "3")
		late.Preconditions = []Precondition{{Key: "k", LSN: old}}
		_, err := l.Append(ctx, late)
		if !released.Load() {
			t.Error("a refusal that rests on what is not durable was told")
		}
		done <- err
	}()
	go func() {
		done <- l.Settle(ctx, b.Entries[0].LSN)
		if !released.Load() || l.Durable() <= b.Entries[0].LSN {
			t.Error("it settled before the sync")
		}
	}()
	released.Store(true)
	close(gate)
	refused := 0
	for range 3 {
		if err := <-done; errors.Is(err, errs.ErrConflict) {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	if refused != 1 || m.val["k"] != "1" {
		t.Errorf("%d were refused, the newest is %q", refused, m.val["k"])
	}
}
