package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Exactly returns a check that a command has n arguments. noun names the arguments in the error.
func Exactly(n int, noun string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return Usagef(cmd.CommandPath(), "%s takes %s, not %d arguments", cmd.CommandPath(), noun, len(args))
	}
}

func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Usagef(cmd.CommandPath(), "%s takes no arguments, but got %q", cmd.CommandPath(), args[0])
}

func AtLeastOne(noun string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return Usagef(cmd.CommandPath(), "%s needs %s", cmd.CommandPath(), noun)
	}
}

// UnknownCommand returns an error if a command that only has subcommands gets arguments: then the first argument is
// the name of a subcommand that does not exist. The error suggests subcommands with similar names.
func UnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	_, in, _ := strings.Cut(cmd.CommandPath()+" ", " ") // without memctl itself
	s := fmt.Sprintf("unknown command %q", in+args[0])
	if near := suggestions(cmd, args[0]); len(near) > 0 {
		s += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	path := cmd.CommandPath()
	if !cmd.HasParent() {
		path = ""
	}
	return Usagef(path, "%s", s)
}

// suggestions returns the subcommands that an unknown name may mean. These are the subcommands that name calls in
// other programs, as listed in SuggestFor. If there are none, these are the subcommands with a similar name.
func suggestions(cmd *cobra.Command, name string) (near []string) {
	for _, c := range cmd.Commands() {
		if slices.Contains(c.SuggestFor, name) {
			near = append(near, c.Name())
		}
	}
	if len(near) > 0 {
		return near
	}
	return cmd.SuggestionsFor(name)
}
