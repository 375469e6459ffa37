package limits

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/view/counts"
)

// bytesIn adds up the bytes of all memories, and of those in a session.
func bytesIn(t testing.TB, st *varve.Store, filters ...varve.Filter) (s counts.Sum) {
	t.Helper()
	ctx := context.Background()
	for m, err := range st.Memories(ctx, filters...) {
		if err != nil {
			t.Fatal(err)
		}
		raw, err := st.Admin().GetRaw(ctx, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		s = s.Plus(counts.Sum{N: 1, Bytes: int64(len(raw))})
	}
	return s
}

func TestLimitRefuses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	put := func(id, session string, options ...varve.PutOption) error {
		m := varve.Memory{ID: id, Content: "x"}
		if session != "" {
			m.Metadata = fixture.InSession(session)
		}
		_, err := st.Put(ctx, m, options...)
		return err
	}
	fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxMemories, c.MaxSessionMemories = 3, 2 })
	for _, id := range []string{"a", "b"} {
		if err := put(id, "s"); err != nil {
			t.Fatal(err)
		}
	}
	err := put("c", "s")
	var le *varve.LimitError
	if !errors.Is(err, varve.ErrLimit) || !errors.As(err, &le) || le.Session != "s" || le.Limit != 2 || le.Have != 2 ||
		le.Add != 1 || le.Setting != "max_session_memories" {
		t.Fatalf("the third of a session: %v", err)
	}
	for _, part := range []string{`"s"`, "2 of at most 2", "memctl config set"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %s", err, part)
		}
	}
	if err := put("c", "t"); err != nil {
		t.Fatal(err)
	}
	if err := put("d", ""); !errors.As(err, &le) || le.Session != "" || le.Limit != 3 || le.Setting != "max_memories" {
		t.Errorf("the fourth: %v", err)
	}
	// A replacement needs no room, nor does a write that makes its own.
	if err := put("a", "s"); err != nil {
		t.Error(err)
	}
	if err := put("a", "t"); err != nil { // moves; it is the second there
		t.Error(err)
	}
	if err := put("b", "t"); !errors.As(err, &le) || le.Session != "t" {
		t.Errorf("into a session that is full: %v", err)
	}
	b := new(varve.Batch)
	b.Delete("a")
	b.Put(varve.Memory{ID: "e", Content: "x"})
	if err := st.Apply(ctx, b); err != nil {
		t.Error(err)
	}
	b = new(varve.Batch)
	b.Delete("e")
	b.Put(varve.Memory{ID: "f", Content: "x"})
	b.Put(varve.Memory{ID: "g", Content: "x"})
	if err := st.Apply(ctx, b); !errors.As(err, &le) || le.Add != 1 {
		t.Errorf("one out, two in: %v", err)
	}
	if _, err := st.Get(ctx, "e"); err != nil {
		t.Errorf("a part of what was refused was done: %v", err)
	}
	// Existing memories may exceed the limit; no others are added.
	fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxMemories = 1 })
	if err := put("h", ""); !errors.As(err, &le) || le.Have != 3 {
		t.Errorf("%v", err)
	}
	if err := put("e", ""); err != nil { // it is there
		t.Error(err)
	}
	fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxMemories = 0 })
	if err := put("h", ""); err != nil {
		t.Error(err)
	}
	// Bytes.
	fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxSessionMemories = 0; c.MaxBytes = bytesIn(t, st).Bytes + 600 })
	if _, err := st.Put(ctx, varve.Memory{ID: "long", Content: strings.Repeat("x", 700)}); !errors.As(err,
		&le) || le.What != "bytes" || le.Setting != "max_bytes" {
		t.Errorf("too many bytes: %v", err)
	}
	if _, err := st.Update(ctx, "h",
		func(m *varve.Memory) error { m.Content = strings.Repeat("x", 700); return nil }); !errors.Is(err, varve.ErrLimit) {
		t.Errorf("one grows: %v", err)
	}
	if err := put("i", ""); err != nil {
		t.Error(err)
	}
	if err := st.Touch(ctx, "i"); err != nil {
		t.Error(err)
	}
	for _, c := range []varve.Config{{MaxMemories: -1}, {AtLimit: "drop"}, {MaxAge: 1 << 40}} {
		if err := st.Admin().SetConfig(c); !errors.Is(err, varve.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// The sums are right after every kind of change, before and after the index includes them, for this
// process and for a new one.
func TestTally(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx := context.Background()
	dir := t.TempDir()
	o := &varve.Options{NoBackground: true, SegmentSize: 64 << 10}
	st, other := fixture.Open(t, dir, o), fixture.Open(t, dir, o)
	seed := proofs.Seed(t, 0)
	rng := rand.New(rand.NewPCG(seed, 0))
	sessions := []string{"", "s", "t"}
	for round := range 60 {
		for range 1 + rng.IntN(12) {
			by := []*varve.Store{st, other}[rng.IntN(2)]
			id := fmt.Sprint("m", rng.IntN(40))
			if rng.IntN(3) == 0 {
				if err := by.Delete(ctx, id); err != nil && !errors.Is(err, varve.ErrNotFound) {
					t.Fatal(err)
				}
				continue
			}
			m := varve.Memory{ID: id, Content: strings.Repeat("x", rng.IntN(6000))}
			if s := sessions[rng.IntN(3)]; s != "" {
				m.Metadata = fixture.InSession(s)
			}
			if _, err := by.Put(ctx, m); err != nil {
				t.Fatal(err)
			}
		}
		if rng.IntN(3) == 0 {
			by := []*varve.Store{st, other}[rng.IntN(2)]
			if err := []func(context.Context) error{by.Flush, by.Admin().Compact}[rng.IntN(2)](ctx); err != nil {
				t.Fatal(err)
			}
		}
		who := map[string]*varve.Store{"this": st, "other": other}
		if round%10 == 9 {
			who["a new one"] = fixture.Open(t, dir, o)
		}
		for name, st := range who {
			all, in, err := storetest.Inner(st).Counts.Tally.Look(ctx, []string{"s", "t"})
			if err != nil {
				t.Fatal(err)
			}
			if want := bytesIn(t, st); all != want {
				t.Fatalf("seed %d, round %d, %s: %+v in all, not %+v", seed, round, name, all, want)
			}
			for _, s := range []string{"s", "t"} {
				if want := bytesIn(t, st, varve.InSession(s)); in[s] != want {
					t.Fatalf("seed %d, round %d, %s: %+v in %s, not %+v", seed, round, name, in[s], s, want)
				}
			}
		}
	}
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		t.Errorf("verify: %+v, %v", f, err)
	}
}

// A rebuilt index may have other documents below the moment of the sums; these are then those of the
// newer index.
func TestTallyOfRebuilt(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	o := &varve.Options{NoBackground: true}
	st, other := fixture.Open(t, dir, o), fixture.Open(t, dir, o)
	put := func(id string) {
		t.Helper()
		if _, err := other.Put(ctx, varve.Memory{ID: id, Content: "text of " + id}); err != nil {
			t.Fatal(err)
		}
	}
	counted := func() {
		t.Helper()
		all, _, err := storetest.Inner(st).Counts.Tally.Look(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := bytesIn(t, st); all != want {
			t.Errorf("%+v, not %+v", all, want)
		}
	}
	put("m1")
	if err := other.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	counted()
	put("m2")
	counted()
	doc := []byte(`{"id":"m3","content":"of another program"}`)
	if err := os.WriteFile(filepath.Join(dir, "memories", "m3.json"), doc, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := other.Admin().RebuildIndex(ctx); err != nil {
		t.Fatal(err)
	}
	if n := bytesIn(t, st).N; n != 3 {
		t.Fatalf("%d memories", n)
	}
	counted()
}

func TestLimitEvicts(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx := context.Background()
	for _, policy := range []string{varve.AtLimitEvictOldest, varve.AtLimitEvictLowest} {
		t.Run(policy, func(t *testing.T) {
			c := fixture.ClockAt(time.Unix(1_700_000_000, 0))
			evicted := 0
			st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true, Clock: c.Now, Listener: func(e varve.Event) {
				if e.Kind == varve.EventEvicted {
					evicted += e.Count
				}
			}})
			fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxMemories, c.AtLimit = 10, policy })
			rng := rand.New(rand.NewPCG(1, 1))
			type known struct {
				at    time.Time
				score float64
			}
			is := map[string]known{}
			for i := range 200 {
				c.Add(time.Second)
				id := fmt.Sprint("m", rng.IntN(25))
				k := known{c.Now(), float64(rng.IntN(1000))}
				if _, there := is[id]; !there && len(is) == 10 {
					worst := ""
					for o, v := range is {
						w := is[worst]
						if worst == "" || policy == varve.AtLimitEvictOldest && v.at.Before(w.at) ||
							policy == varve.AtLimitEvictLowest && (v.score < w.score || v.score == w.score && v.at.Before(w.at)) {
							worst = o
						}
					}
					delete(is, worst)
				}
				is[id] = k
				if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "x", QuickRecalScore: k.score}); err != nil {
					t.Fatal(err)
				}
				if i%17 == 0 {
					if err := st.Flush(ctx); err != nil {
						t.Fatal(err)
					}
				}
				for o := range is {
					if _, err := st.Get(ctx, o); err != nil {
						t.Fatalf("after %d: %s should be there: %v", i, o, err)
					}
				}
				if n := fixture.CheckCount(t, st); n != int64(len(is)) {
					t.Fatalf("after %d: %d are there, not %d", i, n, len(is))
				}
			}
			if evicted == 0 {
				t.Error("nobody is said to be evicted")
			}
			// An assembly loses members that are deleted; a batch never evicts what it writes, a
			// transaction never what it has read.
			var members []string
			for m, err := range st.Memories(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				members = append(members, m.ID)
			}
			if _, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "all", MemoryIDs: members}); err != nil {
				t.Fatal(err)
			}
			b := new(varve.Batch)
			for i := range 10 {
				b.Put(varve.Memory{ID: fmt.Sprint("new", i), Content: "x", QuickRecalScore: 1})
			}
			if err := st.Apply(ctx, b); err != nil {
				t.Fatal(err)
			}
			if a, err := st.Assemblies().Get(ctx, "all"); err != nil || len(a.MemoryIDs) != 0 || fixture.CheckCount(t,
				st) != 10 {
				t.Errorf("the assembly has %v, %v", a.MemoryIDs, err)
			}
			b = new(varve.Batch)
			for i := range 11 {
				b.Put(varve.Memory{ID: fmt.Sprint("newer", i), Content: "x"})
			}
			if err := st.Apply(ctx, b); !errors.Is(err, varve.ErrLimit) {
				t.Errorf("more than may ever be there: %v", err)
			}
			// A limit that is lowered is reached, and a session has its own.
			fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxMemories, c.MaxSessionMemories = 4, 2 })
			for i := range 5 {
				if _, err := st.Put(ctx,
					varve.Memory{ID: fmt.Sprint("s", i), Content: "x", QuickRecalScore: 2000,
						Metadata: fixture.InSession("s")}); err != nil {
					t.Fatal(err)
				}
			}
			if n := fixture.CheckCount(t, st); n != 4 || bytesIn(t, st, varve.InSession("s")).N != 2 {
				t.Errorf("%d are left, %d of the session", n, bytesIn(t, st, varve.InSession("s")).N)
			}
			// Bytes.
			fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxMemories, c.MaxSessionMemories, c.MaxBytes = 0, 0, 5000 })
			for i := range 30 {
				if _, err := st.Put(ctx,
					varve.Memory{ID: fmt.Sprint("b", i), Content: strings.Repeat("x", 100*rng.IntN(20)),
						QuickRecalScore: float64(i)}); err != nil {
					t.Fatal(err)
				}
				if s := bytesIn(t, st); s.Bytes > 5000 {
					t.Fatalf("%d bytes are there", s.Bytes)
				}
			}
			if _, err := st.Put(ctx, varve.Memory{Content: strings.Repeat("x", 6000)}); !errors.Is(err, varve.ErrLimit) {
				t.Errorf("larger than all that may be there: %v", err)
			}
		})
	}
}

