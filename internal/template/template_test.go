package template

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/memstore"
)

func TestText(t *testing.T) {
	t.Parallel()
	turn := &memstore.Memory{Content: "Two weeks.", Metadata: map[string]any{"author": "Anna", "caption": "a tent", "tags": []any{"camp", 7, "sea"}, "n": 3.0}}
	bare := &memstore.Memory{Content: " a note\n"}
	for _, c := range []struct {
		template string
		m        *memstore.Memory
		before   string
		want     string
	}{
		{"turns", turn, "How long were you away?", "How long were you away? Anna: Two weeks. a tent"},
		{"turns", turn, "", "Anna: Two weeks. a tent"},
		{"turns", bare, "", " a note\n"},
		{"turns", bare, " \n", " a note\n"},
		{"content", turn, "x", "Two weeks."},
		{"", nil, "", ""},
		{"search_document:  {content} [{tags}]", turn, "x", "search_document: Two weeks. [camp, sea]"},
		{"search_document: {content} [{tags}]", bare, "x", "search_document:  a note\n"},
		{"{n|missing}{content}", turn, "x", "Two weeks."},
		{"{previous} {content}", bare, strings.Repeat("é", 1000), strings.Repeat("é", 512) + "  a note\n"},
	} {
		p, err := Parse(c.template)
		if c.m == nil {
			if !errors.Is(err, errs.ErrInvalid) {
				t.Errorf("%q: %v", c.template, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(c.template, err)
		}
		if got := p.Text(c.m, c.before); got != c.want {
			t.Errorf("%s: %q, want %q", c.template, got, c.want)
		}
	}
}

func TestBadTemplates(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"content text", "{}", "{content", "content}", "{{content}}", "{content} {content}", "{previous}", "{previous} {previous} {content}",
		"{content|caption}", "{a||b} {content}", "{content}\x00", "{content} \xff", "{content} as {caption}", strings.Repeat("x", Most) + "{content}"} {
		if p, err := Parse(s); !errors.As(err, new(*errs.FieldError)) {
			t.Errorf("%q: %v, %v", s, p, err)
		}
	}
}

// TestIdentity: a name is split into its parts; a name older than templates is that of the model alone.
func TestIdentity(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"", "m", "nomic-embed-text", "a as b", "x as {previous}", "as {content}"} {
		if got, p := Split(model); got != model || p.String() != Content {
			t.Errorf("%q: %q, %s", model, got, p)
		}
		for _, s := range []string{"content", "turns", "{content} was {caption}", "q: {content}"} {
			p, err := Parse(s)
			if err != nil {
				t.Fatal(err)
			}
			name := Join(model, p)
			if model == "" && name != "" {
				t.Errorf("no model has the name %q", name)
			}
			if got, is := Split(name); model != "" && (got != model || is.String() != p.String()) {
				t.Errorf("%q: %q, %s", name, got, is)
			}
		}
	}
}

func TestAnyTemplate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"{content}", "{previous}", "{a|b}", "{", "}", "|", " ", " as ", "é", "x:"})).Draw(r, "template"), "")
		p, err := Parse(s)
		if err != nil {
			return
		}
		again, err := Parse(p.String())
		if err != nil || again.String() != p.String() {
			r.Fatalf("%q: %q, %v", s, p, err)
		}
		m := &memstore.Memory{Content: rapid.String().Draw(r, "content"), Metadata: map[string]any{"b": rapid.String().Draw(r, "b")}}
		text := p.Text(m, rapid.String().Draw(r, "before"))
		if !strings.Contains(text, m.Content) || !utf8.ValidString(text) {
			r.Fatalf("%q: %q", s, text)
		}
	})
}
