package wal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// purgedOnce rolls the log and records that a purge is complete, as a purge that has no entry of its own does.
func purgedOnce(l *FileLog) error {
	if err := l.Purges().Roll(context.Background()); err != nil {
		return err
	}
	return l.Purges().Done()
}

// endingsApart returns the number of records in wal/ended, and an error if two of them have the same position.
func endingsApart(l *FileLog) (int, error) {
	list, err := l.Past().Endings()
	for i := range list[:max(0, len(list)-1)] {
		if list[i].Next >= list[i+1].Next {
			err = fmt.Errorf("records %d and %d of wal/ended have the positions %d and %d", i, i+1, list[i].Next,
				list[i+1].Next)
		}
	}
	return len(list), err
}

// Purges between which nothing is written end at different positions. A purge that has failed behind Roll, and is
// repeated, begins no further segment.
func TestPurgesEndApart(t *testing.T) {
	t.Parallel()
	l, _ := open(t, t.TempDir())
	defer l.Close()
	mustAppend(t, l, put("ma", "1"))
	for range 3 {
		if err := purgedOnce(l); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := endingsApart(l); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	for range 2 {
		if err := l.Purges().Roll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	tail := l.shared.Tail()
	if number, at := l.geo.Number(tail), l.geo.Offset(tail); number != 5 || at != segment.StartSize {
		t.Errorf("the log ends in segment %d at offset %d", number, at)
	}
	mustAppend(t, l, put("mb", "2"))
	if list := history(t, l); len(list) != 2 {
		t.Errorf("%d entries, want 2", len(list))
	}
}

// A process is killed at any operation of purges between which nothing is written, with or without a power loss
// afterwards: no entry is lost, and the next purges end at other positions.
func TestPurgesEndApartCut(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	now := time.Time{}
	options := func(fsys vfs.FS) func(*Options) {
		return func(o *Options) {
			o.FS, o.Dir, o.Inline, o.LockWait = fsys, "/s", true, time.Second
			o.Clock = func() time.Time { now = now.Add(time.Microsecond); return now }
			o.Sleep = func(context.Context, time.Duration) error { return nil }
		}
	}
	patterns := []crash.Pattern{crash.KeepAll, crash.LoseAll, crash.KeepRandom, crash.KeepRandom, crash.KeepNames}
	step, most := 1, 0
	if !proofs.Long() {
		step = 3
	}
	for at, last := 1, false; !last; at += step {
		for try := range len(patterns) + 1 {
			now = right
			disk := crash.New()
			if err := vfs.MkdirAll(disk.Process("first"), "/s", 0o700); err != nil {
				t.Fatal(err)
			}
			view := disk.Process("killed")
			ops, counts := 0, false
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
			mustAppend(t, l, put("ma", "1"))
			counts = true
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range 3 {
					if err := purgedOnce(l); err != nil {
						t.Error(err)
						break
					}
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
			before, err := endingsApart(r)
			if err != nil {
				t.Fatalf("operation %d, attempt %d: %v", at, try, err)
			}
			most = max(most, before)
			for range 2 {
				if err := purgedOnce(r); err != nil {
					t.Fatalf("operation %d, attempt %d: %v", at, try, err)
				}
			}
			if n, err := endingsApart(r); n != before+2 || err != nil {
				t.Fatalf("operation %d, attempt %d: %d records, there were %d: %v", at, try, n, before, err)
			}
			mustAppend(t, r, put("mb", "2"))
			if list := history(t, r); len(list) != 2 {
				t.Fatalf("operation %d, attempt %d: %d entries, want 2", at, try, len(list))
			}
			for _, err := range r.Past().Pieces(context.Background(), past.Mark{LSN: r.geo.Start(1)}, r.Durable()) {
				if err != nil {
					t.Fatalf("operation %d, attempt %d: %v", at, try, err)
				}
			}
			r.Close()
		}
	}
	if most != 3 {
		t.Errorf("at most %d purges were complete before the kill, want 3", most)
	}
}
