package text

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestSpans: the words at the spans of a text are those of the text, in order.
func TestSpans(t *testing.T) {
	t.Parallel()
	piece := rapid.OneOf(rapid.SampledFrom([]string{"ferry", "É", "e\u0301", "東", "京", "\u200d", "\u00ad", "\u0301", " ", ".", "\xff", "\xe6\x9d", "7", "ไ", "ー", "Ａ"}), rapid.String())
	words := func(b []byte) (list []string) {
		Each(b, nil, func(w []byte) { list = append(list, string(w)) }, func(pair []byte, at int) { list = append(list, string(pair[at:])) })
		return list
	}
	rapid.Check(t, func(r *rapid.T) {
		b := []byte(strings.Join(rapid.SliceOf(piece).Draw(r, "text"), ""))
		var got []string
		last := 0
		Spans(b, func(from, to int, alone bool) bool {
			if from < last || to <= from || to > len(b) {
				r.Fatal(from, to)
			}
			last = to
			got = append(got, words(b[from:to])...)
			return true
		})
		if want := words(b); !slices.Equal(got, want) {
			r.Fatalf("%q: %q, want %q", b, got, want)
		}
	})
}
