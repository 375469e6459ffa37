package cli

import (
	"fmt"
	"strings"

	"golang.org/x/term"
)

// ListEnd says how the list goes on.
func (a *App) ListEnd(command, what string, n int, last string, more bool) {
	switch {
	case a.Document != nil && more:
		a.Document.Member("next", last)
	case a.Document != nil:
		a.Document.Member("next", nil)
	case more:
		a.Note("there are more: memctl %s … --after %s", command, ShellQuote(last))
	case n == 0:
		a.Note("no %s found", what)
	}
}

// columns of the table; the text has the rest.
const IDWidth, TimeWidth, SessionWidth = 36, 16, 16

// Columns writes the table's head, in which one column is named and as wide as
// given, and gives the width for the text; 0 when there is no terminal.
func (a *App) Columns(name string, wide int) int {
	fd, ok := Terminal(a.Out.Stream)
	if !ok || a.Document != nil {
		return 0
	}
	width, _, err := term.GetSize(fd)
	if err != nil || width <= 0 {
		width = 80
	}
	text := max(width-IDWidth-wide-SessionWidth-6, 20)
	head := []string{Pad("ID", IDWidth), Pad(name, wide), Pad("SESSION", SessionWidth), "TEXT"}
	if wide == ScoreWidth {
		head[0], head[1] = head[1], head[0]
	}
	a.Out.InColour(Bold, strings.Join(head, "  "))
	fmt.Fprintln(a.Out)
	return text
}

const ScoreWidth = 7
