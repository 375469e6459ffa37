package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// printable puts text on one line and takes from it what a terminal would obey:
// what is stored was written by anybody.
func printable(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return escape(s, "")
}

// printableID is the id itself where a terminal may have it, else quoted as Go does.
func printableID(id string) string {
	if escape(id, "") == id {
		return id
	}
	return strconv.QuoteToGraphic(id)
}

// printableLines leaves line ends and tabs.
func printableLines(s string) string { return escape(s, "\n\t") }

func escape(s, keep string) string {
	ok := func(r rune) bool { return unicode.IsGraphic(r) && !isBidi(r) || strings.ContainsRune(keep, r) }
	if strings.IndexFunc(s, func(r rune) bool { return !ok(r) }) < 0 && strings.ToValidUTF8(s, "") == s {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == unicode.ReplacementChar && s[i] >= 0x80 && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case ok(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// isBidi: these turn the order of what follows around.
func isBidi(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

// cut shortens text to a width in columns.
func cut(s string, width int) string {
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

// pad fills up to a width in columns.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(width-uniseg.StringWidth(s), 0))
}
