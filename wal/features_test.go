package wal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/page"
)

const testFeatures = FeatureTestWrite | FeatureTestRead

// knowing returns the option of a build that knows features.
func knowing(f Features) func(*Options) { return func(o *Options) { o.Known = f } }

func readOnly(o *Options) { o.ReadOnly = true }

func mustRaise(t testing.TB, l *FileLog, f Features) {
	t.Helper()
	if err := l.Raise(context.Background(), f); err != nil {
		t.Fatal(err)
	}
}

func mustClose(t testing.TB, l *FileLog) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// tryOpen opens a log and closes it again.
func tryOpen(dir string, change ...func(*Options)) error {
	o := new(model).options(dir)
	for _, c := range change {
		c(&o)
	}
	l, err := Open(context.Background(), o)
	if err == nil {
		err = l.Close()
	}
	return err
}

func slotsOf(t testing.TB, fsys vfs.FS, dir string) [2]Slot {
	t.Helper()
	slots, _, err := CheckpointSlots(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	return slots
}

func checkpointOf(t testing.TB, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFeaturesString(t *testing.T) {
	t.Parallel()
	for f, want := range map[Features]string{
		0: "none", testFeatures: "test-write, test-read", 1<<15 | FeatureTestWrite: "bit 15, test-write",
	} {
		if f.String() != want {
			t.Errorf("%x is %q, want %q", uint64(f), f, want)
		}
	}
}

// Without features a slot has the bytes that it had before features existed; with features, a program from
// before features existed reads the slot as one of a newer version.
func TestFeaturesNone(t *testing.T) {
	t.Parallel()
	c := Checkpoint{Sequence: 3, UUID: [16]byte{1}, SegmentSize: 64 << 10, Attested: Mark{LSN: 128<<10 + 128, Sum: 9},
		Time: 7}
	b := c.encode()
	if b[8] != 1 || len(bytes.Trim(b[slotUsed+8:], "\x00")) != 0 {
		t.Errorf("a slot without features has version %d, and behind the checksum %x", b[8],
			bytes.TrimRight(b[slotUsed+8:], "\x00"))
	}
	c.Features = FeatureTestWrite
	more := c.encode()
	if le := binary.LittleEndian; more[8] != 2 || !bytes.Equal(more[12:slotUsed], b[12:slotUsed]) ||
		xxhash.Sum64(more[:slotUsed]) != le.Uint64(more[slotUsed:]) {
		t.Error("an older program takes a slot with features for a damaged one, and not for a newer one")
	}
	dir := t.TempDir()
	l, _ := open(t, dir, knowing(testFeatures))
	mustAppend(t, l, put("mk", "1"))
	mustClose(t, l)
	for _, s := range slotsOf(t, vfs.OS(), dir) {
		if s.Err == nil && s.Features != 0 {
			t.Errorf("features %s that nobody raised", s.Features)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "wal", FeaturesName)); err == nil {
		t.Error("wal/features is there, and nobody raised one")
	}
}

// A build that lacks a writer feature may only read, a build that lacks a reader feature may not even read; a
// refused open changes nothing.
func TestFeaturesRefused(t *testing.T) {
	t.Parallel()
	for _, joined := range []bool{false, true} {
		for _, f := range []Features{FeatureTestWrite, FeatureTestRead, testFeatures} {
			dir := t.TempDir()
			l, _ := open(t, dir, knowing(testFeatures))
			mustAppend(t, l, put("mk", "1"))
			mustRaise(t, l, f)
			if !joined {
				mustClose(t, l)
			} else {
				defer l.Close()
			}
			before := checkpointOf(t, dir)
			var lacks *errs.FeatureError
			err := tryOpen(dir)
			if !errors.Is(err, errs.ErrNewerFormat) || !errors.As(err, &lacks) ||
				strings.Join(lacks.Lacks, ", ") != f.String() ||
				!strings.Contains(err.Error(), errs.ErrNewerFormat.Error()) || lacks.Readable != (f == FeatureTestWrite) {
				t.Errorf("%s, joined %v: opened: %v", f, joined, err)
			}
			if lacks != nil && lacks.Readable != strings.Contains(err.Error(), "read-only") {
				t.Errorf("%s: does not say whether reading works: %v", f, err)
			}
			err = tryOpen(dir, readOnly)
			if f == FeatureTestWrite && err != nil || f != FeatureTestWrite && !errors.Is(err, errs.ErrNewerFormat) {
				t.Errorf("%s, joined %v: opened read-only: %v", f, joined, err)
			}
			if !bytes.Equal(before, checkpointOf(t, dir)) {
				t.Errorf("%s, joined %v: the checkpoint was changed", f, joined)
			}
			if err := tryOpen(dir, knowing(f)); err != nil {
				t.Errorf("%s, joined %v: opened by a build that knows it: %v", f, joined, err)
			}
			if joined && len(l.Processes().All()) != 1 {
				t.Errorf("%s: attached after all are gone: %v", f, l.Processes().All())
			}
		}
	}
}

// Raising a feature again does not write the checkpoint again. After the log is opened again the raised features are
// there, and every checkpoint has them.
func TestFeaturesRaised(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir, knowing(testFeatures))
	if l.Features() != 0 {
		t.Errorf("a new log has features %s", l.Features())
	}
	mustRaise(t, l, 0)
	mustRaise(t, l, FeatureTestWrite)
	first := checkpointOf(t, dir)
	mustRaise(t, l, FeatureTestWrite)
	if !bytes.Equal(first, checkpointOf(t, dir)) {
		t.Error("raised again, the checkpoint was written again")
	}
	mustRaise(t, l, FeatureTestRead)
	if err := l.Raise(context.Background(), 1<<5); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("raised a feature that this build does not know: %v", err)
	}
	for range 3 {
		mustAppend(t, l, put("mk", "1"))
		held := mustHold(t, l)
		if err := l.SetCheckpoint(held, l.AppliedMark(), l.AppliedMark(), [Folders]int64{}); err != nil {
			t.Fatal(err)
		}
		held.Unlock()
		for i, s := range slotsOf(t, vfs.OS(), dir) {
			if s.Err != nil || s.Features != testFeatures {
				t.Fatalf("slot %d: %s, %v", i, s.Features, s.Err)
			}
		}
	}
	ro, _ := open(t, dir, readOnly, knowing(testFeatures))
	if ro.Features() != testFeatures {
		t.Errorf("read-only it has %s", ro.Features())
	}
	if err := ro.Raise(context.Background(), testFeatures); !errors.Is(err, errs.ErrReadOnly) {
		t.Errorf("raised read-only: %v", err)
	}
	mustClose(t, ro)
	mustClose(t, l)
	for _, change := range []func(*Options){func(*Options) {}, readOnly} {
		if err := os.Remove(filepath.Join(dir, "wal", "shared")); err != nil { // a reboot
			t.Fatal(err)
		}
		l, _ = open(t, dir, knowing(testFeatures), change)
		if l.Features() != testFeatures {
			t.Errorf("opened again it has %s", l.Features())
		}
		mustClose(t, l)
	}
}

