package wal

import (
	"context"
	"errors"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
)

// mustHold takes flush.lock.
func mustHold(t testing.TB, l *FileLog) *Held {
	t.Helper()
	held, err := l.LockFlush(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// TestHeldProves: functions for the holder of flush.lock refuse a Held that was unlocked, that of another log,
// and nil.
func TestHeldProves(t *testing.T) {
	one, _ := open(t, t.TempDir(), knowing(testFeatures))
	defer one.Close()
	two, _ := open(t, t.TempDir())
	defer two.Close()
	mustAppend(t, one, put("m1", "v"))
	before, err := one.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	held, other := mustHold(t, one), mustHold(t, two)
	defer other.Unlock()
	m, nobody := one.AppliedMark(), func(LSN, string, []byte) bool { return false }
	calls := map[string]func(*Held) error{
		"SetCheckpoint": func(h *Held) error { return one.SetCheckpoint(h, m, m, [Folders]int64{}) },
		"Forget":        func(h *Held) error { return one.Archive().Release(t.Context(), h, "index", 0) },
		"Bury":          func(h *Held) error { return one.Processes().RemoveDead(h, nil) },
		"Tidied":        func(h *Held) error { return one.Notes().Tidied(h) },
		"SayRemade":     func(h *Held) error { return one.Notes().IndexRebuilt(h) },
		"Filed":         func(h *Held) error { return one.Pace().Filed(h, 0, 0, 0) },
		"SetRest":       func(h *Held) error { return one.Pace().SetRest(h, 0) },
		"Trust":         func(h *Held) error { return one.Notes().Trust(h) },
		"Purge":         func(h *Held) error { _, err := one.Purges().Erase(context.Background(), h, nobody); return err },
		"RaiseFlushing": func(h *Held) error { _, err := one.RaiseFlushing(h, FeatureTestWrite); return err },
	}
	refused := func(what string, h *Held) {
		t.Helper()
		for name, call := range calls {
			if err := call(h); !errors.Is(err, errNotHeld) {
				t.Errorf("%s with %s: %v", name, what, err)
			}
		}
	}
	refused("none", nil)
	refused("another log's", other)
	if now, err := one.Checkpoint(); err != nil || now != before || one.Features() != 0 ||
		one.Notes().IndexRebuilds() != 0 {
		t.Errorf("something was done all the same: %+v, %s, %d, %v", now, one.Features(), one.Notes().IndexRebuilds(), err)
	}
	for name, call := range calls {
		if err := call(held); err != nil {
			t.Errorf("%s by the holder: %v", name, err)
		}
	}
	held.Unlock()
	refused("one that was unlocked", held)
}

// TestHeldUnlockTwice: the second Unlock does not release a lock that another holder has taken since.
func TestHeldUnlockTwice(t *testing.T) {
	l, _ := open(t, t.TempDir())
	defer l.Close()
	first := mustHold(t, l)
	if held, err := l.TryLockFlush(); held != nil || err != nil {
		t.Fatalf("taken twice: %v, %v", held, err)
	}
	first.Unlock()
	second, err := l.TryLockFlush()
	if second == nil || err != nil {
		t.Fatalf("not to be had once it was let go: %v, %v", second, err)
	}
	first.Unlock()
	if ok, err := l.locks[roleFlush].TryLock(vfs.ModeExclusive); ok || err != nil {
		t.Errorf("the lock was let go by one who no longer had it: %v, %v", ok, err)
	}
	if err := first.proves(l); err == nil {
		t.Error("one that was unlocked proves that the lock is held, which another holds")
	}
	if err := second.proves(l); err != nil {
		t.Error(err)
	}
	second.Unlock()
}
