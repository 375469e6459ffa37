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

// A process is killed at any operation of the first commits that have readings, with or without a power loss
// afterwards: acknowledged entries are there with their readings, and no entry has a field in a store that lacks the
// feature.
func TestReadingsCut(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ahead, now := right.Add(decade), time.Time{}
	options := func(fsys vfs.FS) func(*Options) {
		return func(o *Options) {
			o.FS, o.Dir, o.Inline, o.LockWait = fsys, "/s", true, time.Second
			o.Clock = func() time.Time { now = now.Add(time.Microsecond); return now }
			o.Sleep = func(context.Context, time.Duration) error { return nil }
		}
	}
	patterns := []crash.Pattern{crash.KeepAll, crash.LoseAll, crash.KeepRandom, crash.KeepRandom, crash.KeepNames}
	raised, read := map[bool]int{}, 0
	step := 1
	if !proofs.Long() {
		step = 7
	}
	for at, last := 1, false; !last; at += step {
		for try := range len(patterns) + 1 {
			now = ahead
			disk := crash.New()
			if err := vfs.MkdirAll(disk.Process("first"), "/s", 0o700); err != nil {
				t.Fatal(err)
			}
			view := disk.Process("killed")
			ops, counts, acknowledged := 0, false, 0
			l, _ := open(t, "", options(wrap.New(view, func(_ *wrap.Op, call func() error) error {
				if !counts {
					return call()
				}
				if ops++; ops == at {
					disk.Kill(view)
					runtime.Goexit()
				}
				return call()
			})))
			mustAppend(t, l, put("mahead", "1"))
			counts, now = true, right
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range 3 {
					if _, err := l.Append(context.Background(), put("mk", "a value")); err != nil {
						t.Error(err)
						break
					}
					acknowledged++
				}
				l.Close()
			}()
			<-done
			last = ops < at
			after := disk
			if try < len(patterns) {
				after = disk.Crash(patterns[try], rand.New(rand.NewPCG(uint64(at), uint64(try))))
			}
			r, _ := open(t, "", options(after.Process("after")))
			has := r.Features()&FeatureFields != 0
			raised[has]++
			list := history(t, r)
			for _, e := range list[1:] {
				if string(e.Value) != "a value" || !has || e.Reading.Before(right) || e.Reading.After(right.Add(time.Second)) {
					t.Fatalf("killed at %d, try %d: %q with reading %s, feature %v", at, try, e.Value, e.Reading, has)
				}
				read++
			}
			if len(list)-1 < acknowledged {
				t.Fatalf("killed at %d, try %d: %d entries of %d", at, try, len(list)-1, acknowledged)
			}
			mustAppend(t, r, put("mk", "again"))
			if list := history(t, r); !list[len(list)-1].Reading.Before(right.Add(time.Second)) {
				t.Fatalf("killed at %d, try %d: appended again with reading %s", at, try, list[len(list)-1].Reading)
			}
			mustClose(t, r)
		}
	}
	if raised[false] == 0 || raised[true] == 0 || read == 0 {
		t.Fatalf("not all outcomes were seen: %v, %d", raised, read)
	}
}
