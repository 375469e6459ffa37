package limits

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
)

// sessionNow returns a memory's present session, "-" if it does not exist.
func sessionNow(t *testing.T, st *varve.Store, id string) string {
	t.Helper()
	m, err := st.Get(context.Background(), id)
	if errors.Is(err, varve.ErrNotFound) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	return m.Session()
}

// Every way to write refuses memories of other sessions and of none, and names their session; nothing of
// the write is there afterwards.
func TestInSessionWrites(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	skip := func(m *varve.Memory) error { m.Content = "new"; return nil }
	ways := map[string]func(st *varve.Store, id string) error{
		"put": func(st *varve.Store, id string) error {
			_, err := st.Put(ctx, varve.Memory{ID: id, Content: "new"}, varve.InSession("mine"))
			return err
		},
		"async": func(st *varve.Store, id string) error {
			_, err := st.PutAsync(varve.Memory{ID: id, Content: "new"}, varve.InSession("mine")).Wait(ctx)
			return err
		},
		"all": func(st *varve.Store, id string) error {
			_, err := st.PutAll(ctx, slices.Values([]varve.Memory{{ID: id, Content: "new"}}), varve.InSession("mine"))
			return err
		},
		"update": func(st *varve.Store, id string) error {
			_, err := st.Update(ctx, id, skip, varve.InSession("mine"))
			return err
		},
		"delete": func(st *varve.Store, id string) error { return st.Delete(ctx, id, varve.InSession("mine")) },
		"batch of conditions": func(st *varve.Store, id string) error {
			b := new(varve.Batch)
			b.Put(varve.Memory{ID: "beside", Content: "x"})
			b.Put(varve.Memory{ID: id, Content: "new"}, varve.InSession("mine"))
			return st.Apply(ctx, b)
		},
		"batch": func(st *varve.Store, id string) error {
			b := new(varve.Batch)
			b.Put(varve.Memory{ID: "beside", Content: "x"})
			b.Delete(id)
			return st.Apply(ctx, b, varve.InSession("mine"))
		},
		"batch that names it twice": func(st *varve.Store, id string) error {
			b := new(varve.Batch)
			b.Put(varve.Memory{ID: id, Content: "x"}, varve.InSession("mine"))
			b.Delete(id)
			return st.Apply(ctx, b)
		},
		"transaction reads": func(st *varve.Store, id string) error {
			return st.Transact(ctx, func(tx *varve.Tx) error {
				_, err := tx.Get(id)
				return err
			}, varve.InSession("mine"))
		},
		"transaction puts": func(st *varve.Store, id string) error {
			return st.Transact(ctx, func(tx *varve.Tx) error {
				_, err := tx.Put(varve.Memory{ID: id, Content: "new"})
				return err
			}, varve.InSession("mine"))
		},
		"condition in a transaction": func(st *varve.Store, id string) error {
			return st.Transact(ctx, func(tx *varve.Tx) error {
				_, err := tx.Put(varve.Memory{ID: id, Content: "new"}, varve.InSession("mine"))
				return err
			})
		},
		"get": func(st *varve.Store, id string) error { _, err := st.Get(ctx, id, varve.InSession("mine")); return err },
	}
	for _, cache := range []int64{0, -1} {
		for name, do := range ways {
			t.Run(fmt.Sprint(name, " cache ", cache), func(t *testing.T) {
				st := fixture.Open(t, t.TempDir(), &varve.Options{CacheBytes: cache})
				put := func(id string, md map[string]any) {
					if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "old", Metadata: md}); err != nil {
						t.Fatal(err)
					}
				}
				put("mine", fixture.InSession("mine"))
				put("theirs", fixture.InSession("theirs"))
				put("nobody's", nil)
				if err := do(st, "mine"); err != nil {
					t.Errorf("of its own session: %v", err)
				}
				if err := st.Delete(ctx, "beside"); err != nil && !errors.Is(err, varve.ErrNotFound) {
					t.Fatal(err)
				}
				for id, session := range map[string]string{"theirs": "theirs", "nobody's": ""} {
					err := do(st, id)
					var se *varve.SessionError
					if !errors.Is(err, varve.ErrSession) || !errors.As(err, &se) || se.Session != session || se.Wanted != "mine" {
						t.Errorf("%s: %v", id, err)
					} else if session != "" && !strings.Contains(err.Error(), `"theirs"`) || !strings.Contains(err.Error(), `"mine"`) {
						t.Errorf("the message does not name both: %v", err)
					}
					if m, err := st.Get(ctx, id); err != nil || m.Content != "old" || m.Session() != session {
						t.Errorf("%s is %+v, %v", id, m, err)
					}
				}
				if s := sessionNow(t, st, "beside"); s != "-" {
					t.Error("a part of a refused batch is there")
				}
			})
		}
	}
}

