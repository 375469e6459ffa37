package project

import (
	"context"
	"errors"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// Each way in which a View reaches a memory of another project gives the result for a missing one.
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
	if _, err := Merge(context.Background(), st, b.Project(), a.Project()); err != nil {
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

// The shared memory with a key is hidden by that of the project.
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
