package text

import (
	"slices"
	"testing"
	"unicode/utf8"
)

type list []string

func (l *list) word(w []byte)  { *l = append(*l, string(w)) }
func (l *list) ascii(w []byte) { *l = append(*l, string(folded(nil, w))) }
func (l *list) char(pair []byte, at int) {
	*l = append(*l, string(pair[at:]))
	if at > 0 {
		*l = append(*l, string(pair))
	}
}

func words(s string) []string {
	var l list
	tokenise([]byte(s), &l, nil)
	return l
}

func TestWords(t *testing.T) {
	for s, want := range map[string][]string{
		"":                         nil,
		" .,-—!😀":                  nil,
		"Prefers SHORT answers.":   {"prefers", "short", "answers"},
		"Caroline's snake_case":    {"caroline", "s", "snake", "case"},
		"gpt4 3.14":                {"gpt4", "3", "14"},
		"ΟΔΟΣ οδός οδος":           {"οδοσ", "οδόσ", "οδοσ"},
		"Straße ſo K":              {"straße", "so", "k"},
		"ＡＢＣ１":                     {"abc1"},
		"co\u00adoperate":          {"cooperate"},
		"İstanbul":                 {"istanbul"},
		"हिन्दी में":               {"हिन्दी", "में"},
		"e\u0301te\u0301":          {"e\u0301te\u0301"},
		"東京都":                      {"東", "京", "東京", "都", "京都"},
		"ab東c":                     {"ab", "東", "c"},
		"スーパー":                     {"ス", "ー", "スー", "パ", "ーパ", "ー", "パー"},
		"한국 말":                     {"한", "국", "한국", "말"},
		"กำ":                       {"ก", "ำ", "กำ"},
		"a\xffb":                   {"a", "b"},
		"\u0411\u041e\u0420\u0429": {"борщ"},
	} {
		if got := words(s); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

func TestQueryTerms(t *testing.T) {
	for s, want := range map[string]map[string]float64{
		"":              {},
		"!":             {},
		"a b A":         {"a": 2, "b": 1},
		"東京都":           {"東京": 1, "京都": 1},
		"東":             {"東": 1},
		"東 京":           {"東": 1, "京": 1},
		"x東y":           {"x": 1, "東": 1, "y": 1},
		"東京 x 京":        {"東京": 1, "x": 1, "京": 1},
		"word":          {"word": 1},
		"一二 三 四五 six 七": {"一二": 1, "三": 1, "四五": 1, "six": 1, "七": 1},
	} {
		q := Parse(s)
		if q.Terms() != len(want) {
			t.Errorf("%q has %v, want %v", s, q.terms, want)
		}
		for term, times := range want {
			if i, ok := q.terms[term]; !ok || q.times[i] != times {
				t.Errorf("%q: %q is there %v times, want %v", s, term, q.terms[term], times)
			}
		}
	}
}

// What is a word of a text is found by a query of that text, whatever it is.
func FuzzTokenise(f *testing.F) {
	f.Add("Prefers 東京 short\u00ad e\u0301 \xff กำ")
	f.Fuzz(func(t *testing.T, s string) {
		all := words(s)
		for _, w := range all {
			if w == "" || utf8.ValidString(s) && !utf8.ValidString(w) {
				t.Fatalf("%q has the word %q", s, w)
			}
		}
		q := Parse(s)
		c := q.NewCounter()
		c.Count([]byte(s))
		for term, i := range q.terms {
			if c.Counts[i] == 0 {
				t.Fatalf("%q as a query has %q, which is not in it as a text", s, term)
			}
		}
		if c.Found != (q.Terms() > 0) || c.Length > len(all) {
			t.Fatalf("%q: found %v, %d words of %d", s, c.Found, c.Length, len(all))
		}
	})
}

func BenchmarkCount(b *testing.B) {
	text := []byte("The quick brown fox jumps over the lazy dog, and Caroline's support group met again on 7 May 2023; nothing else happened. ")
	c := Parse("when did Caroline go to the support group").NewCounter()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		c.Count(text)
	}
}
