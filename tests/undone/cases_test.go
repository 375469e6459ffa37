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
	"github.com/varve-db/varve/wal"
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

// An edit by hand, with unknown members and unusual white space, is restored byte for byte, and so is
// the time at which it was adopted.
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

// Deleting memories changes assemblies, and an assembly of several memories is created by one commit:
// each is restored as a whole.
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
	// An assembly into which others were merged is undone with those.
	_, err := st.Assemblies().Put(t.Context(), varve.Assembly{ID: "g2", Name: "g2", MemoryIDs: []string{"3"}})
	fixture.Must(t, err)
	before = stateOf(t, st)
	_, err = st.Assemblies().Merge(as(t, "run"), "g", "g2", "new")
	fixture.Must(t, err)
	undo(t, t.Context(), st, varve.UndoOptions{Run: "run"})
	same(t, "merge undone", st, before)
	healthy(t, st)
}

// What the store removed is restored by the position of its commit; an undo of a run does not restore
// it, except what the run itself evicted.
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

// Counted accesses are not changes by others. Working memory stays, and the plan names it.
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

// A previous version is read from the archive, or from the copy that was kept of it; one that is kept
// nowhere is named, and one that was purged too.
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
	for _, name := range []string{"wal", "backups"} { // as in a clone: only the files exist
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

// A purge, and the redaction of a version, is a commit of its writer that cannot be undone: neither as
// the last one, instead of the one before it, nor by its position.
func TestUndoBehindAPurge(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, storeIn(t), options("keeper"))
	put := func(id, content string) uint64 {
		t.Helper()
		_, err := st.Put(t.Context(), varve.Memory{ID: id, Content: content})
		fixture.Must(t, err)
		return newest(t, st)
	}
	_, secret, _ := put("gone", "a secret"), put("stays", "another secret"), put("stays", "clean")
	for what, purge := range map[string]func() error{
		"purge":     func() error { _, err := st.Admin().Purge(t.Context(), "gone"); return err },
		"redaction": func() error { _, err := st.Admin().PurgeVersion(t.Context(), "stays", secret); return err },
	} {
		put("gone", "again")
		from := storetest.Inner(st).Engine.Log().Durable()
		fixture.Must(t, purge())
		before := stateOf(t, st)
		if _, err := st.Undo(t.Context(), varve.UndoOptions{}); !errors.Is(err, varve.ErrPurged) {
			t.Errorf("after a %s: %v", what, err)
		}
		entry := uint64(0)
		for e, err := range storetest.Inner(st).Engine.Log().Past().Entries(t.Context(), wal.Mark{LSN: from},
			storetest.Inner(st).Engine.Log().Durable()) {
			if err == nil && e.Key == "p" {
				entry = e.LSN
			}
		}
		if _, err := st.Undo(t.Context(), varve.UndoOptions{Position: entry}); !errors.Is(err, varve.ErrPurged) {
			t.Errorf("at the position of a %s: %v", what, err)
		}
		same(t, "after a "+what, st, before)
		at := put("gone", "last")
		if p := undo(t, t.Context(), st, varve.UndoOptions{}); p.Position != at {
			t.Errorf("the commit behind a %s is at %d: %+v", what, at, p)
		}
	}
}

// A run is found by the name that its writer gave, even if the store keeps that name escaped or cut, and
// an undo of it in several commits is recognized by that name. A run that no commit has is not found.
func TestUndoNames(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, storeIn(t), options("keeper"))
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 60 {
		_, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprint("m", i), Content: noise(rng, 6000)})
		fixture.Must(t, err)
	}
	before := stateOf(t, st)
	for _, name := range []string{"line\nbreak", "zero\u200bwidth", "esc\x1b[31m", strings.Repeat("<\"", 120),
		strings.Repeat("ü", 400), "-x", "1 2"} {
		for i := range 60 {
			_, err := st.Put(varve.WithWriter(t.Context(), varve.Writer{Session: name}),
				varve.Memory{ID: fmt.Sprint("m", i), Content: "by the run"})
			fixture.Must(t, err)
		}
		n := 0
		for _, err := range st.Log(t.Context(), varve.LogOptions{By: name}) {
			fixture.Must(t, err)
			n++
		}
		if n != 60 {
			t.Errorf("%.20q made %d commits", name, n)
		}
		p := undo(t, t.Context(), st, varve.UndoOptions{Run: name})
		if len(p.Parts) < 2 {
			t.Fatalf("%.20q: %d commits", name, len(p.Parts))
		}
		same(t, name, st, before)
		list, err := st.Admin().Writers(t.Context())
		fixture.Must(t, err)
		if w := list[len(list)-1]; w.Undo == "" {
			t.Errorf("%.20q: the undo is not recognised", name)
		}
	}
	for _, name := range []string{"99999", "nobody"} {
		if _, err := st.PlanUndo(t.Context(), varve.UndoOptions{Run: name}); !errors.Is(err, varve.ErrNotFound) {
			t.Errorf("the plan for %s: %v", name, err)
		}
		if _, err := st.Undo(t.Context(), varve.UndoOptions{Run: name}); !errors.Is(err, varve.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Undoing a run of which log and archive have only the later commits is not done silently.
func TestUndoReleasedRun(t *testing.T) {
	t.Parallel()
	dir := storeIn(t)
	st := fixture.Open(t, dir, options("keeper"))
	rng := rand.New(rand.NewPCG(1, 1))
	_, err := st.Put(as(t, "run"), varve.Memory{ID: "early", Content: "early"})
	fixture.Must(t, err)
	for range 2 {
		for range 60 {
			_, err := st.Put(t.Context(), varve.Memory{ID: "fill", Content: noise(rng, 4000)})
			fixture.Must(t, err)
		}
		fixture.Must(t, st.Admin().Compact(t.Context()))
	}
	_, err = st.Put(as(t, "run"), varve.Memory{ID: "late", Content: "late"})
	fixture.Must(t, err)
	archived, err := filepath.Glob(filepath.Join(dir, "wal", "archive", "*.zst"))
	fixture.Must(t, err)
	fixture.Must(t, os.Remove(archived[0]))
	before := stateOf(t, st)
	var conflicts *varve.UndoError
	if _, err := st.Undo(t.Context(), varve.UndoOptions{Run: "run"}); !errors.As(err, &conflicts) ||
		len(conflicts.Plan.Unread) == 0 || !errors.Is(conflicts.Plan.Unread[0], varve.ErrTruncated) {
		t.Fatal(err)
	}
	same(t, "refused", st, before)
	delete(before, "memory late")
	if p := undo(t, t.Context(), st, varve.UndoOptions{Run: "run", Partial: true}); len(p.Changes) != 1 {
		t.Errorf("%+v", p)
	}
	same(t, "partial", st, before)
}
