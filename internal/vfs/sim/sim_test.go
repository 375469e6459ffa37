package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// counter is a toy store: a number in a file, changed under a lock, made durable before it is
// acknowledged. broken names the step to omit.
func counter(p *Proc, rounds int, broken string, acked func(uint64)) {
	lock, err := p.FS.OpenLock("/lock", 0o600)
	check(err)
	f, err := p.FS.OpenFile("/n", os.O_RDWR|os.O_CREATE, 0o600)
	check(err)
	if broken != "no syncdir" {
		check(p.FS.SyncDir("/"))
	}
	for range rounds {
		if broken != "no lock" {
			check(lock.Lock(context.Background(), vfs.ModeExclusive))
		}
		n := number(f) + 1
		_, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, n), 0)
		check(err)
		if broken == "early ack" {
			acked(n)
		}
		if broken != "no sync" {
			check(f.Datasync())
		}
		acked(n)
		if broken != "no lock" {
			check(lock.Unlock())
		}
	}
}

func number(f vfs.File) uint64 {
	var b [8]byte
	if _, err := f.ReadAt(b[:], 0); err != nil && err != io.EOF {
		panic(err)
	}
	return binary.LittleEndian.Uint64(b[:])
}

// two runs two counters; lost describes what went wrong.
func two(s *Sim, broken string) (lost string, err error) {
	var last uint64
	twice := false
	ack := func(n uint64) {
		twice = twice || n < last || broken == "no lock" && n == last
		last = max(last, n)
	}
	for _, name := range []string{"a", "b"} {
		s.Process(name, func(p *Proc) { counter(p, 5, broken, ack) })
	}
	if err := s.Run(); err != nil {
		return "", err
	}
	if !s.WasCut() {
		s.Cut(crash.LoseAll)
	}
	var found uint64
	s.Odds = Odds{}
	s.Process("after", func(p *Proc) {
		if f, err := p.FS.OpenFile("/n", os.O_RDONLY, 0); err == nil {
			found = number(f)
			s.tracef("found %d", found)
		}
	})
	err = s.Run()
	switch {
	case twice:
		lost = "two writers got one number"
	case found < last:
		lost = fmt.Sprintf("%d was acknowledged, %d is there", last, found)
	}
	return lost, err
}

func TestEveryCut(t *testing.T) {
	for _, broken := range []string{"", "no sync", "early ack", "no syncdir", "no lock"} {
		whole := New(1)
		lost, err := two(whole, broken)
		check(err)
		var first string
		for _, n := range whole.Changes() {
			for _, p := range crash.Patterns() {
				s := New(1)
				s.CutAt(n, p)
				l, err := two(s, broken)
				if err != nil {
					t.Fatalf("seed 1, cut %d %v: %v", n, p, err)
				}
				if l != "" && lost == "" {
					lost, first = l, fmt.Sprintf("seed 1, cut %d %v", n, p)
				}
			}
		}
		if (lost != "") != (broken != "") {
			t.Errorf("%q: %s: %s", broken, first, lost)
		}
	}
}

// The same seed, cut and pattern give the same run.
func TestReplay(t *testing.T) {
	run := func(seed uint64, cut int) string {
		var lines []string
		s := New(seed)
		s.Odds = Odds{Switch: 3, Stop: 40, Kill: 60}
		s.Trace = func(line string) { lines = append(lines, line) }
		s.OnKill = func(p *Proc) {
			s.Process(p.Name, func(p *Proc) { counter(p, 5, "", func(uint64) {}) })
		}
		s.CutAt(cut, crash.KeepRandom)
		_, err := two(s, "")
		check(err)
		return strings.Join(lines, "\n")
	}
	differ := 0
	for seed := range uint64(30) {
		a, b := run(seed, 40), run(seed, 40)
		if a != b {
			t.Fatalf("seed %d: two runs differ:\n%s\n---\n%s", seed, a, b)
		}
		if a != run(seed+1, 40) {
			differ++
		}
	}
	if differ != 30 {
		t.Errorf("only %d of 30 seeds make a difference", differ)
	}
	for _, what := range []string{"kill ", "stop ", "cut keep-random", "sim_test.go:"} {
		if !strings.Contains(run(3, 40)+run(4, 40)+run(5, 40), what) {
			t.Errorf("%q never happened", what)
		}
	}
}

// Kills, stops and cuts at random lose nothing that was acknowledged.
func TestChaos(t *testing.T) {
	all := Coverage{}
	for seed := range uint64(300) {
		s := New(seed)
		s.Odds = Odds{Switch: 3, Stop: 50, Kill: 50, Cut: 200}
		s.OnKill = func(*Proc) {
			s.Process("again", func(p *Proc) { counter(p, 5, "", func(uint64) {}) })
		}
		if lost, err := two(s, ""); lost != "" || err != nil {
			t.Fatalf("seed %d: %s %v", seed, lost, err)
		}
		all.Add(s.Coverage())
	}
	for _, what := range []string{"kill", "stop", "switch"} {
		if missing := all.Missing(what); len(missing) > 0 {
			t.Errorf("never a %s at %v", what, missing)
		}
	}
	if !strings.Contains(all.String(), "datasync") {
		t.Error(all.String())
	}
}

