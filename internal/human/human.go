package human

import (
	"fmt"
	"unicode/utf8"
)

// Quote returns an id or a value in quotes for a message, shortened if it is long.
func Quote(s string) string {
	const limit = 60
	if len(s) > limit {
		return fmt.Sprintf("%q… (%d bytes)", Head(s, limit), len(s))
	}
	return fmt.Sprintf("%q", s)
}

// Bytes returns a number of bytes as text, such as "512 bytes" or "12 MiB". It uses KiB, MiB and GiB from 10 of the
// unit on, and rounds down.
func Bytes(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	case n < 10<<30:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d GiB", n>>30)
}

// Count returns n with a noun, such as "1 memory" or "2 memories". one is the singular of the noun.
func Count(n int, one, plural string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, plural)
}

// Head returns the longest prefix of s that has at most n bytes and does not cut a character.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	// If s is not UTF-8 there may be no boundary nearby.
	for at := n; at >= 0 && at > n-utf8.UTFMax; at-- {
		if utf8.RuneStart(s[at]) {
			return s[:at]
		}
	}
	return s[:n]
}

// Tail returns the longest suffix of s that has at most n bytes and does not cut a character.
func Tail(s string, n int) string {
	from := len(s) - n
	if from <= 0 {
		return s
	}
	for at := from; at <= len(s) && at < from+utf8.UTFMax; at++ {
		if at == len(s) || utf8.RuneStart(s[at]) {
			return s[at:]
		}
	}
	return s[from:]
}
