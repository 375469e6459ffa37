package notes

import (
	"context"
	"slices"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// TestCommits reads the commits of notes back. A sidecar is not shown as a note: what changes the properties of a note
// changes that note, and a rename, which writes both, is one deletion and one creation.
func TestCommits(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), nil)
	ns := st.Notes()
	write(t, st, "a.md", "one")
	_, err := ns.SetProperties(ctx, "a.md", varve.NoteProperties{Tags: []string{"x"}})
	must(t, err)
	_, err = ns.Rename(ctx, "a.md", "b.md")
	must(t, err)
	_, err = ns.SetProperties(ctx, "b.md", varve.NoteProperties{})
	must(t, err)
	must(t, ns.Delete(ctx, "b.md"))
	want := []string{"created a.md", "changed a.md", "deleted a.md", "created b.md", "changed b.md", "deleted b.md"}

	var got, named []string
	id, renamed := "a.md", uint64(0)
	for _, o := range []varve.LogOptions{{}, {ID: &id}, {Deleted: true}} {
		var list []string
		for c, err := range st.Log(ctx, o) {
			must(t, err)
			if len(c.Changes) == 2 {
				renamed = c.LSN
			}
			for _, ch := range slices.Backward(c.Changes) {
				list = append(list, ch.What+" "+ch.ID)
			}
		}
		slices.Reverse(list)
		switch {
		case o.ID != nil:
			named = list
		case o.Deleted:
			if w := []string{"deleted a.md", "deleted b.md"}; !slices.Equal(list, w) {
				t.Errorf("deletions: %q, want %q", list, w)
			}
		default:
			got = list
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("log: %q, want %q", got, want)
	}
	if w := want[:3]; !slices.Equal(named, w) {
		t.Errorf("log of %s: %q, want %q", id, named, w)
	}

	plan, err := st.PlanUndo(ctx, varve.UndoOptions{Position: renamed})
	must(t, err)
	for _, c := range plan.Conflicts {
		if c.ID != "a.md" && c.ID != "b.md" {
			t.Errorf("the plan of an undo names %q", c.ID)
		}
	}

	var seen []string
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for c, err := range st.Watch(ctx, 0) {
		if err != nil {
			break
		}
		what := "put"
		switch {
		case c.Deleted:
			what = "deleted"
		case c.Document == nil:
			what = "properties of"
		}
		if seen = append(seen, what+" "+c.ID); c.Deleted && c.ID == "b.md" {
			if c.More {
				t.Error("the last change of a commit announces one more")
			}
			cancel()
		}
	}
	want = []string{"put a.md", "properties of a.md", "deleted a.md", "put b.md", "properties of b.md", "deleted b.md"}
	if !slices.Equal(seen, want) {
		t.Errorf("watch: %q, want %q", seen, want)
	}
}
