package limits

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/retention"
	"github.com/varve-db/varve/internal/storetest"
)

// A memory is absent from every read from the moment it expires, wherever it is.
func TestExpired(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, where := range []string{"log", "file", "delta", "cache"} {
		t.Run(where, func(t *testing.T) {
			c := fixture.ClockAt(time.Unix(1_700_000_000, 0))
			o := &varve.Options{Clock: c.Now, NoBackground: true, CacheBytes: -1}
			if where == "cache" {
				o.CacheBytes = 0
			}
			st := fixture.Open(t, t.TempDir(), o)
			end := c.Now().Add(time.Minute)
			md := map[string]any{"session_id": "s", "category": "c", "key": "k"}
			for id, m := range map[string]varve.Memory{
				"stays": {Content: "walrus", Embedding: []float32{1, 0}, Metadata: md},
				"goes":  {Content: "walrus", Embedding: []float32{1, 0.1}, Metadata: md, ExpiresAt: end},
			} {
				m.ID = id
				if _, err := st.Put(ctx, m); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "a", MemoryIDs: []string{"stays"}}); err != nil {
				t.Fatal(err)
			}
			if where != "log" {
				if err := st.Admin().Compact(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if where == "delta" { // something is over the index that does not change it
				if _, err := st.Put(ctx, varve.Memory{ID: "more", Content: "x", ExpiresAt: end}); err != nil {
					t.Fatal(err)
				}
			}
			goes, err := st.Get(ctx, "goes")
			if err != nil {
				t.Fatal(err)
			}
			c.At.Store(end.UnixNano() - 1)
			for range 2 {
				here := !c.Now().Equal(end)
				want, n := 1, int64(1)
				if here {
					want, n = 2, 2
					if where == "delta" {
						n = 3
					}
				}
				is := func(what string, there bool, err error) {
					t.Helper()
					if there != here || err != nil && !errors.Is(err, varve.ErrNotFound) {
						t.Errorf("%s at %v: there %v, %v", what, c.Now(), there, err)
					}
				}
				_, err := st.Get(ctx, "goes")
				is("Get", err == nil, err)
				_, err = st.Admin().GetRaw(ctx, "goes")
				is("GetRaw", err == nil, err)
				many, err := st.GetMany(ctx, "stays", "goes")
				is("GetMany", many[1].ID != "", err)
				if got := fixture.CheckCount(t, st); got != n {
					t.Errorf("at %v there are %d", c.Now(), got)
				}
				for _, f := range []varve.Filter{varve.InSession("s"), varve.InCategory("c"), varve.WithKey("k"),
					varve.WithPrefix("goes")} {
					got, err := st.Count(ctx, f)
					if f == varve.Filter(varve.InSession("")) {
						continue
					}
					is("Count with a filter", err == nil && (got == 2 || got == 1 && here), err)
				}
				for what, q := range map[string]varve.Query{"words": {Text: "walrus"}, "vector": {Vector: []float32{1, 0}},
					"like": {Like: "stays"}} {
					for _, filters := range [][]varve.Filter{nil, {varve.InSession("s")}} {
						hits, err := st.Search(ctx, q, filters...)
						found := false
						for _, h := range hits {
							found = found || h.ID == "goes"
						}
						is("Search by "+what, found, err)
					}
				}
				if _, err := st.Search(ctx, varve.Query{Like: "goes"}); (err == nil) != here {
					t.Errorf("like one that is over: %v", err)
				}
				err = st.Transact(ctx, func(tx *varve.Tx) error {
					_, err := tx.Get("goes")
					is("Tx.Get", err == nil, err)
					n := 0
					for _, err := range tx.List(varve.InSession("s")) {
						if err != nil {
							return err
						}
						n++
					}
					if n != want {
						t.Errorf("a transaction lists %d", n)
					}
					return varve.ErrSkip
				})
				if err != nil {
					t.Error(err)
				}
				_, err = st.Assemblies().Put(ctx, varve.Assembly{ID: "b", MemoryIDs: []string{"goes"}})
				if (err == nil) != here {
					t.Errorf("as the member of an assembly: %v", err)
				}
				if err := st.Assemblies().Delete(ctx, "b"); (err == nil) != here {
					t.Error(err)
				}
				if !here {
					break
				}
				c.At.Store(end.UnixNano())
			}
			if err := st.Delete(ctx, "goes"); !errors.Is(err, varve.ErrNotFound) {
				t.Errorf("Delete: %v", err)
			}
			if _, err := st.Update(ctx, "goes", func(*varve.Memory) error { return nil }); !errors.Is(err, varve.ErrNotFound) {
				t.Errorf("Update: %v", err)
			}
			if _, err := st.Put(ctx, varve.Memory{ID: "goes", Content: "x"}, varve.IfVersion(goes.Version)); !errors.Is(err,
				varve.ErrConflict) {
				t.Errorf("on its old version: %v", err)
			}
			again, err := st.Put(ctx, varve.Memory{ID: "goes", Content: "another"}, varve.IfAbsent())
			if err != nil || !again.CreatedAt.Equal(c.Now()) || again.Metadata != nil {
				t.Errorf("if absent: %+v, %v", again, err)
			}
			if got := fixture.CheckCount(t, st); got != 2 {
				t.Errorf("with the new one there are %d", got)
			}
		})
	}
}

// An expired memory is deleted, through the log, when it has been expired for an hour; not before, and
// not because of a clock that jumps and is corrected.
func TestSweep(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	c := fixture.ClockAt(time.Unix(1_700_000_000, 0))
	right := c.Now()
	events := 0
	o := c.On(&varve.Options{Clock: c.Now, NoBackground: true, Listener: func(e varve.Event) {
		if e.Kind == varve.EventSwept {
			events += e.Count
		}
	}})
	st := fixture.Open(t, dir, o)
	put := func(id string, ttl time.Duration) {
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "x", ExpiresAt: c.Now().Add(ttl)}); err != nil {
			t.Fatal(err)
		}
	}
	there := func(ids ...string) (n int) {
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if _, err := os.Stat(filepath.Join(dir, "memories", id+".json")); err == nil {
				n++
			}
		}
		return n
	}
	put("minute", time.Minute)
	put("day", 24*time.Hour)
	put("year", 365*24*time.Hour)
	if there("minute", "day", "year") != 3 {
		t.Fatal("not flushed")
	}
	if _, err := os.Stat(storetest.Inner(st).Retention.Expiry.Path()); err == nil {
		t.Error("a sweep of nothing leaves a file")
	}
	// A clock that jumps ahead, and back within an hour, also with another process and
	// after a restart.
	for _, jump := range []time.Duration{2 * time.Hour, 400 * 24 * time.Hour, 100 * 365 * 24 * time.Hour} {
		c.At.Store(right.Add(jump).UnixNano())
		for range 5 {
			other, err := varve.Open(ctx, dir, o)
			if err != nil {
				t.Fatal(err)
			}
			if n := there("minute", "day", "year"); n != 3 {
				t.Fatalf("%v into the jump of %v %d are left", c.Now().Sub(right)-jump, jump, n)
			}
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			c.Add(14 * time.Minute)
		}
		c.At.Store(right.UnixNano())
		if n := there("minute", "day", "year"); n != 3 || fixture.CheckCount(t, st) != 3 {
			t.Fatalf("after the jump of %v %d are left", jump, n)
		}
		for _, id := range []string{"minute", "day", "year"} {
			if _, err := st.Get(ctx, id); err != nil {
				t.Errorf("%s after a jump of %v: %v", id, jump, err)
			}
		}
	}
	// The clock continues normally.
	c.Add(time.Minute)
	if n := there("minute", "day", "year"); n != 3 {
		t.Fatal("deleted at once")
	}
	c.Add(59 * time.Minute)
	if n := there("minute", "day", "year"); n != 3 {
		t.Fatal("deleted before an hour was over")
	}
	c.Add(time.Hour)
	if n := there("minute", "day", "year"); n != 2 || there("minute") != 0 {
		t.Fatalf("after two hours %d are left", n)
	}
	if events != 1 {
		t.Errorf("%d are said to be deleted", events)
	}
	for v, err := range st.History(ctx, "minute") {
		if err != nil {
			t.Error(err)
		}
		_ = v
	}
	// A memory that was written again, or given more time, stays.
	put("again", time.Minute)
	put("longer", time.Minute)
	c.Add(2 * time.Minute)
	there()
	if _, err := st.Put(ctx, varve.Memory{ID: "again", Content: "another"}); err != nil {
		t.Fatal(err)
	}
	put("longer", 24*time.Hour)
	c.Add(3 * time.Hour)
	there()
	c.Add(3 * time.Hour)
	if n := there("again", "longer"); n != 2 {
		t.Errorf("of those written again %d are left", n)
	}
	// A note that cannot be read is ignored.
	put("late", time.Minute)
	c.Add(2 * time.Hour)
	if err := os.WriteFile(storetest.Inner(st).Retention.Expiry.Path(), []byte("2001-01-01"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := there("late"); n != 1 {
		t.Error("deleted because of a note that cannot be read")
	}
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		t.Errorf("verify: %+v, %v", f, err)
	}
}

