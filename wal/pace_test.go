package wal

import (
	"testing"
	"time"
)

// Writers of all processes take turns one after the other, and an impossible value in the page is ignored.
func TestTurns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, _ := open(t, dir)
	defer one.Close()
	two, _ := open(t, dir)
	defer two.Close()
	now := 10 * time.Minute
	if at, _ := one.Pace().Turn(now, time.Second); at != now {
		t.Errorf("the first begins at %v", at)
	}
	if at, _ := two.Pace().Turn(now, time.Second); at != now+time.Second {
		t.Errorf("the second begins at %v", at)
	}
	two.Pace().GiveBack(time.Second)
	if at, _ := one.Pace().Turn(now, 0); at != now+time.Second {
		t.Errorf("after one was given back it begins at %v", at)
	}
	if at, _ := one.Pace().Turn(now+time.Hour, 0); at != now+time.Hour {
		t.Errorf("after a pause it begins at %v", at)
	}
	// A turn that is longer than the clock may be ahead leaves the clock at a value that is still trusted.
	later := now + 2*time.Hour
	one.Pace().Turn(later, 10*time.Minute)
	for range 3 {
		if at, ends := two.Pace().Turn(later+time.Second, time.Second); at < later+mostTurns || ends < at {
			t.Errorf("behind a long turn it begins at %v", at-later)
		}
	}
	for _, v := range []uint64{1 << 63, 1<<64 - 1, uint64(now + 2*mostTurns)} {
		one.shared.SwapTurns(one.shared.Turns(), v)
		if at, _ := two.Pace().Turn(now, time.Second); at != now {
			t.Errorf("%d: begins at %v", v, at)
		}
	}
}

// The rate is the mean over the last seconds of flushing, and unknown without them.
func TestSettleRate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, _ := open(t, dir)
	defer one.Close()
	two, _ := open(t, dir)
	defer two.Close()
	held, err := one.LockFlush(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Unlock()
	filed := func(to LSN, bytes uint64, took time.Duration) {
		t.Helper()
		if err := one.Pace().Filed(held, to, bytes, took); err != nil {
			t.Fatal(err)
		}
	}
	if r := two.Pace().Rate(); r != 0 {
		t.Errorf("%v before anything was flushed", r)
	}
	filed(0, 1<<20, 100*time.Millisecond)
	if r := two.Pace().Rate(); r != 0 {
		t.Errorf("%v after a tenth of a second", r)
	}
	for range 200 {
		filed(0, 1<<20, 100*time.Millisecond)
	}
	if r := two.Pace().Rate(); r < 9<<20 || r > 11<<20 {
		t.Errorf("%v, not 10 MiB a second", r)
	}
	for range 200 {
		filed(0, 1<<18, 100*time.Millisecond)
	}
	if r := two.Pace().Rate(); r < 2<<20 || r > 3<<20 {
		t.Errorf("%v, not 2.5 MiB a second", r)
	}
	durable := int64(one.Durable() - one.Flushed())
	if got := two.Pace().Unfiled(); got != durable {
		t.Errorf("%d bytes in no file, not %d", got, durable)
	}
	filed(one.Durable()+5, 0, 0)
	if got := two.Pace().Unfiled(); got != 0 {
		t.Errorf("%d bytes in no file", got)
	}
	one.shared.SetFlushRate(one.shared.FlushBytes(), 1<<63)
	if r := two.Pace().Rate(); r != 0 {
		t.Errorf("%v from a page that cannot be", r)
	}
}
