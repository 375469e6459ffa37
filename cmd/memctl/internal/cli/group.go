package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// Group makes c a command that only contains other commands. If the user names none of them, c returns an error that
// lists them.
func (a *App) Group(c *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	c.Args = UnknownCommand
	c.RunE = a.Do(func(cmd *cobra.Command, _ []string) error {
		names := make([]string, len(commands))
		for i, sub := range commands {
			names[i] = sub.Name()
		}
		last := len(names) - 1
		return Usagef(cmd.CommandPath(), "name a command: %s or %s", strings.Join(names[:last], ", "), names[last])
	})
	c.SuggestionsMinimumDistance = 2
	c.AddCommand(commands...)
	return c
}
