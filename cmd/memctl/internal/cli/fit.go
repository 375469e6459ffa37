package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve/cmd/memctl/internal/wrap"
)

// Fit breaks a text between words to fit the width of the screen. indent is the column at which the text begins on its
// first line, and to which Fit indents the other lines. If the output is not a terminal, Fit returns the text
// unchanged.
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
