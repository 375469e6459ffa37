package questions

import (
	"slices"
	"testing"

	"github.com/varve-db/varve"
)

// The minimum figures are the results when the questions were written (2026-11-25). A change that lowers
// some of them for a reason changes them here, in a commit that names the reason.
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
	st := filled(t, memories)
	for _, language := range []string{"", "none"} {
		if language != "" {
			err = st.Admin().UpdateConfig(t.Context(), func(c *varve.Config) error { c.TextLanguage = language; return nil })
			if err == nil {
				err = st.Flush(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		found, err := Ask(list, func(text string) (ids []string, err error) {
			hits, err := st.Search(t.Context(), varve.Query{Text: text, Limit: Top})
			for _, h := range hits {
				ids = append(ids, h.ID)
			}
			return ids, err
		})
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

func filled(t *testing.T, memories []varve.Memory) *varve.Store {
	st, err := varve.Open(t.Context(), t.TempDir(), &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err = st.PutAll(t.Context(), slices.Values(memories)); err == nil {
		err = st.Flush(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return st
}
