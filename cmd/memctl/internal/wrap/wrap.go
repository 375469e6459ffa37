package wrap

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Least is the minimum width of text on a line, in columns, even if the screen is too narrow.
const Least = 20

// Text breaks s into lines of at most width columns. The first line begins at the column indent, and the other lines
// are indented to that column. A word that is wider than a line gets its own line.
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

// mostHelp is the maximum width of the help, in columns, even on a wider screen: longer lines are hard to read.
const mostHelp = 100

// Help lays out a help text for a screen that is width columns wide. Lines that begin at the margin form one
// paragraph, up to the next line that is indented or empty. If an indented line has two spaces inside, as between the
// columns of a list, and is too long, the text after the last two spaces continues on the next line at the same
// column. Any other indented line is a command and is not broken.
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