// Many memories expire at once: each sweep deletes some, and the counts are right in between.
func TestSweepMany(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx := context.Background()
	c := fixture.ClockAt(time.Unix(1_700_000_000, 0))
	st := fixture.Open(t, t.TempDir(), c.On(&varve.Options{Clock: c.Now, NoBackground: true, SegmentSize: 64 << 10}))
	var all []varve.Memory
	for i := range 2500 {
		m := varve.Memory{ID: fmt.Sprintf("%04d", i), Content: "x"}
		if i%5 != 0 {
			m.ExpiresAt = c.Now().Add(time.Duration(i) * time.Second)
		}
		all = append(all, m)
	}
	if n, err := st.PutAll(ctx, func(yield func(varve.Memory) bool) {
		for _, m := range all {
			if !yield(m) {
				return
			}
		}
	}); err != nil || n != 2500 {
		t.Fatal(n, err)
	}
	c.Add(time.Hour)
	if n := fixture.CheckCount(t, st); n != 500 {
		t.Errorf("%d are left", n)
	}
	for range 2 {
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		c.Add(time.Hour)
	}
	for n, rounds := st.Admin().Stats().Memories, 0; n > 500; rounds++ {
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		now := st.Admin().Stats().Memories
		if n-now > retention.SweepMost || rounds > 3 {
			t.Fatalf("%d were deleted in round %d", n-now, rounds)
		}
		n = now
		if fixture.CheckCount(t, st) != 500 {
			t.Error("the count is wrong between two sweeps")
		}
	}
}

