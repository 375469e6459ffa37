package wal

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
)

// From any position, the entries at or after it are read, even if no frame begins there; if some are gone, the
// error names the oldest position that works, and it works.
func TestFrom(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx := context.Background()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	want := fill(t, l, 8)
	let(t, l)
	check := func(oldest LSN) {
		t.Helper()
		first := 0
		for first < len(want) && want[first].LSN < oldest {
			first++
		}
		step := LSN(1048)
		for from := l.geo.Size; from <= l.Durable(); from += step {
			at, err := l.Past().From(ctx, from, l.Durable())
			var gone *errs.TruncatedError
			if errors.As(err, &gone) {
				if gone.Oldest != oldest || from >= oldest {
					t.Fatalf("from %d: %v, the oldest is %d", from, gone, oldest)
				}
				if again, err := l.Past().From(ctx, gone.Oldest, l.Durable()); err != nil || again != oldest {
					t.Fatalf("from the oldest, %d: %d, %v", oldest, again, err)
				}
				from += 10 * step // each reads the whole past
				continue
			}
			if err != nil {
				t.Fatalf("from %d: %v", from, err)
			}
			i := first
			for i < len(want) && want[i].LSN < from {
				i++
			}
			if from%17 != 0 && from+2*step < l.Durable() { // reading further costs more
				if i < len(want) && (at > want[i].LSN || i > 0 && at <= want[i-1].LSN) {
					t.Fatalf("from %d: reading begins at %d, the entry at %d", from, at, want[i].LSN)
				}
				continue
			}
			sameEntries(t, l, at, want[i:])
		}
	}
	check(l.geo.Start(1) + 128)
	// A reader that has seen all of a segment that is gone has missed nothing.
	if err := os.Remove(copyPath(dir, 4)); err != nil {
		t.Fatal(err)
	}
	oldest, _, _, err := l.Past().Oldest(l.Durable())
	if err != nil || l.geo.Number(oldest) != 5 {
		t.Fatal(oldest, err)
	}
	s, _, err := l.Past().Start(5)
	if err != nil {
		t.Fatal(err)
	}
	for from, ok := range map[LSN]bool{s.PrevEnd: true, s.PrevEnd + 8: true, s.PrevEnd - 8: false, 8: false, 0: true, oldest: true, oldest - 8: true} {
		at, err := l.Past().From(ctx, from, l.Durable())
		if ok && (err != nil || at != oldest) || !ok && !errors.Is(err, errs.ErrTruncated) {
			t.Errorf("from %d: %d, %v", from, at, err)
		}
	}
	if at, err := l.Past().From(ctx, l.Durable(), l.Durable()); at != l.Durable() || err != nil {
		t.Errorf("from the end: %d, %v", at, err)
	}
}

// The first entry since a time, if the log is kept that far back.
func TestSince(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	want := fill(t, l, 6)
	let(t, l)
	for i := 0; i < len(want); i += 7 {
		for d, j := range map[time.Duration]int{0: i, time.Microsecond: i + 1, -time.Microsecond: i} {
			if i > 0 && d < 0 && !want[i-1].Time.Before(want[i].Time.Add(d)) {
				j = i - 1
			}
			at, err := l.Past().Since(ctx, want[i].Time.Add(d), l.Durable())
			expect := l.Durable()
			if j < len(want) {
				expect = want[j].LSN
			}
			if err != nil || at != expect {
				t.Fatalf("since entry %d and %v: %d, %v; want %d", i, d, at, err, expect)
			}
		}
	}
	if at, err := l.Past().Since(ctx, time.Unix(1, 0), l.Durable()); err != nil || at != want[0].LSN {
		t.Fatalf("since always: %d, %v", at, err)
	}
	if at, err := l.Past().Since(ctx, want[len(want)-1].Time.Add(time.Hour), l.Durable()); err != nil || at != l.Durable() {
		t.Fatalf("since a time to come: %d, %v", at, err)
	}
	if err := os.Remove(copyPath(dir, 2)); err != nil {
		t.Fatal(err)
	}
	oldest, _, _, err := l.Past().Oldest(l.Durable())
	if err != nil {
		t.Fatal(err)
	}
	var gone *errs.TruncatedError
	if _, err := l.Past().Since(ctx, want[0].Time, l.Durable()); !errors.As(err, &gone) || gone.Oldest != oldest {
		t.Fatalf("since what is gone: %v", err)
	}
}
