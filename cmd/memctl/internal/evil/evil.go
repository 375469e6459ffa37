package evil

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is an example of text that an attacker may store: it contains escape sequences, C1 controls, bidi
// controls, DEL, separators and a carriage return. Name is a file name of this kind; file names may be any
// bytes.
const (
	Text = "a\x1b[35mE\x1b]0;T\x07\u009b31mC\u202eR\u2066I\u200eL\u200fM\u061cA\x7fD\u2028S\u2029P\rQ"
	Name = Text + "\x9b35m\xff"
)

// Obeyed returns the first sequence in the bytes sent to a terminal that the terminal would execute, except the
// colors and the cursor movements of a progress bar that memctl itself writes.
func Obeyed(sent string) string {
	rest := sent
	for _, own := range []string{"\x1b[31m", "\x1b[32m", "\x1b[1m", "\x1b[2m", "\x1b[0m", "\x1b[2K\r", "\x1b[K"} {
		rest = strings.ReplaceAll(rest, own, "")
	}
	return ObeyedBy(rest)
}

// ObeyedBy is like Obeyed, but does not make an exception for the sequences that memctl itself writes.
func ObeyedBy(rest string) string {
	for i, r := range rest {
		bad := r == utf8.RuneError && !strings.HasPrefix(rest[i:], "\uFFFD")
		switch {
		case r == '\n', r == '\t', r == '\u200c', r == '\u200d':
		case r == '\r':
			// A progress bar may return to the beginning of the line, Text must not.
			bad = strings.HasPrefix(rest[i:], "\rQ")
		case !unicode.IsGraphic(r):
			bad = true
		}
		if bad {
			return fmt.Sprintf("%+q in %+q", rest[i:min(i+4, len(rest))], rest[max(0, i-60):min(i+30, len(rest))])
		}
	}
	return ""
}
