package template

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/text"
	"github.com/varve-db/varve/memstore"
)

// Content is the template that embeds only the content. Turns is the template for a turn of a conversation: it
// adds the speaker and the previous memory.
const (
	Content = "{content}"
	Turns   = "{previous} {speaker|author|name}: {content} {caption}"
)

// The limits of a template, and of the texts that it adds to the content.
const (
	Most      = 256
	mostValue = 1024
)

const (
	previous = "previous"
	content  = "content"
)

// Template is a parsed template.
type Template struct {
	text     string
	pieces   [][]part
	previous bool
}

// part is a part of a template: literal text, or the alternative names of one pair of braces. Of these names, the
// first one that has a value counts.
type part struct {
	literal string
	names   []string
}

var alone = &Template{text: Content, pieces: [][]part{{{names: []string{content}}}}}

// Named returns the templates that config.json can select by a name, as a map from name to template.
func Named() map[string]string { return map[string]string{"content": Content, "turns": Turns} }

// Parse parses the value in config.json: a template, or the name of one.
func Parse(s string) (*Template, error) {
	if named, ok := Named()[s]; ok {
		s = named
	}
	if s == Content {
		return alone, nil
	}
	bad := func(why string) (*Template, error) {
		return nil, &errs.FieldError{Field: "template", Value: human.Quote(s),
			Limit: `content, turns, or a text such as "{previous} {speaker}: {content}"`,
			Err:   fmt.Errorf("%w: %s", errs.ErrInvalid, why)}
	}
	switch {
	case len(s) > Most:
		return bad(fmt.Sprintf("the template has %d bytes, but the limit is %d", len(s), Most))
	case strings.Contains(strings.Join(strings.Fields(s), " "), separator):
		return bad(fmt.Sprintf("contains %q, which separates model and template in the name of a model", separator))
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl):
		return bad("contains a character that cannot be displayed")
	}
	t := &Template{text: strings.Join(strings.Fields(s), " ")}
	seen := map[string]int{}
	for _, piece := range strings.Fields(s) {
		var parts []part
		for rest := piece; rest != ""; {
			open := strings.IndexAny(rest, "{}")
			if open != 0 {
				if open < 0 {
					open = len(rest)
				}
				parts, rest = append(parts, part{literal: rest[:open]}), rest[open:]
				continue
			}
			end := strings.IndexByte(rest, '}')
			if end <= 1 || rest[0] != '{' || strings.IndexByte(rest[1:end], '{') >= 0 {
				return bad("unmatched or empty braces")
			}
			names := strings.Split(rest[1:end], "|")
			for _, name := range names {
				if seen[name]++; name == "" {
					return bad("a name in braces is empty")
				}
				if (name == content || name == previous) && len(names) > 1 {
					return bad(fmt.Sprintf("{%s} cannot be one of several alternatives", name))
				}
			}
			parts, rest = append(parts, part{names: names}), rest[end+1:]
		}
		t.pieces = append(t.pieces, parts)
	}
	if seen[content] != 1 || seen[previous] > 1 {
		return bad("must contain {content} once, and {previous} at most once")
	}
	t.previous = seen[previous] > 0
	return t, nil
}

// String returns the template in the form in which it appears in the name of a store's model.
func (t *Template) String() string { return t.text }

// Previous reports whether the template uses the previous memory.
func (t *Template) Previous() bool { return t.previous }

// Own returns the text that is embedded for the memory m, without the content of the previous memory.
func (t *Template) Own(m *memstore.Memory) string { return t.Text(m, "") }

// Text returns the text that is embedded for the memory m. prev is the content of the previous memory in the
// session of m.
func (t *Template) Text(m *memstore.Memory, prev string) string {
	if t.text == Content {
		return m.Content
	}
	var b strings.Builder
	for _, piece := range t.pieces {
		has, holds := false, false
		var s strings.Builder
		for _, p := range piece {
			if p.names == nil {
				s.WriteString(p.literal)
				continue
			}
			v := p.value(m, prev)
			has, holds = has || v != "", true
			s.WriteString(v)
		}
		if holds && !has {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s.String())
	}
	return b.String()
}

func (p *part) value(m *memstore.Memory, before string) string {
	for _, name := range p.names {
		switch name {
		case content:
			return m.Content
		case previous:
			return strings.TrimSpace(last(before))
		}
		if v := strings.TrimSpace(first(strings.Join(text.Values(m.Metadata[name]), ", "))); v != "" {
			return v
		}
	}
	return ""
}

func first(s string) string {
	if len(s) <= mostValue {
		return s
	}
	n := mostValue
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func last(s string) string {
	if len(s) <= mostValue {
		return s
	}
	n := len(s) - mostValue
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n++
	}
	return s[n:]
}

// separator is the text between a model's name and a template in the name by which a store records the two.
const separator = " as "

// Split splits identity, the name by which a store knows its model, into the name of the model and the template. A
// name without a template has the template Content.
func Split(identity string) (model string, t *Template) {
	if i := strings.LastIndex(identity, separator); i >= 0 && strings.Contains(identity[i:], Content) {
		if t, err := Parse(identity[i+len(separator):]); err == nil {
			return identity[:i], t
		}
	}
	return identity, alone
}

// Model returns the name of the model without the template, from the name by which a store knows its model.
func Model(identity string) string {
	model, _ := Split(identity)
	return model
}

// Of returns the template in the name by which a store knows its model.
func Of(identity string) *Template {
	_, t := Split(identity)
	return t
}

// Join returns the name by which a store knows a model with a template.
func Join(model string, t *Template) string {
	if t.text == Content || model == "" {
		return model
	}
	return model + separator + t.text
}
