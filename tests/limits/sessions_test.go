package limits

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
)

// sessionsOf lists the sessions, and compares each with the result of Session.
func sessionsOf(t testing.TB, st *varve.Store) map[string]varve.Session {
	t.Helper()
	ctx := context.Background()
	all := map[string]varve.Session{}
	for s, err := range st.Sessions().All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := all[s.ID]; twice {
			t.Errorf("%q is listed twice", s.ID)
		}
		all[s.ID] = s
		if one, err := st.Sessions().Get(ctx, s.ID); err != nil || one != s {
			t.Errorf("listed as %+v, by itself %+v, %v", s, one, err)
		}
	}
	return all
}

// The listing has all memories, wherever they are, for sessions of every kind.
func TestSessions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	seed := proofs.Seed(t, 0)
	rng := rand.New(rand.NewPCG(seed, 0))
	c := fixture.ClockAt(time.Unix(1_700_000_000, 0))
	st := fixture.Open(t, t.TempDir(), &varve.Options{Clock: c.Now, NoBackground: true, SegmentSize: 64 << 10})
	ids := uglySessions()
	if len(sessionsOf(t, st)) != 0 {
		t.Error("an empty store has sessions")
	}
	for round := range 25 {
		for range 30 {
			c.Add(time.Second)
			m := varve.Memory{ID: fmt.Sprint("m", rng.IntN(100)), Content: strings.Repeat("x", rng.IntN(200))}
			if s := rng.IntN(len(ids) + 5); s < len(ids) {
				m.Metadata = fixture.InSession(ids[s])
			}
			if rng.IntN(5) == 0 {
				m.ExpiresAt = c.Now().Add(time.Duration(rng.IntN(200)) * time.Second)
			}
			if _, err := st.Put(ctx, m); err != nil {
				t.Fatal(err)
			}
			if rng.IntN(4) == 0 {
				if err := st.Delete(ctx, fmt.Sprint("m", rng.IntN(100))); err != nil && !errors.Is(err, varve.ErrNotFound) {
					t.Fatal(err)
				}
			}
		}
		switch rng.IntN(4) {
		case 0:
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		case 1:
			if err := st.Admin().Compact(ctx); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]varve.Session{}
		for m, err := range st.Memories(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if m.Session() == "" {
				continue
			}
			raw, err := st.Admin().GetRaw(ctx, m.ID)
			if err != nil {
				t.Fatal(err)
			}
			s := want[m.Session()]
			s.ID, s.Memories, s.Bytes = m.Session(), s.Memories+1, s.Bytes+int64(len(raw))
			if s.First.IsZero() || m.CreatedAt.Before(s.First) {
				s.First = m.CreatedAt
			}
			if m.UpdatedAt.After(s.Last) {
				s.Last = m.UpdatedAt
			}
			want[s.ID] = s
		}
		got := sessionsOf(t, st)
		for id := range want {
			if g := got[id]; g != want[id] {
				t.Fatalf("seed %d, round %d: %q is %+v, not %+v", seed, round, id, g, want[id])
			}
		}
		if len(got) != len(want) {
			t.Fatalf("seed %d, round %d: %d are listed, %d are there", seed, round, len(got), len(want))
		}
	}
	if _, err := st.Sessions().Get(ctx, "never"); !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
	for s := range st.Sessions().All(ctx) { // leaving the loop
		_ = s
		break
	}
}

