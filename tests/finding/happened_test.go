package finding

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
)

// TestHappened: Since and Until compare the time of the event, Created and Updated the times of the
// store; in a store of many memories, where the view of words omits memories of other times, as in a
// small one.
func TestHappened(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for _, n := range []int{100, 12_000} {
		st, err := varve.Open(t.Context(), t.TempDir(), &varve.Options{NoBackground: true})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		base := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
		id := func(i int) string { return fmt.Sprintf("m%05d", i) }
		memory := func(i int) varve.Memory {
			return varve.Memory{ID: id(i), Content: "lake", Timestamp: base.Add(time.Duration(i) * time.Hour),
				Embedding: []float32{1, float32(i)}}
		}
		asked, told := 0, 0
		times := storetest.Inner(st).Engine.Tune().Times
		storetest.Inner(st).Engine.Tune().Times = func(ctx context.Context, f *engine.Filters, most int) ([]string, bool,
			error) {
			ids, ok, err := times(ctx, f, most)
			if asked++; ok {
				told++
			}
			return ids, ok, err
		}
		_, err = st.PutAll(t.Context(), func(yield func(varve.Memory) bool) {
			for i := range n {
				if !yield(memory(i)) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		check := func(when string) {
			t.Helper()
			for _, c := range []struct {
				name     string
				from, to int // those that pass
				filters  []varve.Filter
			}{
				{"all", 0, n, nil},
				{"until", 0, 5, []varve.Filter{varve.Until(base.Add(5 * time.Hour))}},
				{"until, a bit later", 0, 6, []varve.Filter{varve.Until(base.Add(5*time.Hour + 1))}},
				{"since", n - 3, n, []varve.Filter{varve.Since(base.Add(time.Duration(n-3) * time.Hour))}},
				{"since, a bit later", n - 2, n, []varve.Filter{varve.Since(base.Add(time.Duration(n-3)*time.Hour + 1))}},
				{"bounds beyond all years", 0, n, []varve.Filter{varve.Since(time.Unix(-1<<60, 0)),
					varve.Until(time.Unix(1<<60, 0))}},
				{"beyond all years", 0, 0, []varve.Filter{varve.Since(time.Unix(1<<60, 0))}},
				{"two of each", 5, 7, []varve.Filter{varve.Since(base), varve.Since(base.Add(5 * time.Hour)),
					varve.Until(base.Add(7 * time.Hour)), varve.Until(base.Add(70 * time.Hour))}},
				{"created", 0, n, []varve.Filter{varve.Created(base.AddDate(5, 0, 0), time.Time{}),
					varve.Updated(base.AddDate(5, 0, 0), time.Time{})}},
				{"created long ago", 0, 0, []varve.Filter{varve.Created(time.Time{}, base.AddDate(5, 0, 0))}},
				{"updated long ago", 0, 0, []varve.Filter{varve.Updated(time.Time{}, base.AddDate(5, 0, 0)),
					varve.Updated(base, time.Time{})}},
			} {
				var have []string
				for m, err := range st.Memories(t.Context(), c.filters...) {
					if err != nil {
						t.Fatal(err)
					}
					have = append(have, m.ID)
				}
				var want []string
				for i := c.from; i < c.to; i++ {
					want = append(want, id(i))
				}
				if !slices.Equal(have, want) {
					t.Errorf("%d, %s, %s: %d memories (%.60q), want %d", n, when, c.name, len(have), have, len(want))
				}
				if k, err := st.Count(t.Context(), c.filters...); err != nil || k != int64(len(want)) {
					t.Errorf("%d, %s, %s: %d are counted, want %d: %v", n, when, c.name, k, len(want), err)
				}
				hits, err := st.Search(t.Context(), varve.Query{Text: "lake", Limit: n}, c.filters...)
				if err != nil || len(hits) != len(want) {
					t.Errorf("%d, %s, %s: %d are found, want %d: %v", n, when, c.name, len(hits), len(want), err)
				}
				asked, told = 0, 0
				hits, err = st.Search(t.Context(), varve.Query{Vector: []float32{1, 0}, Limit: n}, c.filters...)
				if err != nil || len(hits) != len(want) {
					t.Errorf("%d, %s, %s: %d are near, want %d: %v", n, when, c.name, len(hits), len(want), err)
				}
				// If there are many, the times are compared before any memory is read.
				if few := when == "in the index" && len(want) < n; n > 10_000 && len(c.filters) > 0 &&
					(asked == 0 || few && told == 0) {
					t.Errorf("%d, %s, %s: by their vectors all are looked at", n, when, c.name)
				}
			}
		}
		check("in the log")
		if err := st.Admin().Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("in the index")
		// The time of a memory is that of its newest version.
		m := memory(3)
		m.Timestamp = base.AddDate(-1, 0, 0)
		if _, err := st.Put(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if k, err := st.Count(t.Context(), varve.Until(base)); err != nil || k != 1 {
			t.Errorf("%d: %d happened before: %v", n, k, err)
		}
		if k, err := st.Count(t.Context(), varve.Since(base), varve.Until(base.Add(5*time.Hour))); err != nil || k != 4 {
			t.Errorf("%d: %d happened in the first hours: %v", n, k, err)
		}
	}
}

// TestWithTag: a tag is matched literally, even if a query would parse it as an expression.
func TestWithTag(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	st, err := varve.Open(t.Context(), t.TempDir(), &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	tags := []any{"plain", "with, comma", `"quoted"`, " spaces ", "a=b", `back\slash`, "line\nbreak", "\x7f", "é"}
	for id, m := range map[string]map[string]any{"all": {"tags": tags}, "one": {"tags": "plain"},
		"none": {"tag": "plain"}} {
		if _, err := st.Put(t.Context(), varve.Memory{ID: id, Content: id, Metadata: m}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tag := range tags {
		n, err := st.Count(t.Context(), varve.WithTag(tag.(string)))
		if want := int64(1); err != nil || tag != "plain" && n != want || tag == "plain" && n != 2 {
			t.Errorf("%q: %d, %v", tag, n, err)
		}
	}
	for _, tag := range []string{"", "with", "comma", "spaces", "quoted", "plain,"} {
		if n, err := st.Count(t.Context(), varve.WithTag(tag)); err != nil || n != 0 {
			t.Errorf("%q: %d, %v", tag, n, err)
		}
	}
}
