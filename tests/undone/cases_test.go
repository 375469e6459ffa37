package undone

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/working"
)

// last returns the position of the newest commit for which is holds.
func last(t testing.TB, st *varve.Store, is func(c *varve.Commit) bool) uint64 {
	t.Helper()
	for c, err := range st.Log(t.Context(), varve.LogOptions{}) {
		fixture.Must(t, err)
		if is(&c) {
			return c.LSN
		}
	}
	t.Fatal("no such commit")
	return 0
}

// An edit by hand, with members that no program knows and blanks of its own, comes back byte for byte, and so
// does the time at which it was adopted.
func TestUndoExactBytes(t *testing.T) {
	t.Parallel()
	dir := storeIn(t)
	st := fixture.Open(t, dir, options("keeper"))
	_, err := st.Put(t.Context(), varve.Memory{ID: "a", Content: "one"})
	fixture.Must(t, err)
	fixture.Must(t, st.Flush(t.Context()))
	odd := "{ \"id\":\"a\",   \"mine\": [1.50, 1e2, {\"b\":null}], \"content\" : \"by hand\",\n\n\"embedding\":[1,  2.0] }"
	fixture.Must(t, os.WriteFile(filepath.Join(dir, "memories", "a.json"), []byte(odd), 0o600))
	was, err := st.Get(t.Context(), "a")
	fixture.Must(t, err)
	_, err = st.Put(as(t, "run"), varve.Memory{ID: "a", Content: "by the run"})
	fixture.Must(t, err)
	_, err = st.Update(as(t, "run"), "a", func(m *varve.Memory) error { m.Metadata = nil; return nil })
	fixture.Must(t, err)
	undo(t, t.Context(), st, varve.UndoOptions{Run: "run"})
	same(t, "undone", st, state{"memory a": odd})
	fixture.Must(t, st.Flush(t.Context()))
	if b := fixture.ReadBytes(t, filepath.Join(dir, "memories", "a.json")); string(b) != odd {
		t.Errorf("the file is %s", b)
	}
	is, err := st.Get(t.Context(), "a")
	fixture.Must(t, err)
	if !is.UpdatedAt.Equal(was.UpdatedAt) || !is.CreatedAt.Equal(was.CreatedAt) {
		t.Errorf("times %v and %v, want %v and %v", is.CreatedAt, is.UpdatedAt, was.CreatedAt, was.UpdatedAt)
	}
	hits, err := st.Search(t.Context(), varve.Query{Vector: []float32{1, 2}})
	fixture.Must(t, err)
	if len(hits) != 1 || hits[0].Score < 0.99 {
		t.Errorf("%+v", hits)
	}
	healthy(t, st)
}

// Deleting memories changes assemblies, and an assembly of several memories is made of one commit: each comes back
// as a whole.
func TestUndoCascade(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, storeIn(t), options("keeper"))
	for i := range 4 {
		_, err := st.Put(t.Context(),
			varve.Memory{ID: fmt.Sprint(i), Content: fmt.Sprint(i), Embedding: []float32{float32(i), 1}})
		fixture.Must(t, err)
	}
	for _, id := range []string{"g", "h"} {
		_, err := st.Assemblies().Put(t.Context(), varve.Assembly{ID: id, Name: id, MemoryIDs: []string{"0", "1", "2"}})
		fixture.Must(t, err)
	}
	before := stateOf(t, st)
	b := new(varve.Batch)
	b.Delete("0")
	b.Delete("1")
	b.Put(varve.Memory{ID: "2", Content: "moved", Embedding: []float32{9, 9}})
	b.PutAssembly(varve.Assembly{ID: "new", Name: "new", MemoryIDs: []string{"2", "3"}})
	b.DeleteAssembly("h")
	fixture.Must(t, st.Apply(t.Context(), b))
	after := stateOf(t, st)
	p := undo(t, t.Context(), st, varve.UndoOptions{})
	if len(p.Changes) != 6 {
		t.Errorf("%+v", p.Changes)
	}
	same(t, "undone", st, before)
	healthy(t, st)
	undo(t, t.Context(), st, varve.UndoOptions{})
	same(t, "undo undone", st, after)
	// An assembly that others merge is taken back with those that it was made of.
	_, err := st.Assemblies().Put(t.Context(), varve.Assembly{ID: "g2", Name: "g2", MemoryIDs: []string{"3"}})
	fixture.Must(t, err)
	before = stateOf(t, st)
	_, err = st.Assemblies().Merge(as(t, "run"), "g", "g2", "new")
	fixture.Must(t, err)
	undo(t, t.Context(), st, varve.UndoOptions{Run: "run"})
	same(t, "merge undone", st, before)
	healthy(t, st)
}

