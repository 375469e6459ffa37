package varve

import (
	"errors"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
)

// What a store deletes because it has expired, and accesses that it counts, are no commits of its caller: a host would
// say of a refused put that something was stored.
func TestCommitsThatNoCallerAsked(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	c := clockAt(time.Unix(1_700_000_000, 0))
	o := c.on(&Options{Clock: c.now, NoBackground: true})
	run := func(f func(st *Store)) int64 {
		t.Helper()
		st, err := Open(ctx, dir, o)
		if err != nil {
			t.Fatal(err)
		}
		f(st)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		return st.Admin().Commits()
	}
	if n := run(func(st *Store) {
		for _, m := range []Memory{{ID: "a", Content: "x", ExpiresAt: c.now().Add(time.Minute)}, {ID: "b", Content: "y", Metadata: map[string]any{"session_id": "s"}}} {
			if _, err := st.Put(ctx, m); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 2 {
		t.Errorf("%d commits of two puts", n)
	}
	swept := false
	o.Listener = func(e Event) { swept = swept || e.Kind == EventSwept }
	for range 3 {
		c.add(61 * time.Minute)
		if n := run(func(st *Store) {
			if err := st.Touch(ctx, "b"); err != nil {
				t.Fatal(err)
			}
			if _, err := st.Put(ctx, Memory{ID: "", Content: ""}, IfVersion(7)); !errors.Is(err, errs.ErrInvalid) && !errors.Is(err, errs.ErrConflict) {
				t.Errorf("a put that must be refused: %v", err)
			}
		}); n != 0 {
			t.Errorf("%d commits of a refused put", n)
		}
	}
	if !swept {
		t.Error("nothing was swept: the test tests nothing")
	}
	if n := run(func(st *Store) {
		if _, err := st.Sessions().Delete(ctx, "s"); err != nil {
			t.Fatal(err)
		}
	}); n != 1 {
		t.Errorf("%d commits of a deleted session", n)
	}
}
