package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve/cmd/memctl/internal/wrap"
)

// Fit returns a text that begins at the column indent of a line. For a terminal it breaks the text between words to
// the width of the screen, and indents each further line as far. For a program the text stays on one line.
func (a *App) Fit(indent int, s string) string {
	if !a.Out.Screen {
		return s
	}
	return wrap.Text(s, a.width(), indent)
}

// folded returns the help of a command, which plain writes, laid out for the screen.
func (a *App) folded(cmd *cobra.Command, plain func()) string {
	var text strings.Builder
	out := cmd.OutOrStdout()
	cmd.SetOut(&text)
	plain()
	cmd.SetOut(out)
	return wrap.Help(text.String(), a.width())
}
