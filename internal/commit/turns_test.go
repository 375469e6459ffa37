package commit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns verifies that one writer has the turn of a document at a time, that a waiter honours its ctx, and that no
// writer waits for more than mostTurn: a function that waits for itself continues.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ts := &turns{}
		one, two := turn{all: ts}, turn{all: ts}
		if err := one.take(t.Context(), "k"); err != nil || !one.has {
			t.Fatal(err)
		}
		began := time.Now()
		if err := two.pass(t.Context(), "other"); err != nil || time.Since(began) > 0 {
			t.Errorf("it waited for another document: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := two.take(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Millisecond {
			t.Errorf("it waited beyond its ctx: %v after %v", err, time.Since(began))
		}
		began = time.Now()
		if err := two.take(t.Context(), "k"); err != nil || two.has || time.Since(began) != mostTurn {
			t.Errorf("%v, %v after %v", err, two.has, time.Since(began))
		}
		two.leave()
		began = time.Now()
		go func() {
			time.Sleep(mostTurn / 2)
			one.leave()
		}()
		if err := two.take(t.Context(), "k"); err != nil || !two.has || time.Since(began) != mostTurn/2 {
			t.Errorf("%v, %v after %v", err, two.has, time.Since(began))
		}
		two.leave()
		if len(ts.of) != 0 || ts.some.Load() != 0 {
			t.Errorf("%d are left", len(ts.of))
		}
	})
}
