package repairs

import (
	"errors"
	"testing"

	"github.com/varve-db/varve"
)

// Lines returns what the memories have, from the index and from the log, and refuses filters that need
// the documents.
func TestLines(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st, err := varve.Open(ctx, t.TempDir(), &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, id := range []string{"b", "a", "flushed"} {
		if _, err := st.Put(ctx,
			varve.Memory{ID: id, Content: "x", QuickRecalScore: float64(len(id)),
				Metadata: map[string]any{"session_id": "s" + id}}); err != nil {
			t.Fatal(err)
		}
		if id == "flushed" {
			continue
		}
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "g", Name: "g"}); err != nil {
		t.Fatal(err)
	}
	var want []varve.Line
	for m, err := range st.Memories(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		raw, err := st.Admin().GetRaw(ctx, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, varve.Line{
			ID: m.ID, Version: m.Version, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt, ExpiresAt: m.ExpiresAt,
			Score: m.QuickRecalScore, Session: m.Session(), Size: int64(len(raw)),
		})
	}
	n := 0
	for l, err := range st.Admin().Lines(ctx) {
		if err != nil || n >= len(want) || l != want[n] {
			t.Errorf("%+v, %v, want %+v", l, err, want[min(n, len(want)-1)])
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d lines", n)
	}
	for l, err := range st.Admin().Lines(ctx, varve.WithPrefix("f"), varve.InSession("sflushed")) {
		if err != nil || l.ID != "flushed" {
			t.Errorf("%+v, %v", l, err)
		}
		n++
	}
	for l, err := range st.Assemblies().Lines(ctx) {
		if err != nil || l.ID != "g" {
			t.Errorf("%+v, %v", l, err)
		}
		n++
	}
	if n != 5 {
		t.Errorf("%d lines", n)
	}
	for _, err := range st.Admin().Lines(ctx, varve.InCategory("c")) {
		if !errors.Is(err, varve.ErrInvalid) {
			t.Errorf("%v", err)
		}
		n++
	}
	if n != 6 {
		t.Error("a category is ignored")
	}
}
