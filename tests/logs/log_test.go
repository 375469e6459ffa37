package logs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/wal"
)

// The commits, newest first, with their changes and causes.
func TestLog(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "s")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	o := writerOptions("one")
	o.Clock = func() time.Time { now = now.Add(time.Millisecond); return now }
	st := fixture.Open(t, dir, o)
	two := fixture.Open(t, dir, writerOptions("two"))
	s1 := map[string]any{"session_id": "s1"}
	if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "x", Metadata: s1}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "b", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := two.Put(ctx, varve.Memory{ID: "a", Content: "y", Metadata: s1}); err != nil {
		t.Fatal(err)
	}
	var batch varve.Batch
	batch.Put(varve.Memory{ID: "c", Content: "x"})
	batch.Delete("b")
	if err := st.Apply(ctx, &batch); err != nil {
		t.Fatal(err)
	}
	if err := two.Delete(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	told := func(o varve.LogOptions) (list []string) {
		t.Helper()
		for c, err := range st.Log(ctx, o) {
			if err != nil {
				t.Fatal(err)
			}
			var changes []string
			for _, ch := range c.Changes {
				changes = append(changes, ch.What+" "+ch.ID)
			}
			list = append(list, c.Writer.Agent+": "+strings.Join(changes, ", "))
		}
		return list
	}
	all := []string{"two: deleted a", "one: created c, deleted b", "two: changed a", "one: created b", "one: created a"}
	session, id := "s1", "b"
	for name, c := range map[string]struct {
		o    varve.LogOptions
		want []string
	}{
		"all":     {varve.LogOptions{}, all},
		"by":      {varve.LogOptions{By: "two"}, []string{all[0], all[2]}},
		"number":  {varve.LogOptions{By: "1"}, []string{all[1], all[3], all[4]}},
		"deleted": {varve.LogOptions{Deleted: true}, []string{all[0], "one: deleted b"}},
		"session": {varve.LogOptions{Session: &session}, []string{all[0], all[2], all[4]}},
		"id":      {varve.LogOptions{ID: &id}, []string{"one: deleted b", all[3]}},
	} {
		for _, when := range []string{"in the log", "compacted"} {
			if got := told(c.o); !slices.Equal(got, c.want) {
				t.Errorf("%s, %s: %q, want %q", name, when, got, c.want)
			}
			if err := st.Admin().Compact(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Page by page, over several segments.
	fill(t, st, 300)
	whole := told(varve.LogOptions{})
	var paged []string
	for before := uint64(0); ; {
		n := 0
		for c, err := range st.Log(ctx, varve.LogOptions{Before: before}) {
			if err != nil {
				t.Fatal(err)
			}
			paged = append(paged, fmt.Sprint(c.LSN))
			before = c.LSN
			if n++; n == 7 {
				break
			}
		}
		if n < 7 {
			break
		}
	}
	if len(paged) != len(whole) || len(whole) != 305 {
		t.Errorf("%d commits by pages, %d at once", len(paged), len(whole))
	}
	if f := storetest.Inner(st).Engine.Log().Features(); f&wal.FeatureWriters == 0 {
		t.Error(f)
	}
}
