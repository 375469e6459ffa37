package note

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// shown is a section as the tests write it: lines, headings.
func shown(s Section) string {
	return fmt.Sprintf("%d-%d %s", s.From, s.To, strings.Join(s.Headings, " > "))
}

// TestSections: where odd notes are cut.
func TestSections(t *testing.T) {
	long := strings.Repeat("word ", 60) + "\n" // 301 characters
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"empty":         {"", nil},
		"blank":         {"\n \t\n\r\n", nil},
		"no text":       {"# a\n\xff\n", nil},
		"NUL":           {"# a\n\x00\n", nil},
		"one line":      {"x", []string{"1-1 "}},
		"headings only": {"# a\n## b\n# c", []string{"1-1 a", "2-2 a > b", "3-3 c"}},
		"levels": {"# a\n### c\n## b\n#### d\n# e\n", []string{"1-1 a", "2-2 a > c", "3-3 a > b", "4-4 a > b > d",
			"5-5 e"}},
		"before":         {"\nx\n\n# a\n\ny\n\n\n# b\n", []string{"2-2 ", "4-6 a", "9-9 b"}},
		"CRLF":           {"# a\r\nx\r\n\r\n## b ##\r\ny\r\n", []string{"1-2 a", "4-5 a > b"}},
		"BOM":            {"\ufeff# a\nx\n", []string{"1-2 a"}},
		"no headings":    {"#a\n####### b\n    # c\n\t# d\nx # e\n", []string{"1-5 "}},
		"empty heading":  {"#\nx\n## ##\ny\n", []string{"1-2 ", "3-4  > "}},
		"closing":        {"# a #b#\n# c ##  \n# d\\#\n", []string{"1-1 a #b#", "2-2 c", "3-3 d\\#"}},
		"code":           {"# a\n```sh\n# no\n```\n# b\n", []string{"1-4 a", "5-5 b"}},
		"longer fence":   {"````\n# no\n```\n# no\n````\n# b\n", []string{"1-5 ", "6-6 b"}},
		"other fence":    {"~~~\n```\n# no\n~~~ x\n# no\n~~~\n# b\n", []string{"1-6 ", "7-7 b"}},
		"open fence":     {"# a\n```\n# no\n", []string{"1-3 a"}},
		"inline fence":   {"``` a ``` b\n# c\n", []string{"1-1 ", "2-2 c"}},
		"front matter":   {"---\n# no\ntags: [x]\n---\n# a\n", []string{"1-4 ", "5-5 a"}},
		"front dots":     {"\ufeff--- \r\n# no\r\n...\r\n# a\r\n", []string{"1-3 ", "4-4 a"}},
		"no front":       {"---\n# a\nx\n", []string{"1-1 ", "2-3 a"}},
		"underlined":     {"a\n===\nx\n\nb c\n---\ny\n", []string{"1-3 a", "5-7 a > b c"}},
		"after heading":  {"# a\nb\n---\n", []string{"1-1 a", "2-3 a > b"}},
		"rules":          {"a\n\n---\nb\nc\n---\n- d\n---\n", []string{"1-8 "}},
		"long":           {strings.Repeat(long, 14), []string{"1-6 ", "7-12 ", "13-14 "}},
		"paragraphs":     {strings.Repeat(long, 4) + "\n" + strings.Repeat(long, 4), []string{"1-4 ", "6-9 "}},
		"long line":      {"# a\n" + strings.Repeat("ä", 5000) + "\nx\n", []string{"1-1 a", "2-2 a", "3-3 a"}},
		"code cut":       {"```\n" + strings.Repeat(long, 8) + "# no\n```\n# a\n", []string{"1-7 ", "8-11 ", "12-12 a"}},
		"blank and long": {strings.Repeat(long, 4) + "\n\n" + strings.Repeat("x", 2500), []string{"1-4 ", "7-7 "}},
	} {
		t.Run(name, func(t *testing.T) {
			list := Sections([]byte(c.text))
			var got []string
			for _, s := range list {
				got = append(got, shown(s))
			}
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			check(t, c.text, list)
		})
	}
}

// check fails the test unless the sections follow one another, the lines of each are those of its bytes, only blank
// lines are in no section, and no section of more than one line is too long.
func check(t *testing.T, text string, list []Section) {
	t.Helper()
	at := 0
	blank := func(s string) bool { return strings.TrimSpace(strings.TrimPrefix(s, "\ufeff")) == "" }
	for _, s := range list {
		if s.Start < at || s.End <= s.Start || s.End > len(text) || !blank(text[at:s.Start]) || s.To < s.From {
			t.Fatalf("%+v behind %d", s, at)
		}
		if from := 1 + strings.Count(text[:s.Start], "\n"); from != s.From {
			t.Fatalf("%+v begins in line %d", s, from)
		}
		piece := text[s.Start:s.End]
		if n := Lines([]byte(piece)); n != s.To-s.From+1 || strings.TrimSpace(piece) == "" {
			t.Fatalf("%+v has %d lines: %q", s, n, piece)
		}
		if s.To > s.From && utf8.RuneCountInString(piece) > MostCharacters {
			t.Fatalf("%+v has %d characters", s, utf8.RuneCountInString(piece))
		}
		at = s.End
	}
	if len(list) > 0 && !blank(text[at:]) {
		t.Fatalf("%q is in no section", text[at:])
	}
}

// FuzzSections calls check for any text.
func FuzzSections(f *testing.F) {
	for _, s := range []string{"# a\n\nb\n===\n```\n# c", "---\nx\n---\n## y", strings.Repeat("word\n\n", 900),
		strings.Repeat("# h\n", 5000), "\ufeff\n\ufeff", "a\r\n---\r\n", strings.Repeat("x", 2001) + "\n\n#\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		list := Sections([]byte(s))
		check(t, s, list)
		if len(list) == 0 && IsText([]byte(s)) && strings.TrimSpace(strings.TrimPrefix(s, "\ufeff")) != "" {
			t.Fatal("no sections")
		}
		for i, sec := range list {
			if path, n, ok := SplitSectionID(SectionID("a/b", i)); path != "a/b" || n != i || !ok {
				t.Fatal(path, n, ok)
			}
			if title := sec.Title("a/b.c.md"); !strings.HasPrefix(title, "a/b.c") {
				t.Fatal(title)
			}
		}
	})
}

// TestSectionsOfLargest: the notes with the most sections, and with the longest line, are cut in time and in not too
// many pieces.
func TestSectionsOfLargest(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		most int
	}{
		"headings": {"# a\n", mostHeaded + 2*MostBytes/MostCharacters},
		"blank":    {"\n", 0},
		"lines":    {"x\n", 2 * MostBytes / MostCharacters},
		"fences":   {"```\n", 2 * MostBytes / MostCharacters},
	} {
		began := time.Now()
		list := Sections([]byte(strings.Repeat(c.line, MostBytes/len(c.line))))
		if len(list) > c.most || len(list) == 0 && c.most > 0 || len(list) > 99_999 {
			t.Errorf("%s: %d sections", name, len(list))
		}
		t.Logf("%s: %d sections in %v", name, len(list), time.Since(began))
	}
	if list := Sections([]byte(strings.Repeat("x", MostBytes))); len(list) != 1 || list[0].To != 1 {
		t.Errorf("a line has %d sections", len(list))
	}
}
