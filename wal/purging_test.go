package wal

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal/page"
)

// Purges of several processes take turns: one that waits gives up only if one of the others does not end.
func TestPurgesInTurn(t *testing.T) {
	t.Parallel()
	l, _ := open(t, t.TempDir())
	defer l.Close()
	others := []vfs.Host{{PID: 1 << 22, Birth: 5<<32 | 1}, {PID: 1<<22 + 1, Birth: 5<<32 | 2},
		{PID: 1<<22 + 2, Birth: 5<<32 | 3}}
	for _, h := range others { // elsewhere: it is unknown whether they are alive
		l.shared.Claim(h, 0)
	}
	now := time.Unix(1790000000, 0)
	began := now
	turn := func() int { return int(now.Sub(began) / (20 * time.Second)) }
	l.o.LockWait, l.o.Clock = 30*time.Second, func() time.Time { return now }
	l.o.Sleep = func(ctx context.Context, d time.Duration) error {
		now = now.Add(time.Second)
		v := uint64(0)
		if i := turn(); i < len(others) {
			v = page.NamePurger(others[i].PID, others[i].Birth)
		}
		l.shared.SwapPurger(l.shared.Purger(), v)
		return ctx.Err()
	}
	l.shared.SwapPurger(l.shared.Purger(), page.NamePurger(others[0].PID, others[0].Birth))
	if l.Purges().Living() != 0 {
		t.Error("a purge of a process that may be dead is taken for one that goes on")
	}
	if err := l.Purges().Begin(t.Context()); err != nil || now.Sub(began) < time.Minute {
		t.Fatal(err, now.Sub(began))
	}
	if l.host.Birth != 0 && l.Purges().Living() == 0 {
		t.Error("a purge of this process does not live")
	}
	l.Purges().End()
	if l.Purges().Living() != 0 || l.Purges().Failed() {
		t.Error("a purge that ended lives, or has failed")
	}

	began = now.Add(-40 * time.Second) // the last of them, which does not end
	last := page.NamePurger(others[2].PID, others[2].Birth)
	l.o.Sleep = func(context.Context, time.Duration) error {
		now = now.Add(time.Second)
		return nil
	}
	l.shared.SwapPurger(l.shared.Purger(), last)
	from := now
	var locked *errs.LockError
	if err := l.Purges().Begin(t.Context()); !errors.As(err, &locked) || locked.Holder.PID != others[2].PID ||
		now.Sub(from) != l.o.LockWait {
		t.Fatal(err, now.Sub(from))
	}
	// A dead process's announcement has no effect.
	l.shared.SwapPurger(l.shared.Purger(), page.NamePurger(1<<22+9, 5<<32|9))
	if l.Purges().Living() != 0 {
		t.Error("a purge of a process that is not attached lives")
	}
	if err := l.Purges().Begin(t.Context()); err != nil || !l.Purges().Failed() {
		t.Fatal("of a purge that was killed nothing is known:", err)
	}
	l.Purges().End()

	// If it ends between two reads, there is nothing to wait for.
	looks := 0
	l.o.Clock = func() time.Time { // called first, and for each new process
		if looks++; looks > 1 {
			l.shared.SwapPurger(l.shared.Purger(), 0)
		}
		return now
	}
	l.shared.SwapPurger(l.shared.Purger(), last)
	if err := l.Purges().Begin(t.Context()); err != nil {
		t.Error(err)
	}
	l.Purges().End()
}
