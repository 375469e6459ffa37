package undo_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/parts"
	"github.com/varve-db/varve/internal/undo"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/writer"
)

// TestUndo: a run is undone, whether the log or the files have the previous versions; a change by others
// is a conflict, because of which nothing changes.
func TestUndo(t *testing.T) {
	t.Parallel()
	p := parts.New(t, t.TempDir())
	u := undo.New(p.Engine, p.Committer)
	ctx := t.Context()
	put := func(agent, id, content string) {
		t.Helper()
		op := commit.Op{ID: id, Memory: &memstore.Memory{ID: id, Content: content}}
		if err := p.Committer.Commit(engine.By(ctx, writer.Writer{Agent: agent}), []commit.Op{op}, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	doc := func(id string) string {
		v, err := p.Engine.Find(ctx, p.Engine.Kinds().Memories, id, true)
		if errors.Is(err, errs.ErrNotFound) {
			return ""
		}
		if err != nil {
			t.Fatal(err)
		}
		return string(v.Doc)
	}
	put("keeper", "a", "one")
	before := doc("a")
	p.Flush(t)
	put("run", "a", "two")
	put("run", "b", "new")
	put("run", "c", "new")
	put("other", "c", "theirs")
	theirs := doc("c")
	o := undo.Options{Run: "run"}
	plan, err := u.Undo(ctx, o)
	var conflicts *undo.Error
	if !errors.As(err, &conflicts) || !errors.Is(err, errs.ErrConflict) || len(plan.Conflicts) != 1 ||
		plan.Conflicts[0].ID != "c" || !errors.Is(plan.Conflicts[0].Err, undo.ErrBuiltUpon) || doc("b") == "" {
		t.Fatalf("%+v, %v", plan, err)
	}
	o.Partial = true
	if plan, err = u.Undo(ctx, o); err != nil || plan.Done != 2 || len(plan.Parts) != 1 {
		t.Fatalf("%+v, %v", plan, err)
	}
	if doc("a") != before || doc("b") != "" || doc("c") != theirs {
		t.Errorf("%s, %s, %s", doc("a"), doc("b"), doc("c"))
	}
	p.Flush(t)
	if plan, err = u.Undo(ctx, undo.Options{Position: plan.Parts[0]}); err != nil {
		t.Fatal(err)
	}
	var did []string
	for _, c := range plan.Changes {
		did = append(did, c.What+" "+c.ID)
	}
	if slices.Sort(did); !slices.Equal(did, []string{"restore a", "undelete b"}) {
		t.Errorf("the undo undone: %q", did)
	}
}
