package query

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/words/analyzer"
)

// FuzzFindsItself: a text is found by each of its words, as it stands, in either normal form, and in upper and lower
// case, where the word must be there.
func FuzzFindsItself(f *testing.F) {
	f.Add("Straße ﬁn Å ǅ İstanbul ΐ ᾳ ŉ")
	f.Add("한국 말 ガギ ｶﾞ Café é́ กำ 3½ №5 2.10.3 C++ don't R&D getUserById 👩🏽‍💻")
	f.Fuzz(func(t *testing.T, s string) {
		if why := notItself(s, itself); why != "" {
			t.Fatalf("%q: %s", s, why)
		}
	})
}

// TestFindsItself is FuzzFindsItself for random texts of all scripts.
func TestFindsItself(t *testing.T) {
	t.Parallel()
	seed := proofs.Seed(t, 0)
	r := rand.New(rand.NewPCG(seed, 55))
	var tables []*unicode.RangeTable
	for _, script := range []string{"Latin", "Greek", "Cyrillic", "Armenian", "Georgian", "Cherokee", "Hebrew", "Arabic",
		"Devanagari", "Bengali", "Tamil", "Thai", "Lao", "Hangul", "Hiragana", "Katakana", "Han", "Inherited", "Common",
		"Deseret", "Ethiopic", "Khmer", "Tibetan"} {
		tables = append(tables, unicode.Scripts[script])
	}
	one := func() rune {
		table := tables[r.IntN(len(tables))]
		if len(table.R32) > 0 && r.IntN(3) == 0 {
			x := table.R32[r.IntN(len(table.R32))]
			return rune(x.Lo + r.Uint32N((x.Hi-x.Lo)/x.Stride+1)*x.Stride)
		}
		if len(table.R16) == 0 {
			return 'x'
		}
		x := table.R16[r.IntN(len(table.R16))]
		return rune(uint32(x.Lo) + r.Uint32N(uint32(x.Hi-x.Lo)/uint32(x.Stride)+1)*uint32(x.Stride))
	}
	for range 4000 {
		var b strings.Builder
		for range r.IntN(12) {
			switch r.IntN(4) {
			case 0:
				b.WriteString([]string{" ", "a", "e\u0301", "I", "ß", "'t", "++", "2.10", "\u0301\u0327", "\u200d",
					"Ab"}[r.IntN(11)])
			default:
				b.WriteRune(one())
			}
		}
		if why := notItself(b.String(), itself); why != "" {
			t.Fatalf("seed %d: %q: %s", seed, b.String(), why)
		}
	}
}

// TestFindsItselfLong: long words and many marks are found, in time in proportion to them.
func TestFindsItselfLong(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	marks := strings.Repeat("\u0301\u0327\u0323", 334)
	for what, s := range map[string]string{
		"1,000 marks":                       "x" + marks + "y e" + marks,
		"1,000 marks in another script":     "क" + strings.Repeat("\u093c\u0951\u094d", 334),
		"marks alone":                       marks,
		"an identifier of 10,000":           strings.Repeat("getUserById", 910),
		"one of capital letters":            strings.Repeat("aB", 5000),
		"numbers":                           strings.Repeat("2.", 5000) + "3",
		"a word of 10,000 in other forms":   strings.Repeat("ße\u0301", 2000),
		"emoji joined":                      strings.Repeat("👩\u200d", 1000) + "👩",
		"flags":                             strings.Repeat("🇩🇪", 1000) + "🇩",
		"without spaces":                    strings.Repeat("東京か\u3099", 400),
		"syllables taken apart":             norm.NFD.String(strings.Repeat("한국말", 300)),
		"mixed normal forms":                "é e\u0301 한 " + norm.NFD.String("한") + " Å A\u030a \u212b",
		"what grows when it loses its case": strings.Repeat("İΐᾳﬃŉ ", 300),
	} {
		soon(t, what, func() {
			if why := notItself(s, itself[:2]); why != "" {
				t.Errorf("%s: %s", what, why)
			}
		})
	}
}

// TestMarksInAnyOrder: a letter with more marks than norm takes at once is the same letter with its marks in
// another order
// that is canonically equal.
func TestMarksInAnyOrder(t *testing.T) {
	t.Parallel()
	marks := strings.Repeat("\u0951", 40)
	one, other := "क"+marks+"\u093c", "क\u093c"+marks
	for _, an := range itself {
		an := an.Again()
		if !has(newTexts([]Text{{Content, one}}, an), other) || !has(newTexts([]Text{{Content, other}}, an), one) {
			t.Errorf("%s: not the same", an.Language())
		}
	}
}

var itself = []*analyzer.Analyzer{analyzer.New(analyzer.None), analyzer.New(analyzer.English), analyzer.New("de"),
	analyzer.New("tr")}

// notItself says by which word a text is not found; "": by each it is.
func notItself(s string, ans []*analyzer.Analyzer) string {
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return ""
	}
	upper, lower := cases.Upper(language.Und), cases.Lower(language.Und)
	forms := []func(string) string{func(s string) string { return s }, norm.NFC.String, norm.NFD.String, strings.ToUpper,
		strings.ToLower, upper.String, lower.String, func(s string) string { return norm.NFD.String(upper.String(s)) }}
	var words []string
	itself[0].Again().Tokens([]byte(s), func(t analyzer.Token) {
		if t.Kind != analyzer.Part && t.Kind != analyzer.Shorter && len(words) < 50 {
			words = append(words, s[t.From:t.To])
		}
	})
	pieces := len(words)
	words = append(words, strings.Fields(s)...)
	for _, an := range ans {
		an := an.Again()
		t := newTexts([]Text{{Content, s}}, an)
		for n, w := range words[:min(len(words), 100)] {
			if n < pieces && !has(t, w) {
				continue // of a character that is several letters, of which this one is one
			}
			for i, form := range forms {
				f := form(w)
				if strings.ContainsAny(f, `"`) {
					continue
				}
				if !has(t, f) {
					return fmt.Sprintf("%s: not found by form %d of %q, %q", an.Language(), i, w, f)
				}
			}
		}
	}
	return ""
}

// has reports whether a text has all words that must be there where another one must.
func has(t *texts, s string) bool {
	it := item{text: s, fields: AllFields, must: true}
	for _, w := range it.words(t.an, true) {
		if !t.hasWord(&w) {
			return false
		}
	}
	return true
}