// A session is deleted as a whole, for every reader; memories that others put into it meanwhile stay.
func TestDeleteSession(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	stores := []*varve.Store{fixture.Open(t, dir, nil), fixture.Open(t, dir, nil)}
	st := stores[0]
	put := func(st *varve.Store, id, session string) {
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "x", Metadata: fixture.InSession(session)}); err != nil {
			t.Error(err)
		}
	}
	for round := range 10 {
		for i := range 100 {
			put(st, fmt.Sprint("m", i), "s")
		}
		put(st, "other", "t")
		if round%2 == 0 {
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "a", MemoryIDs: []string{"m1", "other"}}); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var acked atomic.Int64
		stop := make(chan struct{})
		wg.Go(func() { // reads in transactions: all of the hundred or none
			for {
				err := stores[1].Transact(ctx, func(tx *varve.Tx) error {
					a, err := tx.Get("m0")
					b, err2 := tx.Get("m99")
					if (err == nil) != (err2 == nil) {
						// two different moments; the commit reports it
						_, perr := tx.Put(varve.Memory{ID: "probe", Content: a.ID + b.ID})
						return perr
					}
					return varve.ErrSkip
				})
				if err != nil {
					t.Error(err)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
		wg.Go(func() {
			for i := range 50 {
				put(stores[1], fmt.Sprint("new", round, "-", i), "s")
				acked.Add(1)
			}
		})
		n, err := st.Sessions().Delete(ctx, "s")
		if err != nil || n < 100 {
			t.Errorf("%d were deleted, %v", n, err)
		}
		close(stop)
		wg.Wait()
		if _, err := st.Get(ctx, "probe"); err == nil {
			t.Error("somebody saw a part of the session")
		}
		left, err := st.Count(ctx, varve.InSession("s"))
		if err != nil || left+n != 100+acked.Load() {
			t.Errorf("%d were deleted, %d are left of %d (%v)", n, left, 100+acked.Load(), err)
		}
		if a, err := st.Assemblies().Get(ctx, "a"); err != nil || len(a.MemoryIDs) != 1 {
			t.Errorf("the assembly has %v, %v", a.MemoryIDs, err)
		}
		if _, err := st.Sessions().Delete(ctx, "s"); err != nil && (left > 0 || !errors.Is(err, varve.ErrNotFound)) {
			t.Error(err)
		}
	}
	if _, err := st.Get(ctx, "other"); err != nil {
		t.Error(err)
	}
	if _, err := st.Sessions().Delete(ctx, "never"); !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
}

// A session that is larger than a commit is deleted in several.
func TestDeleteLargeSession(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), &varve.Options{SegmentSize: 64 << 10})
	b := func(yield func(varve.Memory) bool) {
		for i := range 1500 {
			if !yield(varve.Memory{ID: fmt.Sprintf("%s%04d", strings.Repeat("é", i%200), i), Content: "x",
				Metadata: fixture.InSession("s")}) {
				return
			}
		}
	}
	if n, err := st.PutAll(ctx, b); err != nil || n != 1500 {
		t.Fatal(n, err)
	}
	if n, err := st.Sessions().Delete(ctx, "s"); err != nil || n != 1500 {
		t.Errorf("%d were deleted, %v", n, err)
	}
	if n, err := st.Count(ctx); err != nil || n != 0 {
		t.Errorf("%d are left, %v", n, err)
	}
}

