package questions

import (
	"slices"
	"testing"

	"github.com/varve-db/varve"
)

// The floors are what was found when the questions were written (2026-11-25). A change that loses some
// for a reason lowers them in a commit that names the reason.
var floors = map[string]struct {
	found int
	mrr   float64
}{
	"notes": {36, 0.87}, "facts": {35, 0.83}, "code": {35, 0.84}, "german": {24, 0.49}, "chinese": {36, 0.82}, "": {166, 0.77},
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	memories, list := Load(1)
	if len(list) != 200 {
		t.Fatalf("%d questions", len(list))
	}
	scan, err := Ask(list, Scan(memories))
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range []string{"", "none"} {
		found, err := Ask(list, index(t, memories, language))
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range append(slices.Clone(Kinds), "") {
			f, before, least := found[kind], scan[kind], floors[kind]
			t.Logf("language %q, kind %q: %d of %d, MRR %.3f; by exact words alone %d, %.3f", language, kind, f.Found, f.Asked, f.MRR, before.Found, before.MRR)
			if f.Found < before.Found || (language == "" || kind == "") && f.MRR < before.MRR {
				t.Errorf("language %q, kind %q: fewer are found, or further down, than by exact words alone", language, kind)
			}
			if language == "" && (f.Found < least.found || f.MRR < least.mrr) {
				t.Errorf("kind %q: the floor is %d, MRR %.2f; not found: %q", kind, least.found, least.mrr, f.Missed)
			}
		}
	}
}

// index is a store's search by words.
func index(t *testing.T, memories []varve.Memory, language string) func(string) ([]string, error) {
	ctx := t.Context()
	st, err := varve.Open(ctx, t.TempDir(), &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	if language != "" {
		err = st.Admin().UpdateConfig(ctx, func(c *varve.Config) error { c.TextLanguage = language; return nil })
	}
	if err == nil {
		_, err = st.PutAll(ctx, slices.Values(memories))
	}
	if err == nil {
		err = st.Flush(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) (ids []string, err error) {
		hits, err := st.Search(ctx, varve.Query{Text: text, Limit: Top})
		for _, h := range hits {
			ids = append(ids, h.ID)
		}
		return ids, err
	}
}
