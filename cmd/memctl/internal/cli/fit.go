package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve/cmd/memctl/internal/wrap"
)

// Fit returns a text that is printed from the column indent of a line on. For a terminal, it breaks the text
// between words to fit the width of the screen, and indents the further lines by indent columns. For a program,
// the text remains one line.
func (a *App) Fit(indent int, s string) string {
	if !a.Out.Screen {
		return s
	}
	return wrap.Text(s, a.width(), indent)
}

// folded returns the help text of a command, with lines broken to the width of the screen. plain is the function that
// prints this text without line breaks.
func (a *App) folded(cmd *cobra.Command, plain func()) string {
	var text strings.Builder
	out := cmd.OutOrStdout()
	cmd.SetOut(&text)
	plain()
	cmd.SetOut(out)
	return wrap.Help(text.String(), a.width())
}
