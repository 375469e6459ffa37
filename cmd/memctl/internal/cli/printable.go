package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Printable returns text on one line, with everything escaped that a terminal would execute: stored text may
// come from anyone.
func Printable(s string) string {
	// b gets one word after the other: a list of the words would need many times as much memory as the text
	var b strings.Builder
	b.Grow(len(s))
	for word := range strings.FieldsSeq(s) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	return escape(b.String(), "")
}

// PrintableID returns the id itself if a terminal shows it safely, otherwise quoted as in Go.
func PrintableID(id string) string {
	if escape(id, "") == id {
		return id
	}
	return strconv.QuoteToGraphic(id)
}

// indented returns a message of several lines with all lines except the first indented. So only the first line can
// look like a message of memctl itself.
func indented(s string) string { return strings.ReplaceAll(s, "\n", "\n        ") }

func escape(s, keep string) string {
	ok := func(r rune) bool { return visible(r) || strings.ContainsRune(keep, r) }
	if strings.IndexFunc(s, func(r rune) bool { return !ok(r) }) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == unicode.ReplacementChar && !strings.HasPrefix(s[i:], "\uFFFD"):
			escapeByte(&b, s[i])
		case ok(r):
			b.WriteRune(r)
		default:
			escapeRune(&b, r)
		}
	}
	return b.String()
}

// visible reports whether a terminal displays r instead of acting on it. Control characters (C0 and C1),
// format characters such as those that change the direction of text, line separators, and code points without a
// character are not visible.
func visible(r rune) bool { return unicode.IsGraphic(r) }

func escapeByte(b *strings.Builder, c byte) { fmt.Fprintf(b, `\x%02x`, c) }

func escapeRune(b *strings.Builder, r rune) {
	switch {
	case r < 0x80:
		escapeByte(b, byte(r))
	case r > 0xffff:
		fmt.Fprintf(b, `\U%08x`, r)
	default:
		fmt.Fprintf(b, `\u%04x`, r)
	}
}

// escapeJSON writes the escape of a character within JSON text.
func escapeJSON(b *strings.Builder, r rune) {
	if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
		fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
		return
	}
	fmt.Fprintf(b, `\u%04x`, r)
}

// Cut shortens text to a width in columns.
func Cut(s string, width int) string {
	if uniseg.StringWidth(s) <= width {
		return s
	}
	var b strings.Builder
	left, state := max(width-1, 0), -1
	for s != "" {
		var cluster string
		var w int
		cluster, s, w, state = uniseg.FirstGraphemeClusterInString(s, state)
		if w > left {
			break
		}
		left -= w
		b.WriteString(cluster)
	}
	return b.String() + "…"
}

// Pad appends spaces up to a width in columns.
func Pad(s string, width int) string {
	return s + strings.Repeat(" ", max(width-uniseg.StringWidth(s), 0))
}
