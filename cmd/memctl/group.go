package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// group makes c a command that only holds others, and says which when none of them is
// named.
func (a *app) group(c *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	c.Args = unknownCommand
	c.RunE = a.do(func(cmd *cobra.Command, _ []string) error {
		names := make([]string, len(commands))
		for i, sub := range commands {
			names[i] = sub.Name()
		}
		last := len(names) - 1
		return usagef(cmd.CommandPath(), "say what to do: %s or %s", strings.Join(names[:last], ", "), names[last])
	})
	c.SuggestionsMinimumDistance = 2
	c.AddCommand(commands...)
	return c
}

// unknownCommand refuses arguments that are no command, and names one that is near.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	_, in, _ := strings.Cut(cmd.CommandPath()+" ", " ") // memctl itself says nothing
	s := fmt.Sprintf("there is no command %q", in+args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		s += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	path := cmd.CommandPath()
	if !cmd.HasParent() {
		path = ""
	}
	return usagef(path, "%s", s)
}
