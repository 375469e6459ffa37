package varve

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

	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/working"
)

// writtenBy counts what is written outside of the log, scope by scope's size.
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

// A large scope of which a little changes each second is not written as a whole each
// second, also where memories are put beside it; and what its file lacks is in it when
// the store is flushed or closed.
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
		clock := clockAt(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		o := storetest.In(&Options{NoBackground: true, Clock: clock.tick}, storetest.Environment{System: vfs.System{FS: count}})
		st, err := Open(t.Context(), dir, o)
		must(t, err)
		w, err := st.Working().Open(t.Context(), working.Scope{Session: "s"}, nil)
		must(t, err)
		for i := range mib*4 - 1 {
			must(t, w.Set(t.Context(), fmt.Sprint("k", i), strings.Repeat("x", 256<<10)))
		}
		must(t, st.Flush(t.Context()))
		count.bytes.Store(0)
		for i := range 60 {
			clock.add(time.Second)
			must(t, w.Set(t.Context(), "small", i))
			if beside {
				_, err := st.Put(t.Context(), Memory{ID: fmt.Sprint("m", i), Content: "x"})
				must(t, err)
			}
			st.inner.Flusher.FlushBackground(t.Context())
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
		must(t, w.Set(t.Context(), "small", "last"))
		st.inner.Flusher.FlushBackground(t.Context())
		if has(t, dir, "last") || st.inner.Engine.Log().Flushed() >= st.inner.Engine.Log().Durable() {
			t.Error("the file does not lag")
		}
		well(t, dir)
		// Who is killed now has lost nothing; neither has who opens it beside, and flushes.
		killed := filepath.Join(t.TempDir(), "s")
		copyLive(t, killed, dir)
		for _, to := range []string{killed, dir} {
			other, err := Open(t.Context(), to, &Options{NoBackground: true})
			must(t, err)
			v, err := other.Working().Open(t.Context(), working.Scope{Session: "s"}, nil)
			must(t, err)
			if got, _, err := v.Get(t.Context(), "small"); err != nil || got != "last" {
				t.Errorf("%v %v", got, err)
			}
			must(t, other.Flush(t.Context()))
			if !has(t, to, "last") {
				t.Error("it was flushed, and the file lacks it")
			}
			must(t, other.Close())
			well(t, to)
		}
		must(t, w.Set(t.Context(), "small", "closed"))
		st.inner.Flusher.FlushBackground(t.Context())
		if has(t, dir, "closed") {
			t.Error("the file does not lag behind another's flush")
		}
		must(t, st.Close())
		if !has(t, dir, "closed") {
			t.Error("it was closed, and the file lacks it")
		}
		well(t, dir)
	}
}

