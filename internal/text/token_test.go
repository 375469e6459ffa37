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

// FuzzTokenise verifies that no word is empty, and that the words of a valid text are valid UTF-8.
func FuzzTokenise(f *testing.F) {
	f.Add("Prefers 東京 short\u00ad e\u0301 \xff กำ")
	f.Fuzz(func(t *testing.T, s string) {
		all := words(s)
		for _, w := range all {
			if w == "" || utf8.ValidString(s) && !utf8.ValidString(w) {
				t.Fatalf("%q has the word %q", s, w)
			}
		}
	})
}

func BenchmarkEach(b *testing.B) {
	text := []byte("The quick brown fox jumps over the lazy dog, and Caroline's support group met again on 7 May 2023; nothing else happened. ")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf = Each(text, buf, func([]byte) {}, func([]byte, int) {})
	}
}
