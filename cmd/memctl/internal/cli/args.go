package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/varve-db/varve/internal/human"
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
// other programs, as listed in SuggestFor. If no subcommand lists it, these are the subcommands with a similar name.
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

// longestFlag is the length in bytes of the longest name that nearFlags compares with the flags of a command.
const longestFlag = 64

// nearFlags returns the flags of a command that an unknown flag may stand for, with their dashes; err is the error of
// parsing the flags. These are the flags whose names differ from the unknown one in the fewest letters, and those that
// begin with it. A long flag with one dash stands only for the flag of exactly this name, because a text may begin with
// a dash.
func nearFlags(cmd *cobra.Command, err error) (near []string) {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return nil
	}
	name, letters := unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames()
	most := 1 + min(1, len(name)/4)
	if letters != "" {
		name, _, _ = strings.Cut(letters, "=")
		most = 0
	}
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	if len(name) < 2 || len(name) > longestFlag {
		return nil
	}
	var begin []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		if letters == "" && len(name) > 2 && strings.HasPrefix(f.Name, name) {
			begin = append(begin, "--"+f.Name)
		}
		switch d := human.Distance(name, f.Name); {
		case d > most, d >= len(f.Name):
			return
		case d < most:
			near, most = nil, d
		}
		near = append(near, "--"+f.Name)
	})
	for _, f := range begin {
		if !slices.Contains(near, f) {
			near = append(near, f)
		}
	}
	return near
}