// Two processes, of which one sweeps in the background; a memory that was put again meanwhile is not
// deleted.
func TestSweepBesideWriters(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	c := fixture.ClockAt(time.Unix(1_700_000_000, 0))
	a := fixture.Open(t, dir, c.On(&varve.Options{Clock: c.Now}))
	b := fixture.Open(t, dir, c.On(&varve.Options{Clock: c.Now, NoBackground: true}))
	seed := proofs.Seed(t, 0)
	rng := rand.New(rand.NewPCG(seed, 1))
	put := func(i int, round int) {
		m := varve.Memory{ID: fmt.Sprint("m", i), Content: fmt.Sprint(round), ExpiresAt: c.Now().Add(time.Minute)}
		if _, err := a.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 20 {
		for i := range 50 {
			put(i, round)
		}
		c.Add(2 * time.Minute)
		if err := storetest.Inner(b).Retention.SweepExpired(ctx); err != nil {
			t.Fatal(err)
		}
		c.Add(2 * time.Hour)
		done := make(chan error, 1)
		go func() { done <- storetest.Inner(b).Retention.SweepExpired(ctx) }()
		again := map[int]bool{}
		for range 25 {
			i := rng.IntN(50)
			put(i, round+1000)
			again[i] = true
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			m, err := b.Get(ctx, fmt.Sprint("m", i))
			if again[i] != (err == nil) || err == nil && m.Content != fmt.Sprint(round+1000) {
				t.Fatalf("seed %d, round %d: m%d, put again %v, is %q, %v", seed, round, i, again[i], m.Content, err)
			}
		}
	}
}

func TestMaxAge(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := fixture.ClockAt(time.Unix(1_700_000_000, 0))
	st := fixture.Open(t, t.TempDir(), c.On(&varve.Options{Clock: c.Now, NoBackground: true}))
	cfg := st.Admin().Config()
	cfg.MaxAge = 24 * 3600
	if err := st.Admin().SetConfig(cfg); err != nil {
		t.Fatal(err)
	}
	put := func(id string) {
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	put("old")
	put("used")
	for range 30 {
		c.Add(time.Hour)
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		put("used")
		if _, err := st.Get(ctx, "old"); (err == nil) != (c.Now().Sub(time.Unix(1_700_000_000, 0)) < 26*time.Hour) {
			t.Fatalf("after %v: %v", c.Now().Sub(time.Unix(1_700_000_000, 0)), err)
		}
	}
	if _, err := st.Get(ctx, "used"); err != nil {
		t.Error(err)
	}
	// A clock that jumps.
	c.Jump(1000 * 24 * time.Hour)
	for range 5 {
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		c.Add(10 * time.Minute)
	}
	if _, err := st.Get(ctx, "used"); err != nil {
		t.Errorf("after a jump: %v", err)
	}
}
