package finding

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/varve-db/varve"
)

// A query with words and a vector ranks the best of both together.
func TestSearchByBoth(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st, err := varve.Open(ctx, t.TempDir(), &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for id, m := range map[string]varve.Memory{
		"both":    {Content: "the lighthouse at the harbour", Embedding: []float32{1, 0.1, 0}},
		"words":   {Content: "a lighthouse", Embedding: []float32{0, 0, 1}},
		"meaning": {Content: "a tower with a lamp", Embedding: []float32{1, 0, 0}},
		"neither": {Content: "bread and butter", Embedding: []float32{0, 1, 0}},
		"without": {Content: "no vector, one lighthouse and much more text in it than the others have"},
	} {
		m.ID = id
		if _, err := st.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	check := func(q varve.Query, want string, filters ...varve.Filter) []varve.Hit {
		t.Helper()
		hits, err := st.Search(ctx, q, filters...)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, h := range hits {
			ids = append(ids, h.ID)
			share := q.Share
			if share == 0 {
				share = 0.25
			}
			if sum := (h.Words + share*h.Vector) / (1 + share); math.Abs(sum-h.Score) > 1e-12 || h.Score < 0 || h.Score > 1 {
				t.Errorf("%s: score %v of words %v and vector %v", h.ID, h.Score, h.Words, h.Vector)
			}
		}
		if got := fmt.Sprint(ids); got != want {
			t.Errorf("%+v: %s, want %s", q, got, want)
		}
		return hits
	}
	v := []float32{1, 0, 0}
	q := varve.Query{Text: "lighthouse", Vector: v, Limit: 3}
	hits := check(q, "[both words without]")
	if hits[0].Vector < 0.9 || hits[2].Vector != 0 || hits[2].Words == 0 {
		t.Errorf("%+v", hits)
	}
	for _, flushed := range []bool{false, true} {
		if flushed {
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
		check(varve.Query{Text: "lighthouse", Vector: v, Share: 1000, Limit: 2}, "[meaning both]")
		check(varve.Query{Text: "lighthouse", Vector: v, Offset: 1, Limit: 2}, "[words without]")
		check(varve.Query{Text: "lighthouse", Vector: v}, "[words]", varve.WithPrefix("words"))
		check(varve.Query{Text: "nothing", Vector: v, Limit: 2}, "[meaning both]")
		check(varve.Query{Text: "lighthouse", Vector: v, MinScore: 0.85}, "[both]")
	}
	for what, q := range map[string]varve.Query{
		"three":    {Text: "x", Vector: v, Like: "both"},
		"two":      {Text: "x", Like: "both"},
		"share":    {Text: "x", Share: 1},
		"rarest":   {Vector: v, MaxRareTerms: 3},
		"no words": {Text: "x", MaxRareTerms: -1},
		"too many": {Text: "x", MaxRareTerms: 1025},
		"negative": {Text: "x", Vector: v, Share: -1},
		"NaN":      {Text: "x", Vector: v, Share: math.NaN()},
		"infinite": {Text: "x", Vector: v, Share: math.Inf(1)},
	} {
		if _, err := st.Search(ctx, q); !errors.Is(err, varve.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := st.Search(ctx, varve.Query{Text: "x", Vector: []float32{1}}); !errors.Is(err, varve.ErrDimension) {
		t.Errorf("another dimension: %v", err)
	}
	if _, err := st.Assemblies().Search(ctx, varve.Query{Text: "x", Vector: v}); !errors.Is(err, varve.ErrInvalid) {
		t.Errorf("assemblies: %v", err)
	}
}
