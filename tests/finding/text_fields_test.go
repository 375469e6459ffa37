package finding

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// TestTextFields: changed members of the metadata are searched after the next flush, by any process;
// until then the previous ones are used, also for memories that are put meanwhile.
func TestTextFields(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st, other := fixture.Open(t, dir, nil), fixture.Open(t, dir, nil)
	finds := func(st *varve.Store, text string, want ...string) {
		t.Helper()
		hits, err := st.Search(ctx, varve.Query{Text: text, Explain: true})
		var got []string
		for _, h := range hits {
			got = append(got, h.ID)
		}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	put := func(id string) {
		t.Helper()
		if _, err := st.Put(ctx,
			varve.Memory{ID: id, Content: "lunch",
				Metadata: map[string]any{"from": "Anna", "speaker": "Ben", "labels": []any{"deep water", "sea"}}}); err != nil {
			t.Fatal(err)
		}
	}
	put("a")
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	set := func(fields map[string][]string) error {
		return st.Admin().UpdateConfig(ctx,
			func(c *varve.Config) error { c.Text = &varve.TextConfig{Fields: fields}; return nil })
	}
	for _, bad := range []map[string][]string{{"content": {"x"}}, {"place": {"x"}}, {"tag": {"a b"}},
		{"tag": {"x"}, "key": {"x"}}, {"tag": {""}}} {
		if err := set(bad); !errors.As(err, new(*varve.FieldError)) || !strings.Contains(err.Error(), "config.json text") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	finds(st, "anna")
	finds(st, "speaker:ben", "a")
	if err := set(map[string][]string{"speaker": {"from"}, "tag": {"labels"}}); err != nil {
		t.Fatal(err)
	}
	put("b")
	finds(st, "anna")
	finds(st, "speaker:ben", "a", "b")
	if err := other.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	for _, st := range []*varve.Store{st, other} {
		finds(st, "speaker:anna", "a", "b")
		finds(st, `tag:"deep water"`, "a", "b")
		finds(st, "ben")
	}
	put("c")
	finds(st, `tag:"deep water" anna`, "a", "b", "c")
	hits, err := st.Search(ctx, varve.Query{Text: "anna", Explain: true, Limit: 1})
	if err != nil || len(hits) != 1 || len(hits[0].Explanation.Words) != 1 ||
		fmt.Sprint(hits[0].Explanation.Words[0].Fields) != "[speaker]" {
		t.Error(hits, err)
	}
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil || f.Severity != varve.SeverityInfo {
			t.Error(f, err)
		}
	}
	third := fixture.Open(t, dir, nil)
	finds(third, "anna", "a", "b", "c")
	if err := set(nil); err != nil {
		t.Fatal(err)
	}
	if err := third.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	finds(third, "ben", "a", "b", "c")
	finds(third, "anna")
}
