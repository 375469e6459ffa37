package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// applied is a fold that calls a function for each entry.
type applied func(e *wal.Entry) error

func (applied) Reset(context.Context, *index.Set) error { return nil }
func (applied) Covered(*index.Set) bool                 { return true }
func (f applied) Apply(ctx context.Context, _ *index.Set, e *wal.Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return f(e)
}

// TestFollowerWaitEnds: a call that waits for another one to process a long part of the log returns when its context
// ends.
func TestFollowerWaitEnds(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	p.Put(t, memstore.Memory{ID: "a", Content: "one"})
	entered, leave := make(chan bool), make(chan bool)
	f := &engine.Follower{Fold: applied(func(*wal.Entry) error {
		close(entered)
		<-leave
		return nil
	})}
	use := func(*index.Set, int64) error { return nil }
	first := make(chan error)
	go func() { first <- f.With(t.Context(), p.Engine, use) }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error, 1)
	go func() { second <- f.With(ctx, p.Engine, use) }()
	cancel()
	select {
	case err := <-second:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the waiting call returned %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the call waits although its context has ended")
	}
	close(leave)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// TestFollowerContinues: a call whose context ends keeps the entries that it has processed, so that several calls with
// short time limits reach the end of the log.
func TestFollowerContinues(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	const n = 20
	for i := range n {
		p.Put(t, memstore.Memory{ID: fmt.Sprint("m", i), Content: "one"})
	}
	total := 0
	var cancel context.CancelFunc
	f := &engine.Follower{Fold: applied(func(*wal.Entry) error {
		if total++; total%5 == 0 {
			cancel()
		}
		return nil
	})}
	calls := 0
	for ended := false; !ended && calls < 3*n; calls++ {
		var ctx context.Context
		ctx, cancel = context.WithCancel(t.Context())
		err := f.With(ctx, p.Engine, func(_ *index.Set, live int64) error {
			if ended = true; live != n {
				t.Errorf("%d memories", live)
			}
			return nil
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		cancel()
	}
	if total != n {
		t.Errorf("%d entries processed in %d calls, want %d", total, calls, n)
	}
}

// replacing is a fold whose Reset is interrupted the first time that it replaces content.
type replacing struct {
	resets  int
	covered bool
	cancel  context.CancelFunc
}

func (f *replacing) Apply(context.Context, *index.Set, *wal.Entry) error { return nil }

func (f *replacing) Covered(*index.Set) bool { return f.covered }

func (f *replacing) Reset(ctx context.Context, _ *index.Set) error {
	if f.resets++; f.resets == 2 {
		f.covered = true // the content is gone, and what is left fits into any index
		f.cancel()
	}
	return ctx.Err()
}

// TestFollowerResetsAgain: after a Reset that was interrupted, the next call resets the fold again. Otherwise it would
// use a fold that lacks documents.
func TestFollowerResetsAgain(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	fold := &replacing{}
	f := &engine.Follower{Fold: fold}
	call := func(ctx context.Context) error {
		return f.With(ctx, p.Engine, func(*index.Set, int64) error { return nil })
	}
	for i := range 2 {
		p.Put(t, memstore.Memory{ID: fmt.Sprint("m", i), Content: "one"})
		if i == 1 {
			if err := call(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		p.Flush(t)
		if i == 0 {
			if err := call(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	fold.cancel = cancel
	if err := call(ctx); !errors.Is(err, context.Canceled) || fold.resets != 2 {
		t.Fatalf("%d resets, %v", fold.resets, err)
	}
	if err := call(t.Context()); err != nil || fold.resets != 3 {
		t.Errorf("%d resets, want 3; %v", fold.resets, err)
	}
}
