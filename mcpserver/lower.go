package mcpserver

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// lower converts to lower case like JavaScript's toLowerCase. It differs from strings.ToLower in
// two cases (Unicode's SpecialCasing): İ becomes i with a dot above, and a capital sigma at the end
// of a word becomes ς.
func lower(s string) string {
	if !strings.ContainsAny(s, "İΣ") {
		return strings.ToLower(s)
	}
	var b strings.Builder
	b.Grow(len(s) + 2)
	for i, r := range s {
		switch {
		case r == 'İ':
			b.WriteString("i̇")
		case r == 'Σ' && isFinal(s, i):
			b.WriteRune('ς')
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// isFinal reports whether the sigma at i has a letter before it and none after it, ignoring marks.
func isFinal(s string, i int) bool {
	before := false
	for rest := s[:i]; rest != ""; {
		r, n := utf8.DecodeLastRuneInString(rest)
		rest = rest[:len(rest)-n]
		if !ignorable(r) {
			before = cased(r)
			break
		}
	}
	if !before {
		return false
	}
	for _, r := range s[i+len("Σ"):] {
		if !ignorable(r) {
			return !cased(r)
		}
	}
	return true
}

func cased(r rune) bool {
	return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Uppercase, unicode.Other_Lowercase)
}

func ignorable(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) ||
		strings.ContainsRune("'.:·’․‧︓﹒﹕＇．：", r)
}
