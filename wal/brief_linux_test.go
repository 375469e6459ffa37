package wal

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal/page"
)

// watched counts how often goroutines sleep on a page until a lock is released, and how often they wake others.
type watched struct {
	vfs.Shared
	awaits, wakes atomic.Int64
}

func (w *watched) around(words vfs.Shared) vfs.Shared {
	w.Shared = words
	return w
}

func (w *watched) Await(word int, was uint64, most time.Duration) {
	if page.Name(word) == "releases" {
		w.awaits.Add(1)
		most = time.Hour // the sleeper must be woken
	}
	w.Shared.(vfs.Awaiter).Await(word, was, most)
}

func (w *watched) Wake(word int) {
	if page.Name(word) == "releases" {
		w.wakes.Add(1)
	}
	w.Shared.(vfs.Awaiter).Wake(word)
}

// A goroutine that waits for append.lock or sync.lock sleeps until the holder wakes it, even if the holder uses
// another handle. The goroutine does not take a lock that it no longer needs.
func TestBriefLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, _ := open(t, dir)
	two, _ := open(t, dir)
	defer one.Close()
	defer two.Close()
	w1, w2 := new(watched), new(watched)
	one.shared, two.shared = one.shared.Around(w1.around), two.shared.Around(w2.around)
	for _, role := range []int{roleAppend, roleSync} {
		for _, needless := range []bool{false, true} {
			w1.wakes.Store(0)
			w2.awaits.Store(0)
			if err := one.lock(t.Context(), role, vfs.ModeExclusive); err != nil {
				t.Fatal(err)
			}
			var over atomic.Bool
			type answer struct {
				held bool
				err  error
			}
			got := make(chan answer, 1)
			go func() {
				held, err := two.lockUnless(context.WithoutCancel(t.Context()), role, vfs.ModeExclusive, over.Load)
				got <- answer{held, err}
			}()
			for one.shared.Waiters(role-roleAppend) == 0 || w2.awaits.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			select {
			case a := <-got:
				t.Fatalf("%s: did not wait: %+v", roleNames[role], a)
			default:
			}
			over.Store(needless)
			one.unlock(role)
			if a := <-got; a.err != nil || a.held == needless {
				t.Errorf("%s, needless %v: held %v, %v", roleNames[role], needless, a.held, a.err)
			} else if a.held {
				two.unlock(role)
			}
			if n := w1.wakes.Load(); n != 1 {
				t.Errorf("%s: woke %d times", roleNames[role], n)
			}
			if n := one.shared.Waiters(role - roleAppend); n != 0 {
				t.Errorf("%s: %d are said to sleep", roleNames[role], n)
			}
			// The lock is free: no goroutine that did not need it has taken it.
			if ok, err := one.locks[role].TryLock(vfs.ModeExclusive); !ok || err != nil {
				t.Fatalf("%s is not free: %v", roleNames[role], err)
			}
			if err := one.locks[role].Unlock(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
