package logs

import (
	"errors"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/fixture"
)

// Deletions of expired memories and counts of accesses by the store are not commits of its caller:
// otherwise a host would report for a refused put that something was stored.
func TestCommitsThatNoCallerAsked(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	c := fixture.ClockAt(time.Unix(1_700_000_000, 0))
	o := c.On(&varve.Options{Clock: c.Now, NoBackground: true})
	run := func(f func(st *varve.Store)) int64 {
		t.Helper()
		st, err := varve.Open(ctx, dir, o)
		if err != nil {
			t.Fatal(err)
		}
		f(st)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		return st.Admin().Commits()
	}
	if n := run(func(st *varve.Store) {
		for _, m := range []varve.Memory{{ID: "a", Content: "x", ExpiresAt: c.Now().Add(time.Minute)},
			{ID: "b", Content: "y", Metadata: map[string]any{"session_id": "s"}}} {
			if _, err := st.Put(ctx, m); err != nil {
				t.Fatal(err)
			}
		}
	}); n != 2 {
		t.Errorf("%d commits of two puts", n)
	}
	swept := false
	o.Listener = func(e varve.Event) { swept = swept || e.Kind == varve.EventSwept }
	for range 3 {
		c.Add(61 * time.Minute)
		if n := run(func(st *varve.Store) {
			if err := st.Touch(ctx, "b"); err != nil {
				t.Fatal(err)
			}
			if _, err := st.Put(ctx, varve.Memory{ID: "", Content: ""}, varve.IfVersion(7)); !errors.Is(err,
				errs.ErrInvalid) && !errors.Is(err, errs.ErrConflict) {
				t.Errorf("a put that must be refused: %v", err)
			}
		}); n != 0 {
			t.Errorf("%d commits of a refused put", n)
		}
	}
	if !swept {
		t.Error("nothing was swept: the test tests nothing")
	}
	if n := run(func(st *varve.Store) {
		if _, err := st.Sessions().Delete(ctx, "s"); err != nil {
			t.Fatal(err)
		}
	}); n != 1 {
		t.Errorf("%d commits of a deleted session", n)
	}
}