// What the store removed comes back by the position of its commit; with a run it is not taken back, but for what the
// run itself evicted.
func TestUndoRemoved(t *testing.T) {
	t.Parallel()
	clock := fixture.ClockAt(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	o := options("keeper")
	o.Clock = clock.Now
	st := fixture.Open(t, storeIn(t), clock.On(o))
	put := func(ctx context.Context, id string, ttl time.Duration) {
		t.Helper()
		m := varve.Memory{ID: id, Content: id}
		if ttl > 0 {
			m.ExpiresAt = clock.Now().Add(ttl)
		}
		_, err := st.Put(ctx, m)
		fixture.Must(t, err)
	}
	put(as(t, "run"), "mortal", time.Minute)
	put(as(t, "run"), "first", 0)
	fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxMemories, c.AtLimit = 1, varve.AtLimitEvictOldest })
	before := stateOf(t, st)
	delete(before, "memory mortal")
	for range 9 {
		clock.Add(30 * time.Minute)
		fixture.Must(t, storetest.Inner(st).Retention.SweepExpired(t.Context()))
	}
	at := last(t, st, func(c *varve.Commit) bool { return c.Changes[0].Cause == "expired" })
	put(as(t, "evicting"), "second", 0)
	if _, err := st.Get(t.Context(), "first"); !errors.Is(err, varve.ErrNotFound) {
		t.Fatalf("not evicted: %v", err)
	}
	undo(t, t.Context(), st, varve.UndoOptions{Run: "evicting"})
	same(t, "eviction undone", st, before)
	// The limit refuses an undo, and nothing is evicted.
	var limit *varve.LimitError
	if _, err := st.Undo(t.Context(), varve.UndoOptions{Position: at}); !errors.As(err, &limit) {
		t.Fatalf("beyond the limit: %v", err)
	}
	same(t, "refused", st, before)
	fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxMemories = 0 })
	undo(t, t.Context(), st, varve.UndoOptions{Position: at})
	m, err := st.Get(t.Context(), "mortal")
	if err != nil || !m.ExpiresAt.IsZero() || m.Content != "mortal" {
		t.Errorf("%+v, %v", m, err)
	}
	healthy(t, st)
}

// Accesses that were counted are no change of others. Working memory stays, and the plan names it.
func TestUndoUpkeep(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, storeIn(t), options("keeper"))
	_, err := st.Put(t.Context(), varve.Memory{ID: "a", Content: "one"})
	fixture.Must(t, err)
	before := stateOf(t, st)
	_, err = st.Put(as(t, "run"), varve.Memory{ID: "a", Content: "two"})
	fixture.Must(t, err)
	fixture.Must(t, st.Touch(as(t, "other"), "a"))
	fixture.Must(t, storetest.Inner(st).Retention.WriteTouched(t.Context()))
	if m, err := st.Get(t.Context(), "a"); err != nil || m.AccessCount != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	wm, err := st.Working().Open(as(t, "run"), working.Scope{Session: "s"}, nil)
	fixture.Must(t, err)
	fixture.Must(t, wm.Set(as(t, "run"), "k", "v"))
	p := undo(t, t.Context(), st, varve.UndoOptions{Run: "run"})
	if len(p.Scopes) != 1 {
		t.Errorf("scopes %q", p.Scopes)
	}
	same(t, "undone", st, before)
}

// A predecessor is read from the archive, or from the copy that was kept of it; one that is nowhere is named, and one
// that was purged too.
func TestUndoPredecessors(t *testing.T) {
	t.Parallel()
	dir := storeIn(t)
	st, err := varve.Open(t.Context(), dir, options("keeper"))
	fixture.Must(t, err)
	for _, id := range []string{"archived", "kept", "purged", "nowhere"} {
		_, err := st.Put(t.Context(), varve.Memory{ID: id, Content: "before"})
		fixture.Must(t, err)
	}
	fixture.Must(t, st.Close())
	backup := filepath.Join(t.TempDir(), "b")
	fixture.CopyDir(t, dir, backup)
	for _, name := range []string{"wal", "backups"} { // as in a clone: the files are all there is
		fixture.Must(t, os.RemoveAll(filepath.Join(backup, name)))
	}
	for name, dir := range map[string]string{"archive": dir, "files": backup} {
		t.Run(name, func(t *testing.T) {
			st := fixture.Open(t, dir, options("keeper"))
			before := stateOf(t, st)
			rng := rand.New(rand.NewPCG(1, 1))
			fill := func() {
				t.Helper()
				for range 60 {
					_, err := st.Put(t.Context(), varve.Memory{ID: "fill", Content: noise(rng, 4000)})
					fixture.Must(t, err)
				}
				fixture.Must(t, st.Admin().Compact(t.Context()))
			}
			fill()
			_, err := st.Put(as(t, "run"), varve.Memory{ID: "archived", Content: "by the run"})
			fixture.Must(t, err)
			fixture.Must(t, st.Delete(as(t, "run"), "kept"))
			fill()
			undo(t, t.Context(), st, varve.UndoOptions{Run: "run"})
			now := stateOf(t, st)
			delete(now, "memory fill")
			delete(before, "memory fill")
			if list := differences(now, before); len(list) > 0 {
				t.Fatal(list)
			}
			_, err = st.Put(as(t, "bad"), varve.Memory{ID: "purged", Content: "by the run"})
			fixture.Must(t, err)
			at := newest(t, st)
			_, err = st.Admin().Purge(t.Context(), "purged")
			fixture.Must(t, err)
			if _, err := st.Undo(t.Context(), varve.UndoOptions{Position: at}); !errors.Is(err, varve.ErrPurged) {
				t.Errorf("what was purged: %v", err)
			}
			healthy(t, st)
		})
	}
	t.Run("nowhere", func(t *testing.T) {
		st := fixture.Open(t, dir, options("keeper"))
		_, err := st.Put(as(t, "late"), varve.Memory{ID: "nowhere", Content: "by the run"})
		fixture.Must(t, err)
		archived, err := filepath.Glob(filepath.Join(dir, "wal", "archive", "*.zst"))
		fixture.Must(t, err)
		fixture.Must(t, os.Remove(archived[0]))
		before := stateOf(t, st)
		_, err = st.Undo(t.Context(), varve.UndoOptions{Run: "late"})
		var conflicts *varve.UndoError
		if !errors.As(err, &conflicts) || len(conflicts.Plan.Conflicts) != 1 ||
			!errors.Is(conflicts.Plan.Conflicts[0].Err, varve.ErrUnkept) || !strings.Contains(err.Error(), `"nowhere"`) {
			t.Errorf("%v", err)
		}
		same(t, "refused", st, before)
	})
}