// A read-only handle that lacks a reader feature gets an error from its next read.
func TestFeaturesReaderIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir, knowing(testFeatures))
	defer l.Close()
	ro, _ := open(t, dir, readOnly)
	defer ro.Close()
	mustRaise(t, l, FeatureTestWrite)
	mustAppend(t, l, put("mk", "1"))
	if err := ro.CatchUp(context.Background()); err != nil {
		t.Fatalf("after a writer feature: %v", err)
	}
	mustRaise(t, l, FeatureTestRead)
	if err := ro.CatchUp(context.Background()); !errors.Is(err, errs.ErrNewerFormat) {
		t.Fatalf("after a reader feature: %v", err)
	}
}

// quick makes a raise give up soon.
func quick(o *Options) { o.LockWait = 200 * time.Millisecond }

// A raise waits for processes that lack the feature, and for those that do not record what they know; it names
// them when it gives up.
func TestFeaturesRaiseWaits(t *testing.T) {
	t.Parallel()
	for name, older := range map[string]func(t *testing.T, l, other *FileLog){
		"lacks it":     func(*testing.T, *FileLog, *FileLog) {},
		"does not say": func(_ *testing.T, l, other *FileLog) { l.shared.Unsay(other.slot) },
		"said by before": func(_ *testing.T, l, other *FileLog) { // an older program has the slot now
			l.shared.Say(other.slot, vfs.Host{PID: 1 << 30}, uint64(testFeatures))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l, _ := open(t, dir, knowing(testFeatures), quick)
			defer l.Close()
			other, _ := open(t, dir)
			older(t, l, other)
			before := checkpointOf(t, dir)
			err := l.Raise(context.Background(), FeatureTestWrite)
			var locked *errs.LockError
			if !errors.As(err, &locked) || locked.Holder.PID != os.Getpid() || !strings.Contains(err.Error(), "test-write") {
				t.Fatalf("raised beside one that %s: %v", name, err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if err := l.Raise(ctx, FeatureTestWrite); !errors.Is(err, context.Canceled) {
				t.Errorf("raised without time: %v", err)
			}
			if l.Features() != 0 || !bytes.Equal(before, checkpointOf(t, dir)) {
				t.Error("a raise that gave up has changed something")
			}
			third, _ := open(t, dir, knowing(FeatureTestWrite)) // open.lock is free
			defer third.Close()
			mustAppend(t, other, put("mk", "1"))
			mustClose(t, other)
			mustRaise(t, l, FeatureTestWrite)
			if third.Features() != FeatureTestWrite {
				t.Errorf("another process sees features %s", third.Features())
			}
			mustAppend(t, third, put("mk", "2"))
		})
	}
}

// A raise waits without open.lock for a process that flushes for long: other processes can open the store
// meanwhile.
func TestFeaturesRaiseBesideFlush(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir, knowing(testFeatures), func(o *Options) { o.LockWait = 2 * time.Second })
	defer l.Close()
	other, _ := open(t, dir, knowing(testFeatures))
	defer other.Close()
	held := mustHold(t, other)
	done := make(chan error, 1)
	go func() { done <- l.Raise(context.Background(), FeatureTestWrite) }()
	third, _ := open(t, dir, knowing(testFeatures), func(o *Options) { o.LockWait = time.Second })
	mustClose(t, third)
	var locked *errs.LockError
	if err := <-done; !errors.As(err, &locked) || !strings.Contains(locked.Path, "flush.lock") ||
		errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("raised beside one that flushes: %v", err)
	}
	held.Unlock()
	mustRaise(t, l, FeatureTestWrite)
}

