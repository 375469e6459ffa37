package wal

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// A process is killed at any operation of a raise, with or without another attached process, and with or without a
// power loss afterwards. Then the features are raised wherever they are stored, or nowhere, and a raise that returned
// nil has taken place.
func TestFeaturesRaiseCut(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	options := func(fsys vfs.FS, known Features) func(*Options) {
		return func(o *Options) {
			o.FS, o.Dir, o.Inline, o.Known, o.LockWait = fsys, "/s", true, known, time.Second
			o.Clock = func() time.Time { now = now.Add(time.Microsecond); return now }
			o.Sleep = func(context.Context, time.Duration) error { return nil }
		}
	}
	// raised returns what a program from before features existed finds in the slots, and what is in
	// wal/features.
	raised := func(fsys vfs.FS) (inSlots, noted bool) {
		c, err := readCheckpoint(fsys, "/s")
		f, ferr := readFeatures(fsys, "/s")
		if err != nil || ferr != nil && !errors.Is(ferr, fs.ErrNotExist) {
			t.Fatal(err, ferr)
		}
		return c.Features == FeatureTestWrite, f == FeatureTestWrite
	}
	patterns := []crash.Pattern{crash.KeepAll, crash.LoseAll, crash.KeepRandom, crash.KeepRandom, crash.KeepNames}
	results := map[Features]int{}
	step := 1
	if !proofs.Long() {
		step = 13
	}
	for at, last := 1, false; !last; at += step {
		for try := range len(patterns) + 2 {
			disk := crash.New()
			first := disk.Process("first")
			if err := vfs.MkdirAll(first, "/s", 0o700); err != nil {
				t.Fatal(err)
			}
			view := disk.Process("killed")
			ops, counts, returned := 0, false, false
			l, _ := open(t, "", options(wrap.New(view, func(_ *wrap.Op, call func() error) error {
				if !counts {
					return call()
				}
				if ops++; ops == at {
					disk.Kill(view)
					runtime.Goexit()
				}
				return call()
			}), testFeatures))
			mustAppend(t, l, put("mk", "1"))
			var beside *FileLog
			if try == len(patterns) {
				beside, _ = open(t, "", options(first, testFeatures))
			}
			counts = true
			done := make(chan struct{})
			go func() {
				defer close(done)
				if err := l.Raise(context.Background(), FeatureTestWrite); err != nil {
					t.Error(err)
				}
				returned = true
				l.Close()
			}()
			<-done
			last = ops < at
			after := disk
			if try < len(patterns) {
				after = disk.Crash(patterns[try], rand.New(rand.NewPCG(uint64(at), uint64(try))))
			}
			fsys := after.Process("after")
			inSlots, noted := raised(fsys)
			if returned && (!inSlots || !noted) || inSlots && !noted {
				t.Fatalf("killed at %d, try %d: in the slots %v, in wal/features %v, returned %v", at, try, inSlots, noted, returned)
			}
			lacks := Open
			old := new(model).options("")
			options(fsys, 0)(&old)
			if o, err := lacks(context.Background(), old); (err == nil) == (inSlots || noted && beside == nil) || err != nil && !errors.Is(err, errs.ErrNewerFormat) {
				t.Fatalf("killed at %d, try %d: in the slots %v, in wal/features %v: opened by a build that lacks it: %v", at, try, inSlots, noted, err)
			} else if err == nil {
				mustClose(t, o)
			}
			if beside != nil {
				// The other processes continue; what they write keeps what was raised.
				mustAppend(t, beside, put("mk", "2"))
				held := mustHold(t, beside)
				if err := beside.SetCheckpoint(held, beside.AppliedMark(), beside.AppliedMark(), [Folders]int64{}); err != nil {
					t.Fatal(err)
				}
				held.Unlock()
				if now, _ := raised(fsys); now != inSlots {
					t.Fatalf("killed at %d: in the slots %v, and after a flush by another process %v", at, inSlots, now)
				}
				mustRaise(t, beside, FeatureTestWrite)
				if s := slotsOf(t, fsys, "/s"); !s[0].carries(FeatureTestWrite) || !s[1].carries(FeatureTestWrite) {
					t.Fatalf("killed at %d: raised again by another process, the slots have %s and %s", at, s[0].Features, s[1].Features)
				}
				mustClose(t, beside)
				continue
			}
			r, _ := open(t, "", options(fsys, testFeatures))
			got := r.Features()
			results[got]++
			want := Features(0)
			if inSlots || noted {
				want = FeatureTestWrite
			}
			if got != want {
				t.Fatalf("killed at %d, try %d: recovered with features %s, want %s", at, try, got, want)
			}
			mustClose(t, r)
			s := slotsOf(t, fsys, "/s")
			if got != 0 && (!s[0].carries(got) || !s[1].carries(got)) || got == 0 && (s[0].Features|s[1].Features) != 0 {
				t.Fatalf("killed at %d, try %d: recovered with %s, the slots have %s and %s", at, try, got, s[0].Features, s[1].Features)
			}
			// And durable: there is another power loss.
			again := after.Crash(crash.LoseAll, rand.New(rand.NewPCG(uint64(at), 7))).Process("again")
			r, _ = open(t, "", options(again, testFeatures))
			if r.Features() != got {
				t.Fatalf("killed at %d, try %d: recovered with %s, and after a power cut with %s", at, try, got, r.Features())
			}
			mustClose(t, r)
		}
	}
	if results[0] == 0 || results[FeatureTestWrite] == 0 {
		t.Fatalf("not all outcomes were seen: %v", results)
	}
	t.Logf("outcomes: %v", results)
}