func TestInSessionJoins(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := fixture.ClockAt(time.Unix(1e9, 0))
	st := fixture.Open(t, t.TempDir(), &varve.Options{Clock: c.Now})
	md := map[string]any{"category": "c"}
	m, err := st.Put(ctx, varve.Memory{ID: "new", Content: "x", Metadata: md}, varve.InSession("s"))
	if err != nil || m.Session() != "s" || m.Category() != "c" {
		t.Fatalf("%+v, %v", m, err)
	}
	if len(md) != 1 {
		t.Error("the caller's metadata was changed")
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "other", Content: "x", Metadata: fixture.InSession("t")},
		varve.InSession("s")); !errors.Is(err, varve.ErrSession) {
		t.Errorf("a memory that names another session: %v", err)
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "number", Content: "x", Metadata: map[string]any{"session_id": 3}},
		varve.InSession("s")); !errors.Is(err, varve.ErrInvalid) {
		t.Errorf("a session that is a number: %v", err)
	}
	for _, do := range []func() error{
		func() error {
			_, err := st.Put(ctx, varve.Memory{ID: "e", Content: "x"}, varve.InSession(""))
			return err
		},
		func() error { return st.Delete(ctx, "new", varve.InSession("")) },
	} {
		if err := do(); !errors.Is(err, varve.ErrInvalid) {
			t.Errorf("an empty session: %v", err)
		}
	}
	// It can be moved only by a handle that is not confined.
	if _, err := st.Update(ctx, "new", func(m *varve.Memory) error { m.Metadata["session_id"] = "t"; return nil },
		varve.InSession("s")); !errors.Is(err, varve.ErrSession) {
		t.Errorf("out of the session: %v", err)
	}
	if _, err := st.Update(ctx, "new",
		func(m *varve.Memory) error { m.Metadata["session_id"] = "t"; return nil }); err != nil {
		t.Error(err)
	}
	if s := sessionNow(t, st, "new"); s != "t" {
		t.Errorf("it is in %q", s)
	}
	// An expired memory belongs to no session.
	if _, err := st.Put(ctx,
		varve.Memory{ID: "late", Content: "x", Metadata: fixture.InSession("t"),
			ExpiresAt: c.Now().Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	c.Add(time.Minute)
	if _, err := st.Put(ctx, varve.Memory{ID: "late", Content: "x"}, varve.InSession("s")); err != nil || sessionNow(t, st,
		"late") != "s" {
		t.Errorf("after its time: %v", err)
	}
	if err := st.Transact(ctx, func(tx *varve.Tx) error {
		for m, err := range tx.List() {
			if err != nil || m.Session() != "s" {
				return fmt.Errorf("listed %+v, %w", m.ID, err)
			}
		}
		return nil
	}, varve.InSession("s")); err != nil {
		t.Error(err)
	}
}

// Two sessions compete for memories: a confined writer never writes the other's, even if a memory moves
// between the check and the commit.
func TestInSessionRace(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	stores := []*varve.Store{fixture.Open(t, dir, nil), fixture.Open(t, dir, nil)}
	if _, err := stores[0].Put(ctx, varve.Memory{ID: "x", Content: "a 0", Metadata: fixture.InSession("a")}); err != nil {
		t.Fatal(err)
	}
	seed := proofs.Seed(t, 0)
	var wg sync.WaitGroup
	for w := range 6 {
		st, me := stores[w%2], []string{"a", "b"}[w%2]
		rng := rand.New(rand.NewPCG(seed, uint64(w)))
		wg.Go(func() {
			for range 200 {
				if rng.IntN(4) == 0 { // hands it over: content and session in one write
					to := []string{"a", "b"}[rng.IntN(2)]
					if _, err := st.Put(ctx,
						varve.Memory{ID: "x", Content: to + " moved", Metadata: fixture.InSession(to)}); err != nil {
						t.Error(err)
					}
					continue
				}
				_, err := st.Update(ctx, "x", func(m *varve.Memory) error {
					if !strings.HasPrefix(m.Content, me) {
						return fmt.Errorf("%s was shown %q of %q", me, m.Content, m.Session())
					}
					m.Content = me + " updated"
					return nil
				}, varve.InSession(me))
				if err == nil {
					_, err = st.Put(ctx, varve.Memory{ID: "x", Content: me + " put"}, varve.InSession(me))
				}
				if err != nil && !errors.Is(err, varve.ErrSession) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	versions, last := 0, map[uint64]varve.Memory{}
	for v, err := range stores[0].History(ctx, "x") {
		if err != nil {
			t.Fatal(err)
		}
		versions++
		m, err := v.Decode()
		if err != nil || !strings.HasPrefix(m.Content, m.Session()) {
			t.Errorf("seed %d: version %d of session %q says %q (%v)", seed, m.Version, m.Session(), m.Content, err)
		}
		last[v.LSN] = m
	}
	// Only an explicit move changes its session.
	from := ""
	for _, at := range slices.Sorted(maps.Keys(last)) {
		m := last[at]
		if from != "" && m.Session() != from && !strings.HasSuffix(m.Content, "moved") {
			t.Errorf("seed %d: version %d, %q, took it from %q", seed, at, m.Content, from)
		}
		from = m.Session()
	}
	if versions < 200 {
		t.Errorf("only %d versions", versions)
	}
}

// uglySessions returns the ids of FAILURES 30.
func uglySessions() []string {
	return []string{
		"../../etc/passwd", "..", ".", "/", `C:\con`, "con", "a b", " ", "\n", "a\nb", "a\x00b", "\x00", "\x00\x00", "\x01",
		"\x01\x01", "a\x01\x02b", "a",
		strings.Repeat("a", 1000), "😀", "é", "e\u0301", `"`, `\`, "\u2028", "null", "1", "s\x7f", "\ufeff",
	}
}

// Sessions with unusual ids of every kind keep their memories apart, before and after the index has
// them.
func TestFailures30(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, dir, nil)
	for i, s := range uglySessions() {
		for j := range i%3 + 1 {
			if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprintf("%d\x00%d", i, j), Content: s},
				varve.InSession(s)); err != nil {
				t.Fatalf("%q: %v", s, err)
			}
		}
	}
	look := func(st *varve.Store) {
		for i, s := range uglySessions() {
			n := 0
			for m, err := range st.Memories(ctx, varve.InSession(s)) {
				if err != nil || m.Content != s || m.Session() != s {
					t.Errorf("%q has %+v, %v", s, m, err)
				}
				n++
			}
			if c, err := st.Count(ctx, varve.InSession(s)); n != i%3+1 || c != int64(n) || err != nil {
				t.Errorf("%q has %d memories, counted %d (%v)", s, n, c, err)
			}
		}
	}
	look(st)
	if err := st.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	look(st)
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		t.Errorf("verify: %+v, %v", f, err)
	}
	look(fixture.Open(t, dir, &varve.Options{ReadOnly: true}))
	for _, s := range []string{strings.Repeat("a", 1025), "\xff"} {
		if _, err := st.Put(ctx, varve.Memory{Content: "x"}, varve.InSession(s)); !errors.Is(err, varve.ErrInvalid) {
			t.Errorf("%.10q: %v", s, err)
		}
	}
}
