package crash

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

func TestLocksBetweenProcesses(t *testing.T) {
	d := New()
	a, b := d.Process("a"), d.NonBlocking("b")
	la, err := a.OpenLock("/lock", 0o600)
	must(t, err)
	lb, err := b.OpenLock("/lock", 0o600)
	must(t, err)
	ctx := context.Background()
	must(t, la.Lock(ctx, vfs.ModeShared))
	must(t, lb.Lock(ctx, vfs.ModeShared))
	if ok, _ := lb.TryLock(vfs.ModeShared); ok {
		t.Fatal("a second lock on one handle")
	}
	must(t, lb.Unlock())
	if err := lb.Lock(ctx, vfs.ModeExclusive); err != ErrWouldBlock {
		t.Fatal(err)
	}
	if held := d.Locks(); len(held) != 1 || held[0].PID != a.PID() || held[0].Mode != "shared" {
		t.Fatal(held)
	}
	wakes := d.Wakes()
	d.Kill(a)
	if d.Wakes() == wakes {
		t.Fatal("nobody was woken")
	}
	must(t, lb.Lock(ctx, vfs.ModeExclusive))
	if err := la.Unlock(); err == nil {
		t.Fatal("a dead process operates")
	}
	if locks := d.Crash(KeepAll, nil).Locks(); len(locks) != 0 {
		t.Fatal(locks)
	}
}

// FAILURES 16, on the simulated disk.
func TestUnlinkedLockFile(t *testing.T) {
	d := New()
	p := d.Process("a")
	la, _ := p.OpenLock("/lock", 0o600)
	lb, _ := p.OpenLock("/lock", 0o600)
	must(t, p.Remove("/lock"))
	if ok, err := la.TryLock(vfs.ModeExclusive); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, _ := lb.TryLock(vfs.ModeExclusive); ok {
		t.Fatal("two owners")
	}
}

func TestLockWaits(t *testing.T) {
	d := New()
	p := d.Process("a")
	la, _ := p.OpenLock("/lock", 0o600)
	lb, _ := p.OpenLock("/lock", 0o600)
	must(t, la.Lock(context.Background(), vfs.ModeExclusive))
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := lb.Lock(ctx, vfs.ModeShared); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() { got <- lb.Lock(context.Background(), vfs.ModeShared) }()
	must(t, la.Unlock())
	must(t, <-got)
}

func TestLeases(t *testing.T) {
	d := New()
	a, b := d.Process("a"), d.NonBlocking("b")
	f, err := a.OpenFile("/x", os.O_CREATE|os.O_RDWR, 0o600)
	must(t, err)
	lease := func(want bool) {
		t.Helper()
		if ok, err := f.Lease(); ok != want || err != nil {
			t.Fatal(ok, err)
		}
	}
	g, err := b.OpenFile("/x", os.O_RDONLY, 0)
	must(t, err)
	m, err := g.Map()
	must(t, err)
	lease(false)
	must(t, g.Close())
	lease(false) // it is mapped still
	must(t, m.Close())
	lease(true)
	if _, err := b.OpenFile("/x", os.O_RDONLY, 0); err != ErrWouldBlock {
		t.Fatal(err)
	}
	must(t, f.Unlease())
	_, err = b.OpenFile("/x", os.O_RDONLY, 0)
	must(t, err)
	lease(false)
	d.Kill(b)
	lease(true)
	must(t, f.Close())
	if _, err := a.OpenFile("/x", os.O_RDONLY, 0); err != nil {
		t.Fatal("the lease outlived its descriptor:", err)
	}
}

func TestSharedPage(t *testing.T) {
	d := New()
	a, b := d.Process("a"), d.Process("b")
	if _, err := a.OpenShared("/s", false, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	sa, err := a.OpenShared("/s", true, 0o600)
	must(t, err)
	sb, err := b.OpenShared("/s", false, 0o600)
	must(t, err)
	sa.Store(511, 7)
	if sb.Load(511) != 7 || !sb.CompareAndSwap(511, 7, 8) || sb.CompareAndSwap(511, 7, 9) || sa.Load(511) != 8 {
		t.Fatal("not shared")
	}
	d.Kill(a)
	sa.Store(511, 1)
	if sb.Load(511) != 8 {
		t.Fatal("a dead process stores, or its stores are gone")
	}
	must(t, a.d.Process("c").SyncDir("/"))
	bar, err := b.OpenBarrier("/")
	must(t, err)
	must(t, bar.Sync())
	sb.Store(511, 9)
	for p, want := range map[Pattern]uint64{LoseAll: 8, KeepAll: 9} {
		s, err := d.Crash(p, nil).Process("x").OpenShared("/s", false, 0o600)
		must(t, err)
		if got := s.Load(511); got != want {
			t.Errorf("%v: %d, want %d", p, got, want)
		}
	}
}

// Kill keeps what was written; only the process is gone.
func TestKillKeepsTheCache(t *testing.T) {
	d := New()
	w := on(t, d)
	w.run("write a AB")
	d.Kill(w.Process)
	if got := tree(t, d); got != "a=AB" {
		t.Fatal(got)
	}
	if _, err := w.Stat("/a"); err == nil {
		t.Fatal("a dead process operates")
	}
}

func TestBootIDs(t *testing.T) {
	d := New()
	boot := d.Process("a").Host().Boot
	if boot != d.Process("b").Host().Boot {
		t.Fatal("two boots at once")
	}
	if boot == d.Crash(LoseAll, nil).Process("a").Host().Boot {
		t.Fatal("the boot id outlived the boot")
	}
}
