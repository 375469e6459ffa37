package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/complete"
)

// completeTree sets the functions of completions and flagValues for c and every command below it.
func completeTree(a *cli.App, c *cobra.Command) {
	arguments, values := completions(a), flagValues(a)
	for _, sub := range commandsBelow(c) {
		f, known := arguments[pathBelow(sub)]
		if !known && !sub.HasSubCommands() {
			f = complete.Nothing
		}
		sub.ValidArgsFunction = f
		sub.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			f, known := flagValue(values, sub, flag)
			switch {
			case !known && flag.Value.Type() != "bool":
				f = complete.Nothing
			case f == nil: // the shell completes file names by default
				return
			}
			_ = sub.RegisterFlagCompletionFunc(flag.Name, f) // fails if a flag of all commands has one already
		})
	}
}

func flagValue(values map[string]cobra.CompletionFunc, c *cobra.Command,
	flag *pflag.Flag) (cobra.CompletionFunc, bool) {
	if f, ok := values[pathBelow(c)+" --"+flag.Name]; ok {
		return f, true
	}
	f, ok := values["--"+flag.Name]
	return f, ok
}

// commandsBelow returns c and every command below it.
func commandsBelow(c *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		list = append(list, commandsBelow(sub)...)
	}
	return list
}

// pathBelow returns the path of a command without memctl, such as "assembly add".
func pathBelow(c *cobra.Command) string {
	_, path, _ := strings.Cut(c.CommandPath(), " ")
	return path
}

// firstArgOnly returns a completion that completes only the first argument of a command. If f is nil, the shell
// completes the first argument with file names.
func firstArgOnly(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if f == nil { // names of files
			return nil, cobra.ShellCompDirectiveDefault
		}
		return f(cmd, args, begun)
	}
}

func set(cmd *cobra.Command, name string) bool {
	on, err := cmd.Flags().GetBool(name)
	return err == nil && on
}

// settingAndValue completes the name of a setting, and then its values.
func settingAndValue(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	var list []string
	switch len(args) {
	case 0:
		list = settingNames()
	case 1:
		list = choices(args[0])
	}
	return complete.Words(list...)(cmd, args, begun)
}
