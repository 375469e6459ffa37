package finding

import (
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// TestSearchEither: a hit has one of the alternatives between which OR is, whatever else it contains; a
// phrase can be an alternative.
func TestSearchEither(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, t.TempDir(), nil)
	tagged := func(tags ...any) map[string]any { return map[string]any{"tags": tags} }
	for _, m := range []varve.Memory{
		{ID: "office", Content: "the new york office"},
		{ID: "order", Content: "york is old, and nothing in it is new"},
		{ID: "paris", Content: "a hotel in paris", Metadata: tagged("far")},
		{ID: "rome", Content: "a hotel in rome", Metadata: tagged("near")},
		{ID: "tent", Content: "no hotel at all", Metadata: tagged("third")},
	} {
		if _, err := st.Put(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for q, want := range map[string]string{
		`"new york" OR paris`:              "office paris",
		`paris OR "new york"`:              "office paris",
		`"new york" OR "york new" OR x`:    "office",
		"hotel tag:far OR tag:near":        "paris rome",
		"hotel tag:far OR tag:nothing":     "paris",
		"hotel tag:far OR":                 "paris",
		"+hotel OR +office":                "office paris rome tent",
		"+hotel OR office tag:third":       "tent",
		"hotel tag:far OR tag:near -rome":  "paris",
		"hotel tag:far OR -rome":           "paris",
		"paris OR rome":                    "paris rome",
		"tag:nowhere OR tag:nothing hotel": "order paris rome tent", // no memory has these tags, so they are words
	} {
		for _, when := range []string{"in the log", "in the files"} {
			hits, err := st.Search(t.Context(), varve.Query{Text: q, Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, h := range hits {
				ids = append(ids, h.ID)
			}
			if slices.Sort(ids); strings.Join(ids, " ") != want {
				t.Errorf("%s, %s: %q, want %q", q, when, ids, want)
			}
			if err := st.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestSearchMustBeThere: a required word may be anywhere in a memory, even if another memory has it as a
// name.
func TestSearchMustBeThere(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, t.TempDir(), nil)
	for _, m := range []varve.Memory{
		{ID: "by", Content: "we went to the lake", Metadata: map[string]any{"speaker": "Anna"}},
		{ID: "of", Content: "the lake where Anna swims"},
		{ID: "none", Content: "the lake is cold"},
	} {
		if _, err := st.Put(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	hits, err := st.Search(t.Context(), varve.Query{Text: "+anna lake", Limit: 10})
	if err != nil || len(hits) != 2 || hits[0].ID == "none" || hits[1].ID == "none" {
		t.Errorf("%+v, %v", hits, err)
	}
}
