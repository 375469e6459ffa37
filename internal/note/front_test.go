package note

import (
	"slices"
	"strings"
	"testing"
)

// TestTags: the tags of a front matter, in the forms in which programs for notes write them.
func TestTags(t *testing.T) {
	for front, want := range map[string]string{
		"tags: one":                               "one",
		"tags: one two":                           "one|two",
		"tags: one, two three":                    "one|two three",
		"tags: [one, \"two, three\", 'four', ]":   "one|two, three|four",
		"title: x\ntags:\n  - one\n  - two three": "one|two three",
		"tags:\n- one\n- '#two'\nother:\n- three": "one|two",
		"Tags: [#one, one]":                       "one",
		"tag: one # a comment":                    "one",
		"\"tags\": [projects/acme, 2026]":         "projects/acme|2026",
		"tags:":                                   "",
		"tags: []":                                "",
		"nested:\n  tags: [no]":                   "",
		"tagsx: [no]":                             "",
		"- tags":                                  "",
		"tags: [one\ntitle: x":                    "one",
	} {
		for _, doc := range []string{"---\n" + front + "\n---\n# Text\n", "\ufeff---\r\n" +
			strings.ReplaceAll(front, "\n", "\r\n") + "\r\n...\r\n"} {
			if has := strings.Join(Tags([]byte(doc)), "|"); has != want {
				t.Errorf("%q: %q, want %q", doc, has, want)
			}
		}
	}
	for _, doc := range []string{"", "tags: one\n", "---\ntags: one\n", "# Text\n---\ntags: one\n---\n",
		"---\ntags: \x00\n---\n"} {
		if has := Tags([]byte(doc)); has != nil {
			t.Errorf("%q: %q", doc, has)
		}
	}
	many := "---\ntags: " + strings.Repeat("x ", 1000)
	for i := range 300 {
		many += " y" + strings.Repeat("z", i%mostTags)
	}
	if has := Tags([]byte(many + "\n---\n")); len(has) != mostTags || !slices.Contains(has, "x") {
		t.Errorf("%d tags", len(has))
	}
}
