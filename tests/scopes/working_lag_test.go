package scopes

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/working"
)

// writtenBy counts what is written outside the log, by the size of the scope.
type writtenBy struct {
	vfs.FS
	bytes atomic.Int64
}

func countWrites() *writtenBy {
	w := &writtenBy{}
	w.FS = fault.New(vfs.OS(), func(op *fault.Op) error {
		if op.Kind == wrap.Write && !strings.Contains(op.Path, "wal") {
			w.bytes.Add(int64(op.Size))
		}
		return nil
	})
	return w
}

// A large scope with a small change each second is not written as a whole each second, even if memories
// are put meanwhile; after a flush or a close its file has everything.
func TestWorkingLag(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	mib := 4
	if v := os.Getenv("VARVE_SCOPE_MIB"); v != "" {
		fmt.Sscan(v, &mib)
	}
	for _, beside := range []bool{false, true} {
		dir := t.TempDir()
		count := countWrites()
		clock := fixture.ClockAt(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		o := storetest.In(&varve.Options{NoBackground: true, Clock: clock.Tick},
			storetest.Environment{System: vfs.System{FS: count}})
		st, err := varve.Open(t.Context(), dir, o)
		fixture.Must(t, err)
		w, err := st.Working().Open(t.Context(), working.Scope{Session: "s"}, nil)
		fixture.Must(t, err)
		for i := range mib*4 - 1 {
			fixture.Must(t, w.Set(t.Context(), fmt.Sprint("k", i), strings.Repeat("x", 256<<10)))
		}
		fixture.Must(t, st.Flush(t.Context()))
		count.bytes.Store(0)
		for i := range 60 {
			clock.Add(time.Second)
			fixture.Must(t, w.Set(t.Context(), "small", i))
			if beside {
				_, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprint("m", i), Content: "x"})
				fixture.Must(t, err)
			}
			storetest.Inner(st).Flusher.FlushBackground(t.Context())
			if beside {
				if _, err := os.Stat(dir + "/memories/" + fmt.Sprint("m", i) + ".json"); err != nil {
					t.Fatal(err)
				}
			}
		}
		written := float64(count.bytes.Load()) / (1 << 20)
		t.Logf("memories beside it: %v: %.1f MiB written in a minute, of %d MiB", beside, written, mib)
		if written > 80 { // a MiB a second, and what a memory takes
			t.Errorf("%.1f MiB", written)
		}
		fixture.Must(t, w.Set(t.Context(), "small", "last"))
		storetest.Inner(st).Flusher.FlushBackground(t.Context())
		if has(t, dir, "last") || storetest.Inner(st).Engine.Log().Flushed() >= storetest.Inner(st).Engine.Log().Durable() {
			t.Error("the file does not lag")
		}
		fixture.Sound(t, dir)
		// A kill now loses nothing; nor does another process that opens the store and flushes.
		killed := filepath.Join(t.TempDir(), "s")
		fixture.CopyLive(t, killed, dir)
		for _, to := range []string{killed, dir} {
			other, err := varve.Open(t.Context(), to, &varve.Options{NoBackground: true})
			fixture.Must(t, err)
			v, err := other.Working().Open(t.Context(), working.Scope{Session: "s"}, nil)
			fixture.Must(t, err)
			if got, _, err := v.Get(t.Context(), "small"); err != nil || got != "last" {
				t.Errorf("%v %v", got, err)
			}
			fixture.Must(t, other.Flush(t.Context()))
			if !has(t, to, "last") {
				t.Error("it was flushed, and the file lacks it")
			}
			fixture.Must(t, other.Close())
			fixture.Sound(t, to)
		}
		fixture.Must(t, w.Set(t.Context(), "small", "closed"))
		storetest.Inner(st).Flusher.FlushBackground(t.Context())
		if has(t, dir, "closed") {
			t.Error("the file does not lag behind another's flush")
		}
		fixture.Must(t, st.Close())
		if !has(t, dir, "closed") {
			t.Error("it was closed, and the file lacks it")
		}
		fixture.Sound(t, dir)
	}
}

