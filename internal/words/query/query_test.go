package query

import (
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve/internal/words/analyzer"
)

// plainTerms are the terms of a text that no condition is about.
func plainTerms(s string, an *analyzer.Analyzer) (terms []string) {
	for _, t := range termsOf(s, an) {
		if !analyzer.Common(t.text) {
			terms = append(terms, t.text)
		}
	}
	return terms
}

// TestQueryTerms: of scripts without spaces a query has the pairs, and a character that has none.
func TestQueryTerms(t *testing.T) {
	for s, want := range map[string]string{
		"":              "",
		"!":             "",
		"a b A":         "a b a",
		"東京都":           "東京 京都",
		"東":             "東",
		"東 京":           "東 京",
		"x東y":           "x 東 y",
		"東京 x 京":        "東京 x 京",
		"word":          "word",
		"一二 三 四五 six 七": "一二 三 四五 six 七",
		"Café d'été":    "cafe d ete",
		"กำ":            "กํา",
	} {
		if got := plainTerms(s, analyzer.New(analyzer.None)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q has %q, want %q", s, got, want)
		}
	}
}

// TestEnglish: stems, no words that are in every text, no accents.
func TestEnglish(t *testing.T) {
	for s, want := range map[string]string{
		"The answers of Caroline's café": "answer carolin s cafe",
		"walking, walked; WALKS":         "walk walk walk",
		"who is what":                    "",
		"mp3 x2":                         "mp3 x2",
	} {
		if got := plainTerms(s, analyzer.New(analyzer.English)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q has %q, want %q", s, got, want)
		}
	}
}

// TestGrammar: what a query looks for, as it is read.
func TestGrammar(t *testing.T) {
	show := func(q *Query) string {
		var out []string
		for _, w := range q.All {
			s := w.Term
			if w.Prefix {
				s += "*"
			}
			if w.Fields != AllFields {
				s += "@"
			}
			if w.Either {
				s = "?" + s
			}
			if w.Must {
				s = "+" + s
			}
			if w.Not {
				s = "-" + s
			}
			out = append(out, s)
		}
		for _, p := range q.phrases {
			s := strings.Join(p.terms, "_")
			if p.not {
				s = "-" + s
			}
			out = append(out, s)
		}
		for _, g := range q.Either {
			var members []string
			for _, m := range g {
				s := ""
				for _, w := range m.Words {
					s += q.All[w].Term
				}
				if m.phrase != nil {
					s = strings.Join(m.phrase.terms, "_")
				}
				members = append(members, s)
			}
			out = append(out, strings.Join(members, "|"))
		}
		return strings.Join(out, " ")
	}
	for s, want := range map[string]string{
		"rome trip rome":                "rome trip",
		`"new york" trip`:               "+new +york trip new_york",
		"rom* +lake -boat":              "rom* +lake -boat",
		"tag:travel beach":              "+travel@ beach",
		`-tag:"old town" x`:             "x -old_town",
		"tag:a1 OR tag:b1":              "?a1@ ?b1@ a1|b1",
		"x tag:a1 OR tag:b1 OR y z":     "x ?a1@ ?b1@ ?y z a1|b1|y",
		"tag:a1 OR OR tag:b1 OR":        "?a1@ ?b1@ a1|b1",
		"OR tag:a1 OR -old OR !":        "-old a1@",
		"tag:a1 OR -old":                "-old +a1@",
		"tag:a1 OR tag:a1 OR tag:b1":    "?a1@ ?b1@ a1|b1",
		"rome OR paris":                 "rome paris",
		"+rome OR well-known":           "?rome ?well ?known rome|wellknown",
		`"new york" OR paris x`:         "?new ?york ?paris x new_york|paris",
		`+paris "new york" OR paris`:    "+?paris ?new ?york new_york|paris",
		"http://x.org note:later":       "http x org note later",
		`"unbalanced quote`:             "unbalanced quote",
		"- + * : \" ' OR":               "",
		"well-known -":                  "well known",
		"speaker:\"Anna Bert\" OR Rome": "?anna@ ?bert@ ?rome anna_bert|rome",
	} {
		if got := show(Parse(s, analyzer.New(analyzer.None))); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}

// TestHolds: of documents that have the words of a query, those that have its phrases and one of what OR
// stands between.
func TestHolds(t *testing.T) {
	an := analyzer.New(analyzer.English)
	texts := []Text{{Content, "The new york office of Anna moved to the lakes"}, {Name, "Bert Meyer"}}
	for s, want := range map[string]bool{
		`"new york"`:                                 true,
		`"york new"`:                                 false,
		`-"new york"`:                                false,
		`-"york new"`:                                true,
		`"york new" OR paris`:                        false,
		`"york new" OR lake`:                         true,
		`"york new" OR lak*`:                         true,
		`"york new" OR "new york"`:                   true,
		`"york new" OR speaker:bert`:                 true,
		`"york new" OR content:bert`:                 false,
		`speaker:"meyer bert" OR speaker:"new york"`: false,
		`"york new" OR lake "bert meyer" OR x`:       true,
		`"york new" OR lake "meyer bert" OR x`:       false,
	} {
		if q := Parse(s, an); q.Holds(texts, an) != want || !q.Phrases() {
			t.Errorf("%s: %v", s, !want)
		}
	}
}