// Several processes (handles, which share only the folder) write against a limit: no observer ever sees
// it exceeded; exactly as many as allowed remain; what was acknowledged is there, or was evicted; what
// was refused is not.
func TestLimitHolds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const limit = 150
	for _, kind := range []string{"store refuses", "session refuses", "store evicts", "session evicts"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			var stores []*varve.Store
			for range 3 {
				stores = append(stores, fixture.Open(t, dir, nil))
			}
			session, evicts := strings.HasPrefix(kind, "session"), strings.HasSuffix(kind, "evicts")
			fixture.LimitTo(t, stores[0], func(c *varve.Config) {
				if c.MaxMemories = limit; session {
					c.MaxMemories, c.MaxSessionMemories = 0, limit
				}
				if evicts {
					c.AtLimit = varve.AtLimitEvictOldest
				}
			})
			for _, st := range stores {
				storetest.Inner(st).Engine.Settings().Reread()
			}
			var wg, watchers sync.WaitGroup
			var mu sync.Mutex
			acked := map[string]bool{}
			var refused atomic.Int64
			stop := make(chan struct{})
			for _, st := range stores {
				watchers.Go(func() {
					for {
						n, err := st.Count(ctx, varve.InSession("s"))
						if err != nil || n > limit {
							t.Errorf("%d are there (%v)", n, err)
							return
						}
						select {
						case <-stop:
							return
						default:
						}
					}
				})
			}
			for g := range 12 {
				st := stores[g%3]
				wg.Go(func() {
					for i := range 40 {
						id := fmt.Sprintf("%d-%d", g, i)
						_, err := st.Put(ctx, varve.Memory{ID: id, Content: "x", Metadata: fixture.InSession("s")})
						switch {
						case err == nil:
							mu.Lock()
							acked[id] = true
							mu.Unlock()
						case errors.Is(err, varve.ErrLimit) && !evicts:
							refused.Add(1)
						default:
							t.Error(err)
						}
						if session && i%4 == 0 { // others do not matter
							if _, err := st.Put(ctx,
								varve.Memory{Content: "x", Metadata: fixture.InSession(fmt.Sprint("o", g))}); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			wg.Wait()
			close(stop)
			watchers.Wait()
			if n, err := stores[1].Count(ctx, varve.InSession("s")); err != nil || n != limit {
				t.Errorf("%d remain (%v)", n, err)
			}
			for m, err := range stores[2].Memories(ctx, varve.InSession("s")) {
				if err != nil || !acked[m.ID] {
					t.Errorf("%s was not acknowledged (%v)", m.ID, err)
				}
			}
			if !evicts && (len(acked) != limit || refused.Load() != 12*40-limit) {
				t.Errorf("%d were acknowledged, %d refused", len(acked), refused.Load())
			}
			if evicts && len(acked) != 12*40 {
				t.Errorf("%d were acknowledged", len(acked))
			}
		})
	}
}

// The same for a limit in bytes, which are about as many as a hundred memories have: it is never
// exceeded, and the remaining room is less than a memory takes.
func TestLimitHoldsBytes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const limit, longest = 60_000, 700
	for _, kind := range []string{"store refuses", "session refuses", "store evicts", "session evicts"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			var stores []*varve.Store
			for range 3 {
				stores = append(stores, fixture.Open(t, dir, nil))
			}
			session, evicts := strings.HasPrefix(kind, "session"), strings.HasSuffix(kind, "evicts")
			fixture.LimitTo(t, stores[0], func(c *varve.Config) {
				if c.MaxBytes = limit; session {
					c.MaxBytes, c.MaxSessionBytes = 0, limit
				}
				if evicts {
					c.AtLimit = varve.AtLimitEvictOldest
				}
			})
			for _, st := range stores {
				storetest.Inner(st).Engine.Settings().Reread()
			}
			look := func(st *varve.Store) counts.Sum {
				all, in, err := storetest.Inner(st).Counts.Tally.Look(ctx, []string{"s"})
				if err != nil {
					t.Error(err)
				}
				if session {
					return in["s"]
				}
				return all
			}
			var wg, watchers sync.WaitGroup
			stop := make(chan struct{})
			for _, st := range stores {
				watchers.Go(func() {
					for {
						if s := look(st); s.Bytes > limit {
							t.Errorf("%+v are there", s)
							return
						}
						select {
						case <-stop:
							return
						default:
						}
					}
				})
			}
			for g := range 12 {
				st := stores[g%3]
				wg.Go(func() {
					for i := range 40 {
						content := strings.Repeat("x", (i*37+g*11)%300)
						_, err := st.Put(ctx,
							varve.Memory{ID: fmt.Sprintf("%d-%d", g, i), Content: content, Metadata: fixture.InSession("s")})
						if err != nil && (evicts || !errors.Is(err, varve.ErrLimit)) {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			close(stop)
			watchers.Wait()
			is := bytesIn(t, stores[1], varve.InSession("s"))
			if is.Bytes > limit || is.Bytes < limit-longest {
				t.Errorf("%+v remain", is)
			}
			for _, st := range stores {
				if s := look(st); s != is {
					t.Errorf("%+v by the tally, not %+v", s, is)
				}
			}
		})
	}
}

// A limit that is lowered below the present size is reached while several processes write.
func TestLimitLowered(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	var stores []*varve.Store
	for range 3 {
		stores = append(stores, fixture.Open(t, dir, nil))
	}
	for i := range 300 {
		if _, err := stores[0].Put(ctx, varve.Memory{ID: fmt.Sprint("old", i), Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	fixture.LimitTo(t, stores[0], func(c *varve.Config) { c.MaxMemories, c.AtLimit = 100, varve.AtLimitEvictOldest })
	for _, st := range stores {
		storetest.Inner(st).Engine.Settings().Reread()
	}
	var wg sync.WaitGroup
	for g := range 12 {
		wg.Go(func() {
			for i := range 20 {
				if _, err := stores[g%3].Put(ctx, varve.Memory{ID: fmt.Sprint("new", g, "-", i), Content: "x"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := fixture.CheckCount(t, stores[1]); n != 100 {
		t.Errorf("%d are left", n)
	}
	for m, err := range stores[2].Memories(ctx) {
		if err != nil || !strings.HasPrefix(m.ID, "new") {
			t.Errorf("%s is left (%v)", m.ID, err)
		}
	}
}

// A put that needs the last of the room gets it, although others never stop putting: their replacements
// do not exceed the limit, but while they continue no process can know that.
func TestLimitBesideUpdates(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), nil)
	long := strings.Repeat("x", 20_000)
	for g := range 8 {
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("u", g), Content: long}); err != nil {
			t.Fatal(err)
		}
	}
	fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxBytes = bytesIn(t, st).Bytes + 10_000 })
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("u", g), Content: long[:20_000-i%2]}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 10 {
		in, stop := context.WithTimeout(ctx, 20*time.Second)
		if _, err := st.Put(in, varve.Memory{ID: fmt.Sprint("n", i), Content: "x"}); err != nil {
			t.Error(err)
		}
		stop()
	}
	close(stop)
	wg.Wait()
}
