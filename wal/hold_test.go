package wal

import (
	"context"
	"errors"
	"testing"

	"github.com/varve-db/varve/internal/errs"
)

// FAILURES 14, 83: while somebody copies nothing goes, in his process or in
// another; one who hangs past the budget is not waited for.
func TestHold(t *testing.T) {
	dir := t.TempDir()
	budget := func(o *Options) { o.HoldBytes = 512 << 10 }
	l, _ := open(t, dir, budget)
	defer l.Close()
	other, _ := open(t, dir, budget)
	defer other.Close()
	fill(t, l, 3)
	h, err := other.Hold(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []*FileLog{l, other} {
		if err := who.CatchUp(context.Background()); err != nil {
			t.Fatal(err)
		}
		let(t, who)
		if n, err := l.oldest(); err != nil || n != 1 {
			t.Fatalf("the oldest segment is %d under a hold, %v", n, err)
		}
	}
	if err := h.Held(); err != nil {
		t.Fatal(err)
	}
	want := fill(t, l, 14)
	if err := h.Held(); !errors.Is(err, errs.ErrLimit) {
		t.Fatalf("past the budget: %v", err)
	}
	let(t, l) // it hangs, and does not ask
	if n, err := l.oldest(); err != nil || n < 13 {
		t.Fatalf("the oldest segment is %d behind the budget, %v", n, err)
	}
	sameEntries(t, l, want[0].LSN, want)
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	fill(t, l, 16)
	let(t, l)
	if n, err := l.oldest(); err != nil || n != 16 {
		t.Fatalf("the oldest segment is %d after the hold, %v", n, err)
	}
}
