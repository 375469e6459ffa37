package wal

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// A process is killed at any operation while it restores a segment from its copy, and a power loss follows: the next
// open has every entry.
func TestHealCut(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	options := func(fsys vfs.FS) func(*Options) {
		return func(o *Options) {
			o.FS, o.Dir, o.Inline = fsys, "/s", true
			o.Clock = func() time.Time { now = now.Add(time.Microsecond); return now }
			o.Sleep = func(context.Context, time.Duration) error { return nil }
		}
	}
	prepare := func() (*crash.Disk, []Entry) {
		disk := crash.New()
		fsys := disk.Process("first")
		if err := vfs.MkdirAll(fsys, "/s", 0o700); err != nil {
			t.Fatal(err)
		}
		l, _ := open(t, "", options(fsys))
		want := fill(t, l, 4)
		if err := l.archive(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := vfs.ReadFile(fsys, "/s/wal/00000002.wal", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		b[20000] ^= 1
		if err := vfs.WriteDurable(fsys, "/s/wal/vandal", "/s/wal/00000002.wal", b, 0o600); err != nil {
			t.Fatal(err)
		}
		return disk, want
	}
	step := 5
	if !proofs.Long() {
		step = 41
	}
	healed, n := 0, 0
	for at, last := 1, false; !last; at += step {
		disk, want := prepare()
		view := disk.Process("killed")
		ops := 0
		fsys := wrap.New(view, func(_ *wrap.Op, call func() error) error {
			if ops++; ops == at {
				disk.Kill(view)
				runtime.Goexit()
			}
			return call()
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			l, _ := open(t, "", options(fsys))
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}()
		<-done
		n++
		last = ops < at
		p := []crash.Pattern{crash.KeepAll, crash.LoseAll, crash.KeepRandom, crash.KeepNames}[n%4]
		after := disk.Crash(p, rand.New(rand.NewPCG(uint64(at), 1))).Process("after")
		l, m := open(t, "", options(after))
		r := l.Report()
		if r.Damage != nil || r.Replayed != len(want) || m.at[want[len(want)-1].Key] != want[len(want)-1].LSN {
			t.Fatalf("killed at operation %d, %v: %+v", at, p, r)
		}
		if r.HealedFrom != "" {
			healed++
		}
		sameEntries(t, l, 0, want)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if healed == 0 || healed == n {
		t.Fatalf("%d of %d were healed by the second open", healed, n)
	}
	t.Logf("%d cuts, %d healed by the second open", n, healed)
}