// TestFeaturesRaiseBesideFlushes: if several processes flush in turn flush.lock is never free, and a raise
// still gets its turn.
func TestFeaturesRaiseBesideFlushes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir, knowing(testFeatures), func(o *Options) { o.LockWait = 5 * time.Second })
	defer l.Close()
	ctx, stop := context.WithCancel(context.Background())
	var wg, begun sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for range 3 {
		other, _ := open(t, dir, knowing(testFeatures))
		begun.Add(1)
		wg.Go(func() {
			defer other.Close()
			first := sync.OnceFunc(begun.Done)
			defer first()
			for ctx.Err() == nil {
				held, err := other.LockFlush(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				first()
				time.Sleep(50 * time.Millisecond) // the flush
				held.Unlock()
			}
		})
	}
	begun.Wait()
	mustRaise(t, l, FeatureTestWrite)
}

// TestFeaturesRaiseFlushingBesideRaises: the holder of flush.lock raises features while other processes, which
// hold open.lock, wait for flush.lock to raise them; afterwards they have nothing left to do.
func TestFeaturesRaiseFlushingBesideRaises(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir, knowing(testFeatures))
	defer l.Close()
	held := mustHold(t, l)
	defer held.Unlock()
	var wg sync.WaitGroup
	for range 3 {
		other, _ := open(t, dir, knowing(testFeatures), func(o *Options) { o.LockWait = 5 * time.Second })
		wg.Go(func() {
			defer other.Close()
			if err := other.Raise(context.Background(), FeatureTestWrite); err != nil {
				t.Error(err)
			}
		})
	}
	time.Sleep(raiseTurns / 2) // the raises are waiting
	if ok, err := l.RaiseFlushing(held, FeatureTestWrite); !ok || err != nil {
		t.Error(ok, err)
	}
	wg.Wait()
}