// While a scope lags and there is no other work, the flusher rests, even if the round before left
// something.
func TestWorkingLagRests(t *testing.T) {
	t.Parallel()
	clock := fixture.ClockAt(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	o := &varve.Options{NoBackground: true, Clock: clock.Tick}
	st := fixture.Open(t, t.TempDir(), o)
	w, err := st.Working().Open(t.Context(), working.Scope{Session: "s"}, nil)
	fixture.Must(t, err)
	fixture.Must(t, w.Set(t.Context(), "large", strings.Repeat("x", 3<<20)))
	fixture.Must(t, st.Flush(t.Context()))
	fixture.Must(t, w.Set(t.Context(), "small", "value"))
	storetest.Inner(st).Flusher.FlushBackground(t.Context())
	if storetest.Inner(st).Engine.Log().Flushed() >= storetest.Inner(st).Engine.Log().Durable() {
		t.Fatal("it does not lag")
	}
	// another process changed the model during that round, of which there is no file
	storetest.Inner(st).Flusher.More.Store(true)
	if rest, did := storetest.Inner(st).Flusher.FlushBackground(t.Context()); !did || rest == 0 {
		t.Errorf("rests %v, %v", rest, did)
	}
}

// A round that fails leaves nothing lagging.
func TestWorkingLagAfterFailure(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	dir := t.TempDir()
	var fails atomic.Bool
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if fails.Load() && op.Kind == wrap.Rename && strings.Contains(op.Path, "tmp") {
			return errors.New("not now")
		}
		return nil
	})
	clock := fixture.ClockAt(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	o := storetest.In(&varve.Options{NoBackground: true, Clock: clock.Tick},
		storetest.Environment{System: vfs.System{FS: fsys}})
	st, err := varve.Open(t.Context(), dir, o)
	fixture.Must(t, err)
	defer st.Close()
	w, err := st.Working().Open(t.Context(), working.Scope{Session: "s"}, nil)
	fixture.Must(t, err)
	fixture.Must(t, w.Set(t.Context(), "large", strings.Repeat("x", 3<<20)))
	fixture.Must(t, st.Flush(t.Context()))
	fixture.Must(t, w.Set(t.Context(), "small", "value"))
	storetest.Inner(st).Flusher.FlushBackground(t.Context())
	if has(t, dir, "value") {
		t.Fatal("it does not lag")
	}
	_, err = st.Put(t.Context(), varve.Memory{ID: "m", Content: "x"})
	fixture.Must(t, err)
	fails.Store(true)
	fixture.Must(t, func() error {
		if st.Flush(t.Context()) == nil {
			return errors.New("it did not fail")
		}
		return nil
	}())
	fails.Store(false)
	fixture.Must(t, st.Flush(t.Context()))
	if !has(t, dir, "value") || storetest.Inner(st).Engine.Log().Flushed() < storetest.Inner(st).Engine.Log().Durable() {
		t.Error("flushed, and the file lacks it")
	}
	fixture.Sound(t, dir)
}

// After a failed rebuild of the index nothing lags either: what it was writing to a scope's file is not
// there, whatever is written to the scope next.
func TestWorkingLagAfterFailedRebuild(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for name, why := range map[string]error{"asked": flush.ErrAsked, "repair": flush.ErrFound} {
		t.Run(name, func(t *testing.T) { lagAfterFailedRebuild(t, why) })
	}
}

func lagAfterFailedRebuild(t *testing.T, why error) {
	dir := filepath.Join(t.TempDir(), "s")
	var fails atomic.Bool
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if fails.Load() && op.Kind == wrap.Exchange {
			return errors.New("not now")
		}
		return nil
	})
	clock := fixture.ClockAt(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	o := storetest.In(&varve.Options{NoBackground: true, Clock: clock.Tick},
		storetest.Environment{System: vfs.System{FS: fsys}})
	st, err := varve.Open(t.Context(), dir, o)
	fixture.Must(t, err)
	defer st.Close()
	storetest.Inner(st).Scopes.Tune().Least = 1
	w, err := st.Working().Open(t.Context(), working.Scope{Session: "s"}, nil)
	fixture.Must(t, err)
	for i := range 20 {
		fixture.Must(t, w.Set(t.Context(), fmt.Sprint("k", i), strings.Repeat("x", 20<<10)))
	}
	b := new(varve.Batch)
	for i := range 1200 { // an index that is not written each round, which would write the scope as well
		b.Put(varve.Memory{ID: fmt.Sprint("m", i), Content: "x"})
	}
	fixture.Must(t, st.Apply(t.Context(), b))
	fixture.Must(t, st.Admin().Compact(t.Context()))
	clock.Add(20 * time.Millisecond) // the log's clock went ahead of it
	fixture.Must(t, w.Set(t.Context(), "small", "value"))
	storetest.Inner(st).Flusher.FlushBackground(t.Context())
	if has(t, dir, "value") {
		t.Fatal("it does not lag")
	}
	lacked := storetest.Inner(st).Engine.Log().Flushed()
	fails.Store(true)
	if err := storetest.Inner(st).Flusher.ReindexNow(t.Context(), why); err == nil || has(t, dir, "value") {
		t.Fatal("it did not fail:", err)
	}
	fails.Store(false)
	fixture.Must(t, w.Set(t.Context(), "later", "other"))
	storetest.Inner(st).Flusher.FlushBackground(t.Context())
	if storetest.Inner(st).Engine.Log().Flushed() > lacked && !has(t, dir, "value") {
		t.Errorf("flushed is %d, the file lacks what is at %d", storetest.Inner(st).Engine.Log().Flushed(), lacked)
	}
	fixture.Sound(t, dir)
	killed := filepath.Join(t.TempDir(), "s")
	fixture.CopyLive(t, killed, dir)
	other, err := varve.Open(t.Context(), killed, &varve.Options{NoBackground: true})
	fixture.Must(t, err)
	defer other.Close()
	v, err := other.Working().Open(t.Context(), working.Scope{Session: "s"}, nil)
	fixture.Must(t, err)
	for key, want := range map[string]string{"small": "value", "later": "other"} {
		if got, _, err := v.Get(t.Context(), key); err != nil || got != want {
			t.Errorf("%s is %v, %v", key, got, err)
		}
	}
}

