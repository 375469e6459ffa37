package wrap

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Least is what text has of a line on a screen that is too narrow.
const Least = 20

// Text breaks s into lines of at most width columns. The first begins at the column indent, and the
// others are indented as far. A word that is wider than a line has one of its own.
func Text(s string, width, indent int) string {
	var b strings.Builder
	at := indent
	width = max(width, indent+Least)
	for i, word := range strings.Split(s, " ") {
		w := uniseg.StringWidth(word)
		switch {
		case i == 0:
		case at+1+w > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += w
	}
	return b.String()
}

// mostHelp is the width of the help on a wide screen: longer lines are hard to read.
const mostHelp = 100

// Help lays the text of a help out for a width. Lines that begin at the margin are one paragraph up
// to the next that is indented or empty. An indented line of several columns, with two spaces
// between them, is broken below the last; one without is a command, and whole.
func Help(text string, width int) string {
	width = min(width, mostHelp)
	var b strings.Builder
	var paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			b.WriteString(Text(strings.Join(paragraph, " "), width, 0) + "\n")
			paragraph = nil
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if line != "" && line[0] != ' ' && line[0] != '\t' {
			paragraph = append(paragraph, line)
			continue
		}
		end()
		margin := len(line) - len(strings.TrimLeft(line, " "))
		if column := strings.LastIndex(line, "  ") + 2; column >= 2 && column > margin {
			line = line[:column] + Text(line[column:], width, uniseg.StringWidth(line[:column]))
		}
		b.WriteString(line + "\n")
	}
	end()
	return b.String()
}
