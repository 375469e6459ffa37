package main

import (
	"fmt"
	"strings"

	"golang.org/x/term"
)

// listEnd says how the list goes on.
func (a *app) listEnd(command, what string, n int, last string, more bool) {
	switch {
	case a.document != nil && more:
		a.document.member("next", last)
	case a.document != nil:
		a.document.member("next", nil)
	case more:
		a.note("there are more: memctl %s … --after %s", command, shellQuote(last))
	case n == 0:
		a.note("no %s passes", what)
	}
}

// columns of the table; the text has the rest.
const idWidth, timeWidth, sessionWidth = 36, 16, 16

// columns writes the table's head, in which one column is named and as wide as
// given, and gives the width for the text; 0 when there is no terminal.
func (a *app) columns(name string, wide int) int {
	fd, ok := terminal(a.out.to)
	if !ok || a.document != nil {
		return 0
	}
	width, _, err := term.GetSize(fd)
	if err != nil || width <= 0 {
		width = 80
	}
	text := max(width-idWidth-wide-sessionWidth-6, 20)
	head := []string{pad("ID", idWidth), pad(name, wide), pad("SESSION", sessionWidth), "TEXT"}
	if wide == scoreWidth {
		head[0], head[1] = head[1], head[0]
	}
	a.out.inColour(bold, strings.Join(head, "  "))
	fmt.Fprintln(a.out)
	return text
}

const scoreWidth = 7
