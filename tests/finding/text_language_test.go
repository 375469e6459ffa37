package finding

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// TestTextLanguage: another language of the words takes effect with the next flush, by whichever
// process; until then the previous words are used, also for memories that are put meanwhile.
func TestTextLanguage(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st, other := fixture.Open(t, dir, nil), fixture.Open(t, dir, nil)
	finds := func(st *varve.Store, text string, want ...string) {
		t.Helper()
		hits, err := st.Search(ctx, varve.Query{Text: text})
		var got []string
		for _, h := range hits {
			got = append(got, h.ID)
		}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	put := func(id, text string) {
		t.Helper()
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: text}); err != nil {
			t.Fatal(err)
		}
	}
	put("a", "alte Häuser")
	put("b", "the houses")
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	finds(st, "haus")
	finds(st, "house", "b")
	set := func(language string) error {
		return st.Admin().UpdateConfig(ctx, func(c *varve.Config) error { c.TextLanguage = language; return nil })
	}
	if err := set("klingon"); !errors.As(err, new(*varve.FieldError)) {
		t.Error(err)
	}
	if err := set("de"); err != nil {
		t.Fatal(err)
	}
	put("c", "ein Häuschen, zwei Hause")
	finds(st, "hause", "c")
	if err := other.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	for _, st := range []*varve.Store{st, other} {
		finds(st, "haus", "a", "c")
	}
	put("d", "Häusern")
	finds(st, "haus", "d", "a", "c")
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil || f.Severity != varve.SeverityInfo {
			t.Error(f, err)
		}
	}
	if err := set(""); err != nil {
		t.Fatal(err)
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	finds(st, "house", "b")
	finds(st, "haus", "c") // that is how English has it
	// A flush that has nothing to write applies it as well.
	if err := set("de"); err != nil {
		t.Fatal(err)
	}
	finds(st, "haus", "c")
	if err := other.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	for _, st := range []*varve.Store{other, st} {
		finds(st, "haus", "d", "a", "c")
	}
}
