package project

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/working"
)

// TestViewSeesItsOwn verifies that each method of a View gives the result for a missing memory if the memory belongs to
// another project.
func TestViewSeesItsOwn(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st := fixture.Open(t, t.TempDir(), &varve.Options{Writer: &varve.Writer{Program: "host"}})
	a, b := New(st, NewID([16]byte{1}), nil), New(st, NewID([16]byte{2}), nil)
	put := func(v *View, m varve.Memory, shared bool) error {
		return v.Transact(ctx, func(tx *Tx) error {
			v.Place(&m, shared)
			_, err := tx.Put(m)
			return err
		})
	}
	for _, err := range []error{put(b, varve.Memory{ID: "secret-of-b", Content: "apple"}, false),
		put(b, varve.Memory{ID: "for-all", Content: "apple pie"}, true)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := put(a, varve.Memory{ID: "secret-of-b", Content: "mine"}, false); !errors.Is(err, varve.ErrConflict) {
		t.Errorf("replacing it: %v", err)
	}
	if err := put(a, varve.Memory{ID: "x", Content: "mine", Metadata: map[string]any{Member: b.Project()}},
		true); err != nil {
		t.Error(err)
	}
	err := a.Transact(ctx, func(tx *Tx) error {
		_, err := tx.Put(varve.Memory{ID: "y", Metadata: map[string]any{Member: b.Project()}})
		return err
	})
	if !errors.Is(err, varve.ErrInvalid) {
		t.Errorf("writing for another project: %v", err)
	}
	_, get := a.Get(ctx, "secret-of-b")
	_, history := a.History(ctx, "secret-of-b")
	_, whole := a.Resolve(ctx, "secret-of-b", false)
	_, ending := a.Resolve(ctx, "cret-of-b", false)
	remove := a.Transact(ctx, func(tx *Tx) error { return tx.Delete("secret-of-b") })
	for what, err := range map[string]error{"get": get, "history": history, "whole": whole, "ending": ending,
		"delete": remove} {
		if !errors.Is(err, varve.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	hits, more, err := a.Search(ctx, varve.Query{Text: "apple", Limit: 5}, nil)
	if err != nil || more || len(hits) != 1 || hits[0].ID != "for-all" {
		t.Errorf("%+v %v %v", hits, more, err)
	}
	for m, err := range a.Memories(ctx) {
		if err != nil || m.ID == "secret-of-b" {
			t.Errorf("%s %v", m.ID, err)
		}
	}
	// A memory that was given to another project does not show its past there, and what was written in
	// the one project is not visible in the other.
	if _, err := Merge(context.Background(), st, b.Project(), a.Project(), MergeOptions{}); err != nil {
		t.Fatal(err)
	}
	versions, err := a.History(ctx, "secret-of-b")
	if err != nil || len(versions) != 1 {
		t.Errorf("%d versions, %v", len(versions), err)
	}
	if _, err := b.History(ctx, "secret-of-b"); !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
	// A member that is not text, as an edit by hand may leave it, belongs to no project.
	if _, err := st.Put(ctx, varve.Memory{ID: "odd", Content: "x",
		Metadata: map[string]any{Member: []any{a.Project()}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Get(ctx, "odd"); !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
}

// TestOverrides verifies that a memory of the project hides the shared memory with the same key.
func TestOverrides(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st := fixture.Open(t, t.TempDir(), nil)
	v := New(st, NewID([16]byte{1}), nil)
	for id, md := range map[string]map[string]any{"shared": {"key": "k"}, "own": {"key": "k", Member: v.Project()},
		"other session": {"key": "k", "session_id": "s"}, "other key": {"key": "l"}} {
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "apple", Metadata: md}); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for m, err := range v.Memories(ctx) {
		seen[m.ID] = err == nil
	}
	hits, _, err := v.Search(ctx, varve.Query{Text: "apple", Limit: 9}, nil)
	if err != nil || len(hits) != 3 || len(seen) != 3 || seen["shared"] || !seen["own"] {
		t.Errorf("%v %+v %v", seen, hits, err)
	}
}

func TestEnding(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{"short": "short", "sixteen-of-them-": "sixteen-of-them-",
		"0190f3a5-0000-7000-8000-aaaabbbbcccc": "…aabbbbcccc", "ééééééééééééééééééé": "…éééééééééé", "": ""} {
		if got := Ending(id); got != want {
			t.Errorf("%q: %q", id, got)
		}
	}
	for score, want := range map[float64]float64{0: 0, 12.3456: 12.3, 0.00123456: 0.00123, -1.2345: -1.23, 999.6: 1000} {
		if got := digits(score); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%v: %v", score, got)
		}
	}
}

// TestMergeWhole verifies that a merge moves notes, and moves nothing if a path is taken or a session has working
// memory.
func TestMergeWhole(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st := fixture.Open(t, t.TempDir(), nil)
	a, b := NewID([16]byte{1}), NewID([16]byte{2})
	note := func(project, path, text string) {
		t.Helper()
		if _, err := st.Notes().Write(ctx, NotesOf(project)+"/"+path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	note(a, "plan.md", "of a")
	note(b, "plan.md", "of b")
	note(b, "docs/api.md", "the api")
	if _, err := st.Put(ctx, varve.Memory{ID: "m", Content: "of b", Metadata: map[string]any{Member: b}}); err != nil {
		t.Fatal(err)
	}
	scope, err := working.ForSession("s", b+"/sub", "")
	if err != nil {
		t.Fatal(err)
	}
	w, err := st.Working().Open(ctx, scope, nil)
	if err == nil {
		err = w.Set(ctx, "k", "v")
	}
	if err != nil {
		t.Fatal(err)
	}
	unmoved := func() {
		t.Helper()
		if m, err := st.Get(ctx, "m"); err != nil || Of(&m) != b {
			t.Errorf("%+v %v", m, err)
		}
		if _, err := st.Notes().Read(ctx, NotesOf(b)+"/docs/api.md"); err != nil {
			t.Error(err)
		}
	}
	var has *WorkingError
	if _, err := Merge(ctx, st, b, a, MergeOptions{}); !errors.As(err, &has) || len(has.Scopes) != 1 ||
		has.Scopes[0] != scope.Key() || !errors.Is(err, varve.ErrConflict) {
		t.Errorf("with working memory: %v", err)
	}
	unmoved()
	if _, err := Merge(ctx, st, b, a, MergeOptions{LeaveWorking: true}); !errors.Is(err, varve.ErrConflict) {
		t.Errorf("with a note that both have: %v", err)
	}
	unmoved()
	if err := st.Notes().Delete(ctx, NotesOf(b)+"/plan.md"); err != nil {
		t.Fatal(err)
	}
	done, err := Merge(ctx, st, b, a, MergeOptions{LeaveWorking: true})
	if err != nil || done != (Merged{Memories: 1, Notes: 1}) {
		t.Errorf("%+v %v", done, err)
	}
	if n, err := st.Notes().Read(ctx, NotesOf(a)+"/docs/api.md"); err != nil || string(n.Content) != "the api" {
		t.Errorf("%+v %v", n, err)
	}
	done, err = Merge(ctx, st, a, "", MergeOptions{})
	if err != nil || done != (Merged{Memories: 1, Notes: 2}) {
		t.Errorf("%+v %v", done, err)
	}
	if n, err := st.Notes().Read(ctx, "plan.md"); err != nil || string(n.Content) != "of a" {
		t.Errorf("%+v %v", n, err)
	}
}

// TestUndoPassesOverOthers verifies that an undo of the newest change skips changes that the writer made in a project
// that the view does not see, and that an undo by position or by time does not take them back either.
func TestUndoPassesOverOthers(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, t.TempDir(), &varve.Options{Writer: &varve.Writer{Program: "host"}})
	ctx := varve.WithWriter(t.Context(), varve.Writer{Session: "agent-1"})
	a, b := New(st, NewID([16]byte{1}), nil), New(st, NewID([16]byte{2}), nil)
	put := func(v *View, id string) {
		t.Helper()
		if err := v.Transact(ctx, func(tx *Tx) error {
			m := varve.Memory{ID: id, Content: id}
			v.Place(&m, false)
			_, err := tx.Put(m)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	put(a, "of-a")
	put(b, "of-b")
	own := Own{Name: "agent-1"}
	var at uint64 // of the commit in b
	for v := range st.History(ctx, "of-b") {
		at = v.LSN
	}
	for _, o := range []varve.UndoOptions{{Position: at}, {Since: time.Unix(1, 0)}} {
		if _, err := a.Undo(ctx, own, o, false); !errors.Is(err, ErrOthers) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	p, err := a.Undo(ctx, own, varve.UndoOptions{}, false)
	if err != nil || len(p.Changes) != 1 || p.Changes[0].ID != "of-a" {
		t.Errorf("%+v %v", p, err)
	}
	if _, err := st.Get(ctx, "of-b"); err != nil {
		t.Error(err)
	}
	if _, err := New(st, NewID([16]byte{3}), nil).Undo(ctx, own, varve.UndoOptions{}, false); !errors.Is(err, ErrOthers) {
		t.Error(err)
	}
}
