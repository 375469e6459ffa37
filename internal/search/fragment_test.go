package search

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/varve-db/varve/internal/words/analyzer"
	"github.com/varve-db/varve/internal/words/query"
	"github.com/varve-db/varve/memstore"
)

func fragment(content, q string, size int) (text string, f *memstore.Fragment) {
	an := analyzer.New(analyzer.English)
	f = fragmentOf(content, query.Parse(q, an), an, size)
	at := 0
	for _, m := range f.Marks {
		text += f.Text[at:m[0]] + "[" + f.Text[m[0]:m[1]] + "]"
		at = m[1]
	}
	return text + f.Text[at:], f
}

func TestFragment(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("something else entirely, ", 40)
	for _, c := range []struct{ content, query, want string }{
		{"The answers to hunger", "answer", "The [answers] to hunger"},
		{"Cafés near the lake", "cafe LAKES", "[Cafés] near the [lake]"},
		{"a roman in Rome", "rom*", "a [roman] in [Rome]"},
		{"no such word", "ferry", "no such word"},
		{"to the lake", `"to the lake"`, "to the [lake]"},
		{"the ferry, not the train", "ferry -train", "the [ferry], not the train"},
		{"tag of another field", "tag:field", "tag of another field"},
		{"我们在东京吃饭", "东京", "我们在[东京]吃饭"},
		{"e\u0301cole and ÉCOLE", "ecole", "[e\u0301cole] and [ÉCOLE]"},
		{long + "the ferry went to Bellagio at nine. " + long, "ferry bellagio", "else entirely, the [ferry] went to [Bellagio] at nine. something else"},
		{"ferry " + long + "the ferry to Bellagio", "ferry bellagio", "else entirely, something else entirely, the [ferry] to [Bellagio]"},
		{long, "ferry", "something else entirely, something else entirely, something else"},
	} {
		if got, f := fragment(c.content, c.query, 70); got != c.want || !strings.HasPrefix(c.content[f.From:], f.Text) || f.Cut != (f.From+len(f.Text) < len(strings.TrimSpace(c.content))) {
			t.Errorf("%q in %.40q: %q at %d, cut %v; want %q", c.query, c.content, got, f.From, f.Cut, c.want)
		}
	}
}

// TestFragmentOfAnything verifies that a fragment is a piece of the content, is not longer than requested, has whole
// characters, and that its marks are in order.
func TestFragmentOfAnything(t *testing.T) {
	t.Parallel()
	piece := rapid.OneOf(rapid.SampledFrom([]string{"ferry", "Ferries", " ", "\n", "東", "京", "e\u0301", "\u200d", "\u0301", "lake,", "\xff", "x"}), rapid.StringN(0, 8, 20))
	rapid.Check(t, func(r *rapid.T) {
		content := strings.Join(rapid.SliceOfN(piece, 0, 60).Draw(r, "content"), rapid.SampledFrom([]string{"", " "}).Draw(r, "between"))
		q := rapid.SampledFrom([]string{"ferry lake", "東京", "f* 東", `"the lake" -ferry`, "tag:x", "-x"}).Draw(r, "query")
		size := rapid.IntRange(1, 80).Draw(r, "size")
		_, f := fragment(content, q, size)
		if !strings.HasPrefix(content[f.From:], f.Text) || len(f.Text) > size || utf8.ValidString(content) && !utf8.ValidString(f.Text) {
			r.Fatalf("%q at %d of %q", f.Text, f.From, content)
		}
		at := 0
		for _, m := range f.Marks {
			if m[0] < at || m[1] <= m[0] || m[1] > len(f.Text) {
				r.Fatal(f.Marks)
			}
			at = m[1]
		}
	})
}
