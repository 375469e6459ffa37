package varve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/retention"
)

// counted holds Count against what is listed.
func counted(t *testing.T, st *Store) int64 {
	t.Helper()
	ctx := context.Background()
	n, err := st.Count(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var listed int64
	for _, err := range st.Memories(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		listed++
	}
	if n != listed {
		t.Errorf("Count is %d, %d are listed", n, listed)
	}
	return n
}

// A memory is absent from every read the moment its time is over, wherever it lies.
func TestExpired(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, where := range []string{"log", "file", "delta", "cache"} {
		t.Run(where, func(t *testing.T) {
			c := clockAt(time.Unix(1_700_000_000, 0))
			o := &Options{Clock: c.now, NoBackground: true, CacheBytes: -1}
			if where == "cache" {
				o.CacheBytes = 0
			}
			st := openTest(t, t.TempDir(), o)
			end := c.now().Add(time.Minute)
			md := map[string]any{"session_id": "s", "category": "c", "key": "k"}
			for id, m := range map[string]Memory{
				"stays": {Content: "walrus", Embedding: []float32{1, 0}, Metadata: md},
				"goes":  {Content: "walrus", Embedding: []float32{1, 0.1}, Metadata: md, ExpiresAt: end},
			} {
				m.ID = id
				if _, err := st.Put(ctx, m); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := st.Assemblies().Put(ctx, Assembly{ID: "a", MemoryIDs: []string{"stays"}}); err != nil {
				t.Fatal(err)
			}
			if where != "log" {
				if err := st.Admin().Compact(ctx); err != nil {
					t.Fatal(err)
				}
			}
			if where == "delta" { // something lies over the index that is no change of it
				if _, err := st.Put(ctx, Memory{ID: "more", Content: "x", ExpiresAt: end}); err != nil {
					t.Fatal(err)
				}
			}
			goes, err := st.Get(ctx, "goes")
			if err != nil {
				t.Fatal(err)
			}
			c.at.Store(end.UnixNano() - 1)
			for range 2 {
				here := !c.now().Equal(end)
				want, n := 1, int64(1)
				if here {
					want, n = 2, 2
					if where == "delta" {
						n = 3
					}
				}
				is := func(what string, there bool, err error) {
					t.Helper()
					if there != here || err != nil && !errors.Is(err, ErrNotFound) {
						t.Errorf("%s at %v: there %v, %v", what, c.now(), there, err)
					}
				}
				_, err := st.Get(ctx, "goes")
				is("Get", err == nil, err)
				_, err = st.Admin().GetRaw(ctx, "goes")
				is("GetRaw", err == nil, err)
				many, err := st.GetMany(ctx, "stays", "goes")
				is("GetMany", many[1].ID != "", err)
				if got := counted(t, st); got != n {
					t.Errorf("at %v there are %d", c.now(), got)
				}
				for _, f := range []Filter{InSession("s"), InCategory("c"), WithKey("k"), WithPrefix("goes")} {
					got, err := st.Count(ctx, f)
					if f == Filter(InSession("")) {
						continue
					}
					is("Count with a filter", err == nil && (got == 2 || got == 1 && here), err)
				}
				for what, q := range map[string]Query{"words": {Text: "walrus"}, "vector": {Vector: []float32{1, 0}}, "like": {Like: "stays"}} {
					for _, filters := range [][]Filter{nil, {InSession("s")}} {
						hits, err := st.Search(ctx, q, filters...)
						found := false
						for _, h := range hits {
							found = found || h.ID == "goes"
						}
						is("Search by "+what, found, err)
					}
				}
				if _, err := st.Search(ctx, Query{Like: "goes"}); (err == nil) != here {
					t.Errorf("like one that is over: %v", err)
				}
				err = st.Transact(ctx, func(tx *Tx) error {
					_, err := tx.Get("goes")
					is("Tx.Get", err == nil, err)
					n := 0
					for _, err := range tx.List(InSession("s")) {
						if err != nil {
							return err
						}
						n++
					}
					if n != want {
						t.Errorf("a transaction lists %d", n)
					}
					return ErrSkip
				})
				if err != nil {
					t.Error(err)
				}
				_, err = st.Assemblies().Put(ctx, Assembly{ID: "b", MemoryIDs: []string{"goes"}})
				if (err == nil) != here {
					t.Errorf("as the member of an assembly: %v", err)
				}
				if err := st.Assemblies().Delete(ctx, "b"); (err == nil) != here {
					t.Error(err)
				}
				if !here {
					break
				}
				c.at.Store(end.UnixNano())
			}
			if err := st.Delete(ctx, "goes"); !errors.Is(err, ErrNotFound) {
				t.Errorf("Delete: %v", err)
			}
			if _, err := st.Update(ctx, "goes", func(*Memory) error { return nil }); !errors.Is(err, ErrNotFound) {
				t.Errorf("Update: %v", err)
			}
			if _, err := st.Put(ctx, Memory{ID: "goes", Content: "x"}, IfVersion(goes.Version)); !errors.Is(err, ErrConflict) {
				t.Errorf("on its old version: %v", err)
			}
			again, err := st.Put(ctx, Memory{ID: "goes", Content: "another"}, IfAbsent())
			if err != nil || !again.CreatedAt.Equal(c.now()) || again.Metadata != nil {
				t.Errorf("if absent: %+v, %v", again, err)
			}
			if got := counted(t, st); got != 2 {
				t.Errorf("with the new one there are %d", got)
			}
		})
	}
}

// What is over is deleted, through the log, when it has been for an hour; not before,
// and not by a clock that jumps and is put right.
func TestSweep(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	c := clockAt(time.Unix(1_700_000_000, 0))
	right := c.now()
	events := 0
	o := c.on(&Options{Clock: c.now, NoBackground: true, Listener: func(e Event) {
		if e.Kind == EventSwept {
			events += e.Count
		}
	}})
	st := openTest(t, dir, o)
	put := func(id string, ttl time.Duration) {
		if _, err := st.Put(ctx, Memory{ID: id, Content: "x", ExpiresAt: c.now().Add(ttl)}); err != nil {
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
	if _, err := os.Stat(st.inner.Retention.Expiry.Path()); err == nil {
		t.Error("a sweep of nothing leaves a file")
	}
	// A clock that jumps ahead, and back within an hour, also with another process and
	// after a restart.
	for _, jump := range []time.Duration{2 * time.Hour, 400 * 24 * time.Hour, 100 * 365 * 24 * time.Hour} {
		c.at.Store(right.Add(jump).UnixNano())
		for range 5 {
			other, err := Open(ctx, dir, o)
			if err != nil {
				t.Fatal(err)
			}
			if n := there("minute", "day", "year"); n != 3 {
				t.Fatalf("%v into the jump of %v %d are left", c.now().Sub(right)-jump, jump, n)
			}
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			c.add(14 * time.Minute)
		}
		c.at.Store(right.UnixNano())
		if n := there("minute", "day", "year"); n != 3 || counted(t, st) != 3 {
			t.Fatalf("after the jump of %v %d are left", jump, n)
		}
		for _, id := range []string{"minute", "day", "year"} {
			if _, err := st.Get(ctx, id); err != nil {
				t.Errorf("%s after a jump of %v: %v", id, jump, err)
			}
		}
	}
	// The clock goes on as it should.
	c.add(time.Minute)
	if n := there("minute", "day", "year"); n != 3 {
		t.Fatal("deleted at once")
	}
	c.add(59 * time.Minute)
	if n := there("minute", "day", "year"); n != 3 {
		t.Fatal("deleted before an hour was over")
	}
	c.add(time.Hour)
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
	// One that was written again, or given more time, stays.
	put("again", time.Minute)
	put("longer", time.Minute)
	c.add(2 * time.Minute)
	there()
	if _, err := st.Put(ctx, Memory{ID: "again", Content: "another"}); err != nil {
		t.Fatal(err)
	}
	put("longer", 24*time.Hour)
	c.add(3 * time.Hour)
	there()
	c.add(3 * time.Hour)
	if n := there("again", "longer"); n != 2 {
		t.Errorf("of those written again %d are left", n)
	}
	// A note that cannot be read counts for nothing.
	put("late", time.Minute)
	c.add(2 * time.Hour)
	if err := os.WriteFile(st.inner.Retention.Expiry.Path(), []byte("2001-01-01"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := there("late"); n != 1 {
		t.Error("deleted because of a note that cannot be read")
	}
	for f, err := range st.Admin().Verify(ctx, VerifyOptions{}) {
		t.Errorf("verify: %+v, %v", f, err)
	}
}

// Many expire at once: each sweep deletes some, and what is counted is right between them.
func TestSweepMany(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx := context.Background()
	c := clockAt(time.Unix(1_700_000_000, 0))
	st := openTest(t, t.TempDir(), c.on(&Options{Clock: c.now, NoBackground: true, SegmentSize: 64 << 10}))
	var all []Memory
	for i := range 2500 {
		m := Memory{ID: fmt.Sprintf("%04d", i), Content: "x"}
		if i%5 != 0 {
			m.ExpiresAt = c.now().Add(time.Duration(i) * time.Second)
		}
		all = append(all, m)
	}
	if n, err := st.PutAll(ctx, func(yield func(Memory) bool) {
		for _, m := range all {
			if !yield(m) {
				return
			}
		}
	}); err != nil || n != 2500 {
		t.Fatal(n, err)
	}
	c.add(time.Hour)
	if n := counted(t, st); n != 500 {
		t.Errorf("%d are left", n)
	}
	for range 2 {
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		c.add(time.Hour)
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
		if counted(t, st) != 500 {
			t.Error("the count is wrong between two sweeps")
		}
	}
}

// Two processes, one of which sweeps in the background; nothing is deleted that was put
// again meanwhile.
func TestSweepBesideWriters(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	c := clockAt(time.Unix(1_700_000_000, 0))
	a := openTest(t, dir, c.on(&Options{Clock: c.now}))
	b := openTest(t, dir, c.on(&Options{Clock: c.now, NoBackground: true}))
	seed := proofs.Seed(t, 0)
	rng := rand.New(rand.NewPCG(seed, 1))
	put := func(i int, round int) {
		m := Memory{ID: fmt.Sprint("m", i), Content: fmt.Sprint(round), ExpiresAt: c.now().Add(time.Minute)}
		if _, err := a.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 20 {
		for i := range 50 {
			put(i, round)
		}
		c.add(2 * time.Minute)
		if err := b.inner.Retention.SweepExpired(ctx); err != nil {
			t.Fatal(err)
		}
		c.add(2 * time.Hour)
		done := make(chan error, 1)
		go func() { done <- b.inner.Retention.SweepExpired(ctx) }()
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
	c := clockAt(time.Unix(1_700_000_000, 0))
	st := openTest(t, t.TempDir(), c.on(&Options{Clock: c.now, NoBackground: true}))
	cfg := st.Admin().Config()
	cfg.MaxAge = 24 * 3600
	if err := st.Admin().SetConfig(cfg); err != nil {
		t.Fatal(err)
	}
	put := func(id string) {
		if _, err := st.Put(ctx, Memory{ID: id, Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	put("old")
	put("used")
	for range 30 {
		c.add(time.Hour)
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		put("used")
		if _, err := st.Get(ctx, "old"); (err == nil) != (c.now().Sub(time.Unix(1_700_000_000, 0)) < 26*time.Hour) {
			t.Fatalf("after %v: %v", c.now().Sub(time.Unix(1_700_000_000, 0)), err)
		}
	}
	if _, err := st.Get(ctx, "used"); err != nil {
		t.Error(err)
	}
	// A clock that jumps.
	c.jump(1000 * 24 * time.Hour)
	for range 5 {
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		c.add(10 * time.Minute)
	}
	if _, err := st.Get(ctx, "used"); err != nil {
		t.Errorf("after a jump: %v", err)
	}
}
