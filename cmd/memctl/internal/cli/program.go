package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve/cmd/memctl/internal/span"
)

// Program returns the root command that the function commands returns. It adds the flags and checks that all commands
// share.
func (a *App) Program(commands func(*App) *cobra.Command) *cobra.Command {
	c := commands(a)
	c.SilenceErrors, c.SilenceUsage, c.SuggestionsMinimumDistance = true, true, 2
	c.Version = ThisBuild().Version
	c.SetVersionTemplate(ThisBuild().Line())
	c.PersistentFlags().StringVarP(&a.Store, "store", "s", "", "`folder` of the store")
	_ = c.MarkPersistentFlagDirname("store") // cannot fail: the flag exists
	c.PersistentFlags().BoolVar(&a.json, "json", false, "print one JSON document to stdout, also for failures")
	c.PersistentFlags().BoolVarP(&a.Quiet, "quiet", "q", false, "print only errors")
	a.Wait = defaultWait
	c.PersistentFlags().Var(span.Flag(&a.Wait), "wait", "`duration` to wait for a lock of another process")
	c.PersistentFlags().StringVar(&a.paint, "color", "auto",
		"use colors in this `mode`: auto (on a terminal, unless NO_COLOR is set), always, never")
	_ = c.RegisterFlagCompletionFunc("color",
		cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp))
	c.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.chooseForm(cmd); err != nil {
			return err
		}
		a.chooseOutput()
		if err := a.chooseColours(cmd); err != nil {
			return err
		}
		if p := cmd.Parent(); p != nil && p.Name() == "completion" && a.json {
			return Usagef(cmd.CommandPath(), "a completion script is not JSON: omit --json")
		}
		if a.Wait <= 0 {
			return Usagef(cmd.CommandPath(), "--wait %s: must be more than 0", span.Text(a.Wait))
		}
		if cmd.Flags().Changed("store") && a.Store == "" {
			return Usagef(cmd.CommandPath(), "--store is empty: give the path of a store, or omit --store")
		}
		return nil
	}
	c.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var number *strconv.NumError
		if errors.As(err, &number) { // its text names functions of Go
			what, _, _ := strings.Cut(err.Error(), ": strconv.")
			want := "a whole number"
			switch number.Func {
			case "ParseUint":
				want += ", 0 or more"
			case "ParseFloat":
				want = "a number"
			}
			err = fmt.Errorf("%s: must be %s", what, want)
		}
		if near := nearFlags(cmd, err); len(near) > 0 {
			err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
		}
		// A text or an id may have been taken for a flag.
		if strings.HasPrefix(err.Error(), "unknown ") && cmd.HasParent() {
			return WithFix(Usage(cmd.CommandPath(), err),
				cmd.CommandPath()+" --help shows the flags; put -- before an argument that begins with -")
		}
		return Usage(cmd.CommandPath(), err)
	})
	_ = c.RegisterFlagCompletionFunc("wait", cobra.NoFileCompletions)
	a.completeCommands(c)
	return c
}

// chooseOutput corrects the output mode that Run has guessed from the arguments before they were parsed.
func (a *App) chooseOutput() {
	a.messages.Lock()
	defer a.messages.Unlock()
	switch {
	case !a.json:
		a.Document = nil
	case a.Document == nil:
		a.Document = newDocument(a.Out.Data(JSON))
	}
}

// completeCommands adds cobra's own commands and the help topic of the exit codes, and makes every help text
// refer to that topic.
func (a *App) completeCommands(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND]", Short: "Show how a command is used", Example: "  memctl help put\n  memctl help exit-codes",
		RunE: a.Do(func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return Usagef("", "there is no command %q", strings.Join(args, " "))
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		}),
		ValidArgsFunction: func(_ *cobra.Command, args []string, begun string) (names []string, _ cobra.ShellCompDirective) {
			if cmd, rest, err := root.Find(args); err == nil && len(rest) == 0 {
				for _, sub := range cmd.Commands() {
					if !sub.Hidden && strings.HasPrefix(sub.Name(), begun) {
						names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	})
	root.InitDefaultHelpCmd()
	root.AddCommand(exitCodesTopic())
	root.SetHelpTemplate("{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}\n\n{{end}}{{.UsageString}}\n" +
		exitStatus)
	plain := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		a.chooseOutput()
		switch {
		case a.Document != nil:
			a.started = true
			a.Document.Member("help", helpText(cmd))
		case a.Out.Screen:
			fmt.Fprint(a.Out, a.folded(cmd, func() { plain(cmd, args) }))
		default:
			plain(cmd, args)
		}
	})
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Short, c.Long = "Write the completion script of a shell", ""
			c.RunE = a.Do(func(cmd *cobra.Command, _ []string) error {
				return Usagef(cmd.CommandPath(), "name the shell: bash, fish, powershell or zsh")
			})
			for _, shell := range c.Commands() {
				write := shell.RunE
				shell.RunE = a.Do(func(cmd *cobra.Command, args []string) error {
					if err := write(cmd, args); err != nil {
						return fmt.Errorf("writing the completion script: %w", err)
					}
					return nil
				})
			}
			c.Example = "  source <(memctl completion bash)\n  memctl completion fish > ~/.config/fish/completions/memctl.fish"
		}
	}
}

// chooseColours applies the value of --color.
func (a *App) chooseColours(cmd *cobra.Command) error {
	switch a.paint {
	case "auto":
	case "always", "never":
		for _, p := range []*Output{a.Out, a.ErrOut} {
			p.paint(a.paint == "always")
		}
	default:
		return Usagef(cmd.CommandPath(), "--color %q: must be auto, always or never", a.paint)
	}
	return nil
}
