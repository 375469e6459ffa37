package working

import (
	"errors"
	"unicode/utf8"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
)

// Match reports whether a key matches a pattern. In a pattern, * matches any number of characters, ? matches one
// character, and [abc], [a-z] or [^a-z] matches one character of a set. \ makes the next character literal. A slash has
// no special meaning. If the pattern is malformed, Match returns an error for every key.
func Match(pattern, key string) (bool, error) {
	if err := checkGlob(pattern); err != nil {
		return false, err
	}
	return match(pattern, key), nil
}

func checkGlob(pattern string) error {
	bad := func(why string) error {
		return &errs.FieldError{Field: "pattern", Value: human.Quote(pattern), Err: errors.New(why)}
	}
	if err := checkText("pattern", pattern, MaxKey); err != nil {
		return err
	}
	for p := pattern; p != ""; {
		switch p[0] {
		case '\\':
			if len(p) == 1 {
				return bad(`the pattern ends with \, but a character must follow \`)
			}
			p = p[1+runeLen(p[1:]):]
		case '[':
			_, rest, ok := set(p, 0)
			if !ok {
				return bad(`a set [...] is empty, is not closed, or has a range in descending order; ` +
					`to match the bracket itself, write \[`)
			}
			p = rest
		default:
			p = p[1:]
		}
	}
	return nil
}

func runeLen(s string) int { _, n := utf8.DecodeRuneInString(s); return n }

// match reports whether s matches the pattern p, which must be valid. It backtracks only to the last * in the pattern,
// which is sufficient. So the time is at most proportional to the product of the two lengths.
func match(p, s string) bool {
	var starP, starS string
	star := false
	for s != "" || p != "" {
		if p != "" && p[0] == '*' {
			star, starP, starS = true, p[1:], s
			p = p[1:]
			continue
		}
		if s != "" && p != "" {
			if rest, ok := one(p, s); ok {
				p, s = rest, s[runeLen(s):]
				continue
			}
		}
		if !star || starS == "" {
			return false
		}
		starS = starS[runeLen(starS):]
		p, s = starP, starS
	}
	return true
}

// one reports whether the first character of s matches the beginning of the pattern p, and returns the rest of the
// pattern.
func one(p, s string) (string, bool) {
	r, _ := utf8.DecodeRuneInString(s)
	switch p[0] {
	case '?':
		return p[1:], true
	case '[':
		in, rest, _ := set(p, r)
		return rest, in
	case '\\':
		p = p[1:]
	}
	c, n := utf8.DecodeRuneInString(p)
	return p[n:], c == r
}

// set parses the set [...] at the beginning of p. matched reports whether r is in the set. rest is the pattern
// after the set. ok is false if the set is malformed.
func set(p string, r rune) (matched bool, rest string, ok bool) {
	p = p[1:]
	not := p != "" && (p[0] == '^' || p[0] == '!')
	if not {
		p = p[1:]
	}
	for n := 0; ; n++ {
		if p == "" {
			return false, "", false
		}
		if p[0] == ']' {
			return matched != not, p[1:], n > 0
		}
		lo, rest, ok := setRune(p)
		if !ok {
			return false, "", false
		}
		hi := lo
		if p = rest; len(p) > 1 && p[0] == '-' && p[1] != ']' {
			if hi, p, ok = setRune(p[1:]); !ok || hi < lo {
				return false, "", false
			}
		}
		matched = matched || lo <= r && r <= hi
	}
}

func setRune(p string) (rune, string, bool) {
	if p[0] == '\\' {
		if p = p[1:]; p == "" {
			return 0, "", false
		}
	}
	r, n := utf8.DecodeRuneInString(p)
	return r, p[n:], true
}