// has reports whether the only file of a scope contains a text.
func has(t *testing.T, dir, text string) bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "working", "*.json"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	return strings.Contains(string(fixture.ReadBytes(t, names[0])), `"value": "`+text+`"`)
}

// Random histories of two handles on one folder whose scopes lag, with copies of the folder as a kill
// leaves it: every value is there, and verify finds nothing.
func TestWorkingLagRandom(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	seed := proofs.Seed(t, 0)
	rng := rand.New(rand.NewPCG(seed, 1))
	clock := fixture.ClockAt(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	lagged := 0
	for range storetest.Repeat(t, 6) {
		dir := filepath.Join(t.TempDir(), "s")
		want := map[string]map[string]string{}
		spill := int64(10<<10) << rng.IntN(8)
		open := func() []*varve.Store {
			var list []*varve.Store
			for range 2 {
				st, err := varve.Open(t.Context(), dir,
					storetest.In(&varve.Options{NoBackground: true, Clock: clock.Tick, SegmentSize: 64 << 10},
						storetest.Environment{System: vfs.System{SpillBytes: spill}}))
				fixture.Must(t, err)
				storetest.Inner(st).Scopes.Tune().Least = 1
				list = append(list, st)
			}
			return list
		}
		stores := open()
		for range 150 {
			st := stores[rng.IntN(2)]
			name := fmt.Sprint("s", rng.IntN(3))
			switch rng.IntN(12) {
			default:
				w, err := st.Working().Open(t.Context(), working.Scope{Session: name}, nil)
				fixture.Must(t, err)
				key, value := fmt.Sprint("k", rng.IntN(5)), strings.Repeat("v", rng.IntN(4000)+1)+fmt.Sprint(rng.Uint32())
				fixture.Must(t, w.Set(t.Context(), key, value))
				if want[name] == nil {
					want[name] = map[string]string{}
				}
				want[name][key] = value
			case 0:
				_, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprint("m", rng.IntN(9)), Content: fmt.Sprint(rng.Uint32())})
				fixture.Must(t, err)
			case 1, 2, 3:
				storetest.Inner(st).Flusher.FlushBackground(t.Context())
				lagged += len(storetest.Inner(st).Flusher.Lagging.Scopes)
			case 4:
				fixture.Must(t, st.Flush(t.Context()))
			case 5:
				clock.Add(time.Duration(rng.IntN(20)) * time.Millisecond)
			case 6:
				fixture.Must(t, dropAll(t, st, name))
				delete(want, name)
			case 7: // killed
				copied := filepath.Join(t.TempDir(), "s")
				fixture.CopyLive(t, copied, dir)
				fixture.Must(t, errors.Join(stores[0].Close(), stores[1].Close()))
				dir = copied
				fixture.Sound(t, dir)
				stores = open()
			}
			for name, values := range want {
				w, err := stores[rng.IntN(2)].Working().Open(t.Context(), working.Scope{Session: name}, nil)
				fixture.Must(t, err)
				got, err := w.All(t.Context())
				fixture.Must(t, err)
				if len(got) != len(values) {
					t.Fatalf("%s: %d values, want %d", name, len(got), len(values))
				}
				for k, v := range values {
					if got[k] != v {
						t.Fatalf("%s: %s is another value", name, k)
					}
				}
			}
		}
		fixture.Must(t, errors.Join(stores[0].Close(), stores[1].Close()))
		fixture.Sound(t, dir)
	}
	if lagged == 0 {
		t.Error("nothing lagged")
	}
	t.Logf("%d times a scope lagged", lagged)
}

func dropAll(t *testing.T, st *varve.Store, session string) error {
	_, err := st.Working().Home().Do(t.Context(),
		&working.Request{Scope: working.Scope{Session: session}, Op: working.OpDrop{}})
	return err
}
