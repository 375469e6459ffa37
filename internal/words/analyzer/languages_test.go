package analyzer

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func terms(a *Analyzer, s string) string {
	var all []string
	a.Each([]byte(s), func(term []byte, _ bool) { all = append(all, string(term)) })
	return strings.Join(all, " ")
}

func TestLanguages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ language, in, want string }{
		{"en", "The houses of Café", "\x00the hous \x00of cafe"},
		{"en", "Å is an island, Thé a tea", "å \x00is \x00an island thé \x00a tea"},
		{"en", "STRASSE Straße straße", "strass strass strass"},
		{"none", "ﬁn ｶﾞ か\u3099 \u1112\u1161\u11ab", "fin ガ が 한"},
		{"none", "C++ c# 2.10.3 v2.10 R&D", "c c++ c c# 2 10 3 2.10 2.10.3 v2 10 2.10 r d r&d"},
		{"en", "don't I'm we'll", "don t dont \x00i m im \x00we ll"},
		{"en", "getUserById HTTPServer IDs", "getuserbyid httpserver id get user id http server"},
		{"none", "👩🏽\u200d💻 ❤️ 🇩🇪", "👩 💻 👩\u200d💻 ❤ 🇩🇪"},
		{"none", "10² m² 3½ №5 ㎏", "10 2 m2 3 1 2 no 5 kg"},
		{"none", "The Häuser", "the hauser"},
		{"de", "Häuser HAUS Häusern", "haus haus haus"},
		{"de", "Ha\u0308user straße", "haus strass"},
		{"fr", "continuellement continuer", "continuel continu"},
		{"ru", "книгами книга", "книг книг"},
		{"es", "canciones canción", "cancion cancion"},
		{"de", "東京 7up", "東 京 東京 7up"},
	} {
		if got := terms(New(c.language), c.in); got != c.want {
			t.Errorf("%s: %q: %q, want %q", c.language, c.in, got, c.want)
		}
	}
	if got := terms(NewOf("en", FirstTerms), "The Straße, C++ don't Å 2.10"); got != "straße c don t 2 10" {
		t.Errorf("in the first version: %q", got)
	}
	prints := map[uint64]bool{}
	for _, language := range Languages() {
		prints[New(language).Print()] = true
	}
	if len(prints) != len(Languages()) {
		t.Error(prints)
	}
}

// TestStemAnything: no text makes a stemmer fail, and a term is text that is not too long.
func TestStemAnything(t *testing.T) {
	t.Parallel()
	all := map[string]*Analyzer{}
	for _, language := range Languages() {
		all[language] = New(language)
	}
	piece := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zäöüßéèçñåøœ]{1,20}`), rapid.StringMatching(`[а-яё]{1,20}`), rapid.StringMatching(`[\x{0600}-\x{06ff}\x{0b80}-\x{0bff}]{1,20}`))
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOf(piece).Draw(r, "text"), " ")
		for language, a := range all {
			a.Each([]byte(text), func(term []byte, _ bool) {
				if len(term) == 0 || len(term) > MostTerm || utf8.ValidString(text) && !utf8.Valid(term) || bytes.ContainsRune(term, ' ') {
					r.Fatalf("%s: %q", language, term)
				}
			})
		}
	})
}

// A word is what it was when its term is known, and what looks it up by the word relies on that.
func TestTermLeavesTheWord(t *testing.T) {
	for _, language := range Languages() {
		an := New(language)
		for _, w := range []string{"cafe\u0301", "e\u0301e\u0301", "\u0301", "i\u0307s", "й", "и\u0306и", "walking", "ά", "가", "ﬁ\u0301x"} {
			b := []byte(w)
			if of := an.Term(b); string(b) != w {
				t.Errorf("%s: %q is %q behind %q", language, w, b, of)
			}
		}
	}
}