func TestKillReleasesLocksAndRunsDefers(t *testing.T) {
	s := New(1)
	var order []string
	victim := s.Process("victim", func(p *Proc) {
		defer func() {
			order = append(order, "deferred")
			p.FS.Mkdir("/never", 0o700)
			order = append(order, "never reached")
		}()
		l, err := p.FS.OpenLock("/lock", 0o600)
		check(err)
		check(l.Lock(context.Background(), vfs.ModeExclusive))
		for {
			p.FS.Stat("/")
		}
	})
	s.Process("killer", func(p *Proc) {
		p.Sleep(time.Second)
		s.KillProcess(victim)
		l, err := p.FS.OpenLock("/lock", 0o600)
		check(err)
		check(l.Lock(context.Background(), vfs.ModeExclusive))
		if _, err := p.FS.Stat("/never"); err == nil {
			panic("a dead process made a folder")
		}
		order = append(order, "locked")
	})
	check(s.Run())
	slices.Sort(order)
	if !slices.Equal(order, []string{"deferred", "locked"}) {
		t.Fatal(order)
	}
}

func TestLockTimesOutInSimulatedTime(t *testing.T) {
	s := New(1)
	s.Process("a", func(p *Proc) {
		l, _ := p.FS.OpenLock("/lock", 0o600)
		check(l.Lock(context.Background(), vfs.ModeExclusive))
		p.Sleep(time.Hour)
		check(l.Unlock())
	})
	s.Process("b", func(p *Proc) {
		p.Sleep(time.Minute)
		start := p.Now()
		ctx, cancel := p.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		inner, cancel2 := context.WithCancel(ctx) // must not need a goroutine
		defer cancel2()
		l, _ := p.FS.OpenLock("/lock", 0o600)
		if err := l.Lock(inner, vfs.ModeShared); !errors.Is(err, context.DeadlineExceeded) {
			panic(fmt.Sprint("want the deadline, got ", err))
		}
		if d := p.Now().Sub(start); d < 30*time.Second || d > 31*time.Second {
			panic(fmt.Sprint("waited ", d))
		}
		check(l.Lock(context.Background(), vfs.ModeShared))
	})
	check(s.Run())
}

func TestDeadlockIsReported(t *testing.T) {
	s := New(1)
	for i, name := range []string{"a", "b"} {
		s.Process(name, func(p *Proc) {
			locks := []string{"/x", "/y"}
			if i == 1 {
				slices.Reverse(locks)
			}
			take := func() {
				for _, name := range locks {
					l, err := p.FS.OpenLock(name, 0o600)
					check(err)
					check(l.Lock(context.Background(), vfs.ModeExclusive))
					defer l.Close()
				}
			}
			for range 1000 {
				take()
			}
		})
	}
	err := s.Run()
	var d *DeadlockError
	if !errors.As(err, &d) || len(d.Waiting) != 2 || len(d.Held) == 0 {
		t.Fatal(err)
	}
	if !strings.Contains(err.Error(), "sim_test.go:") || !strings.Contains(err.Error(), "is held exclusive by") {
		t.Fatal(err)
	}
}

// A context with a real deadline must not hang a simulated deadlock.
func TestForeignDeadline(t *testing.T) {
	s := New(1)
	s.Process("a", func(p *Proc) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		l, _ := p.FS.OpenLock("/x", 0o600)
		check(l.Lock(ctx, vfs.ModeShared))
		if err := l.Lock(ctx, vfs.ModeShared); !errors.Is(err, context.DeadlineExceeded) {
			panic(err)
		}
	})
	check(s.Run())
}

func TestPanicAndLivelock(t *testing.T) {
	s := New(1)
	s.Process("a", func(*Proc) { panic("mine") })
	s.Process("b", func(p *Proc) {
		for {
			p.FS.Stat("/")
		}
	})
	if err := s.Run(); err == nil || !strings.Contains(err.Error(), "mine") {
		t.Fatal(err)
	}
	s = New(1)
	s.MaxOps = 1000
	s.Process("b", func(p *Proc) {
		for {
			p.FS.Stat("/")
		}
	})
	if err := s.Run(); err == nil || !strings.Contains(err.Error(), "livelock") {
		t.Fatal(err)
	}
}

// An open of a leased file waits until the lease is released.
func TestLeaseParks(t *testing.T) {
	s := New(1)
	var order []string
	s.Process("a", func(p *Proc) {
		f, err := p.FS.OpenFile("/x", os.O_CREATE|os.O_RDWR, 0o600)
		check(err)
		if ok, err := f.Lease(); !ok || err != nil {
			panic(fmt.Sprint(ok, err))
		}
		p.Sleep(time.Second)
		order = append(order, "unlease")
		check(f.Unlease())
	})
	s.Process("b", func(p *Proc) {
		p.Sleep(time.Millisecond)
		_, err := p.FS.OpenFile("/x", os.O_RDONLY, 0)
		check(err)
		order = append(order, "open")
	})
	check(s.Run())
	if !slices.Equal(order, []string{"unlease", "open"}) {
		t.Fatal(order)
	}
}