// A process that found no place on the list is not overlooked: nothing is raised while it is attached. If the
// list hides it nevertheless, the process gets an error.
func TestFeaturesListIsFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir, knowing(testFeatures), quick)
	defer l.Close()
	taken := []int{}
	for range page.Places - 1 {
		taken = append(taken, l.shared.Claim(vfs.Host{PID: 1 << 30}, 0))
	}
	other, _ := open(t, dir)
	for _, i := range taken {
		l.shared.Release(i, 1<<30)
	}
	if err := l.Raise(context.Background(), FeatureTestWrite); !errors.Is(err, errs.ErrLocked) ||
		!strings.Contains(err.Error(), "192") {
		t.Fatalf("raised beside a process that is not on the list: %v", err)
	}
	l.shared.AddFeatures(uint64(FeatureTestWrite))
	if _, err := other.Append(context.Background(), put("mk", "1")); !errors.Is(err, errs.ErrNewerFormat) {
		t.Errorf("appended without knowing a feature: %v", err)
	}
	l.shared.SetFeatures(0)
	mustClose(t, other)
	mustRaise(t, l, FeatureTestWrite)
}

// Each process records what it knows in its own field, next to other processes that share the word, and clears
// it again.
func TestFeaturesSaid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var logs []*FileLog
	for i := range 20 {
		l, _ := open(t, dir, knowing(Features(1)<<(i+5))) // above the bits that each process knows
		logs = append(logs, l)
	}
	for i, l := range logs {
		known, ok := l.shared.Said(l.slot)
		if want := Features(1)<<(i+5) | KnownFeatures; ok != (i < page.Sets) || ok && Features(known) != want {
			t.Errorf("process %d says %s, %v", i, Features(known), ok)
		}
	}
	for i, l := range logs {
		if i > 0 {
			mustClose(t, l)
		}
	}
	for i := 1; i < len(logs); i++ {
		if _, ok := logs[0].shared.Said(i); ok {
			t.Errorf("process %d still says something", i)
		}
	}
	mustClose(t, logs[0])
}

// Processes attach continuously while a feature is raised: none that lacks it is attached when it is raised, or
// later.
func TestFeaturesRaiseBesideAttaching(t *testing.T) {
	t.Parallel()
	rounds := 20
	if !proofs.Long() {
		rounds = 4
	}
	for range rounds {
		dir := t.TempDir()
		l, _ := open(t, dir, knowing(testFeatures))
		var wg sync.WaitGroup
		stop := make(chan struct{})
		var mu sync.Mutex
		held := map[*FileLog]bool{}
		for range 3 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					other, err := Open(context.Background(), new(model).options(dir))
					if err != nil {
						if !errors.Is(err, errs.ErrNewerFormat) {
							t.Error(err)
						}
						return
					}
					mu.Lock()
					held[other] = true
					mu.Unlock()
					time.Sleep(time.Millisecond)
					mu.Lock()
					delete(held, other)
					mu.Unlock()
					if err := other.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		time.Sleep(5 * time.Millisecond)
		mustRaise(t, l, FeatureTestWrite)
		mu.Lock()
		if len(held) > 0 {
			t.Errorf("%d processes that lack the feature have the store open", len(held))
		}
		mu.Unlock()
		close(stop)
		wg.Wait()
		mustClose(t, l)
	}
}

