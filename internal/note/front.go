package note

import (
	"bytes"
	"strings"
)

// The limits on the tags of a front matter.
const (
	mostTags  = 256
	mostFront = 64 << 10 // number of bytes at the beginning of a note in which tags are searched for
)

// Tags returns the tags in the front matter of a note, in their order, each once, without the # that may precede a tag.
// They are the values of the member tags or tag, in the forms that programs for notes write. Tags reads only these
// forms of YAML, and ignores any other:
//
//	tags: one, two three      separated by commas, or by spaces if there is no comma
//	tags: [one, "two three"]
//	tags:
//	  - one
//	  - "two three"
func Tags(data []byte) []string {
	front := data[:FrontMatter(data[:min(len(data), mostFront)])]
	if len(front) == 0 || !IsText(front) {
		return nil
	}
	var tags []string
	seen := map[string]bool{}
	add := func(value string) {
		value = strings.TrimSpace(strings.TrimPrefix(unquoted(strings.TrimSpace(value)), "#"))
		if value != "" && !seen[value] && len(tags) < mostTags {
			seen[value] = true
			tags = append(tags, value)
		}
	}
	listed := false // the lines are items of the member
	for line := range bytes.Lines(front) {
		text := strings.TrimRight(string(line), " \t\r\n")
		item := strings.TrimLeft(text, " ")
		if value, ok := strings.CutPrefix(item, "- "); ok && listed {
			add(withoutComment(value))
			continue
		}
		if listed = false; item != text {
			continue // of another member
		}
		name, value, ok := strings.Cut(text, ":")
		if name = strings.ToLower(unquoted(name)); !ok || name != "tags" && name != "tag" {
			continue
		}
		value = strings.TrimSpace(withoutComment(value))
		if listed = value == ""; listed {
			continue
		}
		for _, v := range values(value) {
			add(v)
		}
	}
	return tags
}

// values returns the values in s, a list of values in one line. A list in square brackets, or with commas or quotation
// marks, is divided at its commas, and any other list at its spaces. The values keep their quotation marks.
func values(s string) []string {
	if in, ok := strings.CutPrefix(s, "["); ok {
		in, _ = strings.CutSuffix(in, "]")
		return splitQuoted(in)
	}
	if strings.ContainsAny(s, `,"'`) {
		return splitQuoted(s)
	}
	return strings.Fields(s)
}

// splitQuoted splits s at the commas that are not in single or double quotation marks.
func splitQuoted(s string) (list []string) {
	var quote byte
	begin := 0
	for i := range len(s) {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == ',':
			list, begin = append(list, s[begin:i]), i+1
		}
	}
	return append(list, s[begin:])
}

func unquoted(s string) string {
	if n := len(s); n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n-1] == s[0] {
		return s[1 : n-1]
	}
	return s
}

// withoutComment returns a value without the comment after it: a comment begins at a # between two spaces. A # directly
// before a word belongs to a tag. A value with a quotation mark is returned unchanged.
func withoutComment(s string) string {
	trimmed := strings.TrimSpace(s)
	if strings.ContainsAny(trimmed, `"'`) {
		return s
	}
	if at := strings.Index(trimmed, " # "); at >= 0 {
		return trimmed[:at]
	}
	return s
}