func TestSites(t *testing.T) {
	s := New(1)
	s.Process("a", func(p *Proc) {
		check(vfs.WriteDurable(p.FS, "/t", "/x", []byte("x"), 0o600))
	})
	check(s.Run())
	for _, kind := range []wrap.Kind{wrap.Create, wrap.Write, wrap.Sync, wrap.Rename, wrap.SyncDir} {
		found := false
		for at := range s.Coverage() {
			found = found || at.Kind == kind && strings.HasPrefix(at.Site, "sim/sim_test.go:")
		}
		if !found {
			t.Errorf("no %v of this file in:\n%s", kind, s.Coverage())
		}
	}
}

func BenchmarkOps(b *testing.B) {
	s := New(1)
	for _, name := range []string{"a", "b"} {
		s.Process(name, func(p *Proc) {
			f, err := p.FS.OpenFile("/"+name, os.O_RDWR|os.O_CREATE, 0o600)
			check(err)
			data := make([]byte, 1000)
			for s.Ops() < b.N {
				f.WriteAt(data, 0)
				f.Datasync()
			}
		})
	}
	s.MaxOps = b.N + 100
	check(s.Run())
}

// A process that returns releases what it held, as one that exits does.
func TestExitReleasesLocks(t *testing.T) {
	s := New(1)
	take := func(p *Proc) {
		l, err := p.FS.OpenLock("/lock", 0o600)
		check(err)
		check(l.Lock(context.Background(), vfs.ModeExclusive))
	}
	s.Process("a", take)
	s.Process("b", take)
	check(s.Run())
}

// FAILURES 26: a stopped process holds a lock; others wait, and may time out.
func TestStoppedProcessHoldsItsLock(t *testing.T) {
	gaveUp := 0
	for seed := range uint64(20) {
		s := New(seed)
		s.Odds = Odds{Switch: 3, Stop: 20}
		for _, name := range []string{"a", "b"} {
			s.Process(name, func(p *Proc) {
				l, err := p.FS.OpenLock("/lock", 0o600)
				check(err)
				for range 50 {
					ctx, cancel := p.WithTimeout(context.Background(), time.Millisecond)
					err := l.Lock(ctx, vfs.ModeExclusive)
					cancel()
					if err != nil {
						gaveUp++
						continue
					}
					p.FS.Stat("/")
					check(l.Unlock())
				}
			})
		}
		start := s.Now()
		check(s.Run())
		if working := time.Duration(s.Ops()) * s.Step; s.Now().Sub(start) < 2*working {
			t.Errorf("seed %d: nobody was stopped", seed)
		}
	}
	if gaveUp == 0 {
		t.Error("nobody waited for a stopped process")
	}
}

// Data that a failed sync lost stay lost after a cut; the fault is injected through the disk.
func TestFailedSyncThenCut(t *testing.T) {
	s := New(1)
	s.Process("a", func(p *Proc) {
		f, err := p.FS.OpenFile("/a", os.O_RDWR|os.O_CREATE, 0o600)
		check(err)
		check(p.FS.SyncDir("/"))
		_, err = f.WriteAt([]byte("lost"), 0)
		check(err)
		s.Disk().FailSync(func(string, string) error { return io.ErrNoProgress })
		if err := f.Sync(); !errors.Is(err, io.ErrNoProgress) {
			panic(err)
		}
		s.Disk().FailSync(nil)
		check(f.Sync())
	})
	check(s.Run())
	s.Cut(crash.KeepAll)
	s.Process("b", func(p *Proc) {
		b, err := vfs.ReadFile(p.FS, "/a", 10)
		check(err)
		if string(b) != "\x00\x00\x00\x00" {
			panic(fmt.Sprintf("%q", b))
		}
	})
	check(s.Run())
}

func TestWaitAndRand(t *testing.T) {
	run := func() (out string) {
		s := New(5)
		for _, name := range []string{"a", "b"} {
			s.Process(name, func(p *Proc) {
				ctx, cancel := p.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				start := p.Now()
				check(p.Wait(ctx, 40*time.Second))
				if err := p.Wait(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || p.Now().Sub(start) != time.Minute {
					panic(fmt.Sprint(err, p.Now().Sub(start)))
				}
				b := make([]byte, 4)
				_, err := io.ReadFull(p.Rand(), b)
				check(err)
				out += fmt.Sprintf("%x ", b)
			})
		}
		check(s.Run())
		return out
	}
	first := run()
	if f := strings.Fields(first); first != run() || f[0] == f[1] {
		t.Fatal(first)
	}
}