// Whichever of checkpoint and wal/features is lost or damaged, the features are kept, and a build that lacks
// them does not write.
func TestFeaturesSurviveDamage(t *testing.T) {
	t.Parallel()
	spoil := func(t *testing.T, name string, at int64) {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		var b [1]byte
		_, rerr := f.ReadAt(b[:], at)
		b[0] ^= 1
		_, werr := f.WriteAt(b[:], at)
		if err := errors.Join(rerr, werr, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	slot := func(n, at int64) func(*testing.T, string) {
		return func(t *testing.T, dir string) { spoil(t, filepath.Join(dir, "checkpoint"), n*slotSize+at) }
	}
	noted := func(t *testing.T, dir string) { spoil(t, filepath.Join(dir, "wal", FeaturesName), 8) }
	remove := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	type damage []func(*testing.T, string)
	for name, do := range map[string]damage{
		"slot 0":                  {slot(0, 20)},
		"slot 1":                  {slot(1, 20)},
		"features of slot 0":      {slot(0, 144)},
		"features of slot 1":      {slot(1, 144)},
		"both slots":              {slot(0, 20), slot(1, 144)},
		"no checkpoint":           {remove("checkpoint")},
		"wal/features":            {noted},
		"no wal/features":         {remove("wal/features")},
		"slot 0 and wal/features": {slot(0, 144), noted},
		"slot 1, no wal/features": {slot(1, 144), remove("wal/features")},
		"no log":                  {func(t *testing.T, dir string) { _ = os.RemoveAll(filepath.Join(dir, "wal")) }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l, _ := open(t, dir, knowing(testFeatures))
			mustAppend(t, l, put("mk", "1"))
			mustRaise(t, l, FeatureTestWrite)
			mustClose(t, l)
			for _, d := range do {
				d(t, dir)
			}
			if err := tryOpen(dir); !errors.Is(err, errs.ErrNewerFormat) {
				t.Errorf("opened by a build that lacks the feature: %v", err)
			}
			if name != "no log" {
				if err := tryOpen(dir, readOnly); err != nil {
					t.Errorf("read-only: %v", err)
				}
			}
			l, _ = open(t, dir, knowing(testFeatures))
			if l.Features() != FeatureTestWrite {
				t.Errorf("features: %s", l.Features())
			}
			mustClose(t, l)
			for i, s := range slotsOf(t, vfs.OS(), dir) {
				if s.Features != FeatureTestWrite {
					t.Errorf("slot %d has features %s afterwards: %v", i, s.Features, s.Err)
				}
			}
			if f, err := readFeatures(vfs.OS(), dir); err != nil || f != FeatureTestWrite {
				t.Errorf("wal/features has %s afterwards: %v", f, err)
			}
		})
	}
	t.Run("all of it", func(t *testing.T) {
		dir := t.TempDir()
		l, _ := open(t, dir, knowing(testFeatures))
		mustRaise(t, l, FeatureTestWrite)
		mustClose(t, l)
		remove("checkpoint")(t, dir)
		noted(t, dir)
		for _, change := range []func(*Options){readOnly, func(*Options) {}} {
			if err := tryOpen(dir, knowing(testFeatures), change); !errors.Is(err, errs.ErrCorrupt) ||
				!strings.Contains(err.Error(), "wal/features") {
				t.Fatalf("opened though nothing says what features there are: %v", err)
			}
		}
		remove("wal/features")(t, dir)
		if err := tryOpen(dir, knowing(testFeatures)); err != nil {
			t.Fatal(err)
		}
	})
}

// The tools that change a store while no process has it open check the features as well.
func TestFeaturesAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir, knowing(testFeatures))
	mustRaise(t, l, FeatureTestWrite)
	mustClose(t, l)
	alone := func(known Features) error {
		release, ok, err := LockExclusive(vfs.OS(), dir, known, 0o600,
			func(k vfs.Lock) error { return k.Lock(context.Background(), vfs.ModeExclusive) })
		if err == nil && !ok {
			t.Fatal("somebody has it open")
		}
		if err == nil {
			release()
		}
		return err
	}
	for _, f := range []func() error{
		func() error { return nil },
		func() error { return os.Remove(filepath.Join(dir, "checkpoint")) },
	} {
		if err := f(); err != nil {
			t.Fatal(err)
		}
		if err := alone(0); !errors.Is(err, errs.ErrNewerFormat) {
			t.Errorf("taken by a build that lacks the feature: %v", err)
		}
		if err := alone(FeatureTestWrite); err != nil {
			t.Errorf("taken by a build that knows it: %v", err)
		}
	}
}

// A log can begin with features, and its repair keeps them.
func TestFeaturesBegin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	geo := segment.Geometry{UUID: [16]byte{1, 2, 3}, Size: 64 << 10}
	if err := BeginAbove(vfs.OS(), dir, 10*geo.Size, geo, FeatureTestWrite, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := tryOpen(dir); !errors.Is(err, errs.ErrNewerFormat) {
		t.Fatalf("begun by a build that lacks the feature: %v", err)
	}
	l, _ := open(t, dir, knowing(testFeatures))
	if l.Features() != FeatureTestWrite || !l.Report().Created {
		t.Fatalf("begun with features %s: %+v", l.Features(), l.Report())
	}
	mustClose(t, l)
	c, err := ReadCheckpoint(vfs.OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "tmp"), 0o700),
		NewCheckpoint(vfs.OS(), dir, c, 0o600)); err != nil {
		t.Fatal(err)
	}
	if c, err := ReadCheckpoint(vfs.OS(), dir); err != nil || c.Features != FeatureTestWrite {
		t.Fatalf("a new checkpoint has features %s: %v", c.Features, err)
	}
}