// While a scope lags and nothing else is left to do, the flusher rests, also when the
// round before had left something.
func TestWorkingLagRests(t *testing.T) {
	t.Parallel()
	clock := clockAt(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	o := &Options{NoBackground: true, Clock: clock.tick}
	st := openTest(t, t.TempDir(), o)
	w, err := st.Working().Open(t.Context(), working.Scope{Session: "s"}, nil)
	must(t, err)
	must(t, w.Set(t.Context(), "large", strings.Repeat("x", 3<<20)))
	must(t, st.Flush(t.Context()))
	must(t, w.Set(t.Context(), "small", "value"))
	st.inner.Flusher.FlushBackground(t.Context())
	if st.inner.Engine.Log().Flushed() >= st.inner.Engine.Log().Durable() {
		t.Fatal("it does not lag")
	}
	st.inner.Flusher.More.Store(true) // another process changed the model during that round, of which there is no file
	if rest, did := st.inner.Flusher.FlushBackground(t.Context()); !did || rest == 0 {
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
	clock := clockAt(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	o := storetest.In(&Options{NoBackground: true, Clock: clock.tick}, storetest.Environment{System: vfs.System{FS: fsys}})
	st, err := Open(t.Context(), dir, o)
	must(t, err)
	defer st.Close()
	w, err := st.Working().Open(t.Context(), working.Scope{Session: "s"}, nil)
	must(t, err)
	must(t, w.Set(t.Context(), "large", strings.Repeat("x", 3<<20)))
	must(t, st.Flush(t.Context()))
	must(t, w.Set(t.Context(), "small", "value"))
	st.inner.Flusher.FlushBackground(t.Context())
	if has(t, dir, "value") {
		t.Fatal("it does not lag")
	}
	_, err = st.Put(t.Context(), Memory{ID: "m", Content: "x"})
	must(t, err)
	fails.Store(true)
	must(t, func() error {
		if st.Flush(t.Context()) == nil {
			return errors.New("it did not fail")
		}
		return nil
	}())
	fails.Store(false)
	must(t, st.Flush(t.Context()))
	if !has(t, dir, "value") || st.inner.Engine.Log().Flushed() < st.inner.Engine.Log().Durable() {
		t.Error("flushed, and the file lacks it")
	}
	well(t, dir)
}

// A rebuild of the index that fails leaves nothing lagging either: what it was putting into
// a scope's file is not there, whatever is written to the scope next.
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
	clock := clockAt(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	o := storetest.In(&Options{NoBackground: true, Clock: clock.tick}, storetest.Environment{System: vfs.System{FS: fsys}})
	st, err := Open(t.Context(), dir, o)
	must(t, err)
	defer st.Close()
	st.inner.Scopes.Tune().Least = 1
	w, err := st.Working().Open(t.Context(), working.Scope{Session: "s"}, nil)
	must(t, err)
	for i := range 20 {
		must(t, w.Set(t.Context(), fmt.Sprint("k", i), strings.Repeat("x", 20<<10)))
	}
	b := new(Batch)
	for i := range 1200 { // an index that is not written each round, which would write the scope as well
		b.Put(Memory{ID: fmt.Sprint("m", i), Content: "x"})
	}
	must(t, st.Apply(t.Context(), b))
	must(t, st.Admin().Compact(t.Context()))
	clock.add(20 * time.Millisecond) // the log's clock went ahead of it
	must(t, w.Set(t.Context(), "small", "value"))
	st.inner.Flusher.FlushBackground(t.Context())
	if has(t, dir, "value") {
		t.Fatal("it does not lag")
	}
	lacked := st.inner.Engine.Log().Flushed()
	fails.Store(true)
	if err := st.inner.Flusher.ReindexNow(t.Context(), why); err == nil || has(t, dir, "value") {
		t.Fatal("it did not fail:", err)
	}
	fails.Store(false)
	must(t, w.Set(t.Context(), "later", "other"))
	st.inner.Flusher.FlushBackground(t.Context())
	if st.inner.Engine.Log().Flushed() > lacked && !has(t, dir, "value") {
		t.Errorf("flushed is %d, the file lacks what is at %d", st.inner.Engine.Log().Flushed(), lacked)
	}
	well(t, dir)
	killed := filepath.Join(t.TempDir(), "s")
	copyLive(t, killed, dir)
	other, err := Open(t.Context(), killed, &Options{NoBackground: true})
	must(t, err)
	defer other.Close()
	v, err := other.Working().Open(t.Context(), working.Scope{Session: "s"}, nil)
	must(t, err)
	for key, want := range map[string]string{"small": "value", "later": "other"} {
		if got, _, err := v.Get(t.Context(), key); err != nil || got != want {
			t.Errorf("%s is %v, %v", key, got, err)
		}
	}
}

// has reports whether the one file of a scope has a text.
func has(t *testing.T, dir, text string) bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "working", "*.json"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	return strings.Contains(string(readBytes(t, names[0])), `"value": "`+text+`"`)
}

// Random histories of two handles on one folder whose scopes lag, with copies of the
// folder as a kill leaves it: every value is there, and verify finds nothing.
func TestWorkingLagRandom(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	seed := proofs.Seed(t, 0)
	rng := rand.New(rand.NewPCG(seed, 1))
	clock := clockAt(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	lagged := 0
	for range storetest.Repeat(t, 6) {
		dir := filepath.Join(t.TempDir(), "s")
		want := map[string]map[string]string{}
		spill := int64(10<<10) << rng.IntN(8)
		open := func() []*Store {
			var list []*Store
			for range 2 {
				st, err := Open(t.Context(), dir, storetest.In(&Options{NoBackground: true, Clock: clock.tick, SegmentSize: 64 << 10}, storetest.Environment{System: vfs.System{SpillBytes: spill}}))
				must(t, err)
				st.inner.Scopes.Tune().Least = 1
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
				must(t, err)
				key, value := fmt.Sprint("k", rng.IntN(5)), strings.Repeat("v", rng.IntN(4000)+1)+fmt.Sprint(rng.Uint32())
				must(t, w.Set(t.Context(), key, value))
				if want[name] == nil {
					want[name] = map[string]string{}
				}
				want[name][key] = value
			case 0:
				_, err := st.Put(t.Context(), Memory{ID: fmt.Sprint("m", rng.IntN(9)), Content: fmt.Sprint(rng.Uint32())})
				must(t, err)
			case 1, 2, 3:
				st.inner.Flusher.FlushBackground(t.Context())
				lagged += len(st.inner.Flusher.Lagging.Scopes)
			case 4:
				must(t, st.Flush(t.Context()))
			case 5:
				clock.add(time.Duration(rng.IntN(20)) * time.Millisecond)
			case 6:
				must(t, dropAll(t, st, name))
				delete(want, name)
			case 7: // killed
				copied := filepath.Join(t.TempDir(), "s")
				copyLive(t, copied, dir)
				must(t, errors.Join(stores[0].Close(), stores[1].Close()))
				dir = copied
				well(t, dir)
				stores = open()
			}
			for name, values := range want {
				w, err := stores[rng.IntN(2)].Working().Open(t.Context(), working.Scope{Session: name}, nil)
				must(t, err)
				got, err := w.All(t.Context())
				must(t, err)
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
		must(t, errors.Join(stores[0].Close(), stores[1].Close()))
		well(t, dir)
	}
	if lagged == 0 {
		t.Error("nothing lagged")
	}
	t.Logf("%d times a scope lagged", lagged)
}

func dropAll(t *testing.T, st *Store, session string) error {
	_, err := st.Working().Home().Do(t.Context(), &working.Request{Scope: working.Scope{Session: session}, Op: working.OpDrop{}})
	return err
}