func TestSweepSessions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := fixture.ClockAt(time.Unix(1_700_000_000, 0))
	st := fixture.Open(t, t.TempDir(), c.On(&varve.Options{Clock: c.Now, NoBackground: true}))
	for i := range 10 { // s0 is the oldest
		for j := range 3 {
			if _, err := st.Put(ctx,
				varve.Memory{ID: fmt.Sprint(i, "-", j), Content: "x",
					Metadata: fixture.InSession(fmt.Sprint("s", i))}); err != nil {
				t.Fatal(err)
			}
		}
		c.Add(time.Hour)
	}
	names := func(o varve.SweepOptions) (list []string) {
		swept, err := st.Sessions().Sweep(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range swept {
			if s.Spared || s.Deleted != 0 && s.Deleted != s.Memories || (s.Deleted == 0) == o.Apply {
				t.Errorf("%+v", s)
			}
			list = append(list, s.ID)
		}
		return list
	}
	for _, x := range []struct {
		o    varve.SweepOptions
		want string
	}{
		{varve.SweepOptions{Keep: 10}, "[]"},
		{varve.SweepOptions{Keep: 8}, "[s0 s1]"},
		{varve.SweepOptions{IdleFor: 9 * time.Hour}, "[s0 s1]"},
		{varve.SweepOptions{IdleFor: 9*time.Hour + 1}, "[s0]"},
		{varve.SweepOptions{IdleFor: 9 * time.Hour, Keep: 7}, "[s0 s1 s2]"},
		{varve.SweepOptions{IdleFor: 100 * time.Hour, Keep: 100}, "[]"},
	} {
		if got := fmt.Sprint(names(x.o)); got != x.want {
			t.Errorf("%+v: %s, not %s", x.o, got, x.want)
		}
	}
	if n := fixture.CheckCount(t, st); n != 30 {
		t.Fatalf("a dry run left %d", n)
	}
	if got := fmt.Sprint(names(varve.SweepOptions{Keep: 7, Apply: true})); got != "[s0 s1 s2]" ||
		fixture.CheckCount(t, st) != 21 || len(sessionsOf(t, st)) != 7 {
		t.Errorf("swept %s", got)
	}
	for _, o := range []varve.SweepOptions{{}, {Keep: -1}, {IdleFor: -1}} {
		if _, err := st.Sessions().Sweep(ctx, o); !errors.Is(err, varve.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestSweepClockAhead: no session is deleted because the clock was set ahead while the machine was running.
func TestSweepClockAhead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const day = 24 * time.Hour
	c := fixture.ClockAt(time.Unix(1_700_000_000, 0))
	dir := t.TempDir()
	o := c.On(&varve.Options{Clock: c.Now, NoBackground: true})
	st := fixture.Open(t, dir, o)
	put := func(id string) {
		t.Helper()
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "x", Metadata: fixture.InSession(id)}); err != nil {
			t.Fatal(err)
		}
	}
	sweep := func(what string, keep int, want string) {
		t.Helper()
		swept, err := st.Sessions().Sweep(ctx, varve.SweepOptions{IdleFor: 30 * day, Keep: keep, Apply: true})
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, s := range swept {
			if s.Doubted {
				s.ID += "?"
			}
			if s.Doubted == (s.Deleted > 0) || s.Spared {
				t.Errorf("%s: %+v", what, s)
			}
			list = append(list, s.ID)
		}
		if got := fmt.Sprint(list); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	put("old")
	c.Add(60 * day)
	put("b")
	put("new")
	sweep("right", 0, "[old]")
	c.Jump(365 * day)
	sweep("ahead", 0, "[b? new?]")
	put("during")
	sweep("ahead, and two are kept", 2, "[b new?]")
	c.Jump(-365 * day)
	c.Add(40 * day)
	sweep("later", 0, "[new]")
	c.Add(365 * day)
	c.Jump(40 * day)
	sweep("much later", 0, "[during]")
	if n := fixture.CheckCount(t, st); n != 0 {
		t.Errorf("%d memories", n)
	}
}

// Sessions that are used while they are swept are spared as a whole.
func TestSweepSessionsInUse(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	c := fixture.ClockAt(time.Unix(1_700_000_000, 0))
	o := c.On(&varve.Options{Clock: c.Now})
	stores := []*varve.Store{fixture.Open(t, dir, o), fixture.Open(t, dir, o)}
	for round := range 5 {
		for i := range 30 {
			for j := range 3 {
				if _, err := stores[0].Put(ctx,
					varve.Memory{ID: fmt.Sprint(i, "-", j), Content: "old",
						Metadata: fixture.InSession(fmt.Sprint("s", i))}); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.Add(time.Hour)
		used := map[string]bool{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for g := range 2 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(round), uint64(g)))
				for n := range 20 {
					s := fmt.Sprint("s", rng.IntN(30))
					var err error
					if n%2 == 0 { // it gets one more, if it is there
						err = stores[g].Transact(ctx, func(tx *varve.Tx) error {
							if _, err := tx.Get(strings.TrimPrefix(s, "s") + "-0"); err != nil {
								return err
							}
							_, err := tx.Put(varve.Memory{ID: fmt.Sprint("more", round, "-", g, "-", n), Content: "new",
								Metadata: fixture.InSession(s)})
							return err
						})
					} else {
						_, err = stores[g].Update(ctx, strings.TrimPrefix(s, "s")+"-1",
							func(m *varve.Memory) error { m.Content = "new"; return nil })
					}
					if err == nil {
						mu.Lock()
						used[s] = true
						mu.Unlock()
					} else if !errors.Is(err, varve.ErrNotFound) {
						t.Error(err)
					}
				}
			})
		}
		swept, err := stores[1].Sessions().Sweep(ctx, varve.SweepOptions{IdleFor: time.Minute, Apply: true})
		if err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		gone := map[string]bool{}
		for _, s := range swept {
			if gone[s.ID] = !s.Spared; s.Spared && s.Deleted > 0 {
				t.Errorf("%+v", s)
			}
		}
		for i := range 30 {
			s := fmt.Sprint("s", i)
			n, err := stores[0].Count(ctx, varve.InSession(s))
			if err != nil || gone[s] && n != 0 || used[s] && n < 3 || !gone[s] && n < 3 {
				t.Errorf("round %d: %s, swept %v, used %v, has %d (%v)", round, s, gone[s], used[s], n, err)
			}
		}
		for i := range 30 {
			if _, err := stores[0].Sessions().Delete(ctx, fmt.Sprint("s", i)); err != nil && !errors.Is(err, varve.ErrNotFound) {
				t.Fatal(err)
			}
		}
	}
}
