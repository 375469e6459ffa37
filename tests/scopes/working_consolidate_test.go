package scopes

import (
	"context"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/working"
)

// TestWorkingConsolidate: the selected parts become memories in the commit that drops the scope; what is
// written to the scope meanwhile is not lost with it.
func TestWorkingConsolidate(t *testing.T) {
	t.Parallel()
	st, err := varve.Open(t.Context(), t.TempDir(), &varve.Options{NoBackground: true})
	fixture.Must(t, err)
	defer st.Close()
	m := wm(t, st)
	fixture.Must(t, m.SetMany(t.Context(),
		map[string]any{"fact.a": "likes tea", "fact.b": map[string]any{"n": 1}, "draft": "x"}))
	_, err = m.Append(t.Context(), "first")
	fixture.Must(t, err)
	kept, err := st.Working().Consolidate(t.Context(), workScope,
		varve.Consolidation{Values: []string{"fact.*"}, Keep: true})
	fixture.Must(t, err)
	if len(kept) != 2 || kept[0].Content != "likes tea" || kept[0].Version == 0 || kept[0].Metadata["session_id"] != "s" ||
		kept[0].Metadata["key"] != "fact.a" {
		t.Fatalf("%+v", kept)
	}
	hasValue(t, m, "draft", "x")
	raced, done := false, make(chan error, 1)
	all, err := st.Working().Consolidate(t.Context(), workScope,
		varve.Consolidation{Values: []string{"fact.*"}, Notes: true, Memory: func(*varve.Memory) {
			if !raced { // another process writes between the read and the commit
				raced = true
				go func() { _, err := m.Append(context.Background(), "second"); done <- err }()
			}
		}})
	fixture.Must(t, err)
	fixture.Must(t, <-done)
	if len(all) < 2 || all[1].Content != `{"n":1}` {
		t.Fatalf("%+v", all)
	}
	// The second entry is in the memory, or in the scope that it created again.
	n, err := m.Notes(t.Context(), -1)
	fixture.Must(t, err)
	if got := strings.Count(all[len(all)-1].Content, "second") + len(n); got != 1 {
		t.Errorf("%q and %v", all[len(all)-1].Content, n)
	}
	if _, found, _ := m.Get(t.Context(), "draft"); found {
		t.Error("the scope is still there")
	}
	count, err := st.Count(t.Context())
	fixture.Must(t, err)
	if count != 5 {
		t.Errorf("%d memories", count)
	}
	none, err := st.Working().Consolidate(t.Context(), working.Scope{Session: "never"}, varve.Consolidation{Notes: true})
	if err != nil || none != nil {
		t.Errorf("%v, %v", none, err)
	}
	_, err = st.Working().Consolidate(t.Context(), workScope, varve.Consolidation{Values: []string{"["}})
	if err == nil {
		t.Error("a bad pattern was taken")
	}
	fixture.Must(t, st.Flush(t.Context()))
	verifyClean(t, st)
}

// TestWorkingSessions: a host that keeps only a few sessions open loses nothing of the others, and a
// session that ends leaves memories.
func TestWorkingSessions(t *testing.T) {
	t.Parallel()
	st, err := varve.Open(t.Context(), t.TempDir(), nil)
	fixture.Must(t, err)
	defer st.Close()
	home := st.Working().Home()
	all, err := working.NewSessions(home,
		&working.SessionsOptions{Open: 3, OnClose: func(ctx context.Context, m *working.Memory, why working.Reason) error {
			if why != working.Ended {
				return nil
			}
			_, err := st.Working().Consolidate(ctx, m.Scope(), varve.Consolidation{Values: []string{"*"}})
			return err
		}})
	fixture.Must(t, err)
	scope := func(i int) working.Scope { return working.Scope{Session: string(rune('a' + i))} }
	for round := range 3 {
		for i := range 20 {
			fixture.Must(t, all.With(t.Context(), scope(i), func(m *working.Memory) error {
				n, err := m.Increment(t.Context(), "n", 1)
				if err == nil && n != int64(round+1) {
					t.Errorf("%d in round %d", n, round)
				}
				return err
			}))
		}
	}
	if n := all.Len(); n > 3 {
		t.Errorf("%d are open", n)
	}
	for i := range 10 {
		fixture.Must(t, all.End(t.Context(), scope(i), false))
	}
	fixture.Must(t, all.Close(t.Context()))
	left := 0
	for _, err := range home.Scopes(t.Context()) {
		fixture.Must(t, err)
		left++
	}
	count, err := st.Count(t.Context())
	fixture.Must(t, err)
	if left != 10 || count != 10 {
		t.Errorf("%d scopes and %d memories", left, count)
	}
}
