package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// program is the command that commands gives, with all that holds for every command below it.
func (a *app) program(commands func(*app) *cobra.Command) *cobra.Command {
	c := commands(a)
	c.SilenceErrors, c.SilenceUsage, c.SuggestionsMinimumDistance = true, true, 2
	c.Version = thisBuild().Version
	c.SetVersionTemplate(thisBuild().line())
	c.PersistentFlags().StringVarP(&a.store, "store", "s", "", "the store's `folder`")
	_ = c.MarkPersistentFlagDirname("store") // it exists
	c.PersistentFlags().BoolVar(&a.json, "json", false, "one JSON document on stdout, also for failures")
	c.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "say only what went wrong")
	c.PersistentFlags().DurationVar(&a.wait, "wait", defaultWait, "how `long` to wait for a lock of another process")
	c.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		a.chooseOutput()
		if p := cmd.Parent(); p != nil && p.Name() == "completion" && a.json {
			return usagef(cmd.CommandPath(), "a completion script is not JSON: leave --json out")
		}
		if a.wait <= 0 {
			return usagef(cmd.CommandPath(), "--wait %s: it must be more than 0", a.wait)
		}
		if cmd.Flags().Changed("store") && a.store == "" {
			return usagef(cmd.CommandPath(), "--store is empty")
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
			err = fmt.Errorf("%s: it must be %s", what, want)
		}
		if strings.HasPrefix(err.Error(), "unknown ") && cmd.HasParent() { // a text or an id, perhaps
			return withFix(usage(cmd.CommandPath(), err), cmd.CommandPath()+" --help shows the flags; what begins with - and is none goes behind --")
		}
		return usage(cmd.CommandPath(), err)
	})
	a.completeCommands(c)
	return c
}

// chooseOutput settles what run guessed from the arguments.
func (a *app) chooseOutput() {
	a.messages.Lock()
	defer a.messages.Unlock()
	switch {
	case !a.json:
		a.document = nil
	case a.document == nil:
		a.document = newDocument(a.out.data(jsonly))
	}
}

// completeCommands adds what cobra brings along, and gives every help the exit
// codes.
func (a *app) completeCommands(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND]", Short: "Show how a command is used", Example: "  memctl help put",
		RunE: a.do(func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("", "there is no command %q", strings.Join(args, " "))
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		}),
	})
	root.InitDefaultHelpCmd()
	root.SetHelpTemplate("{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}\n\n{{end}}{{.UsageString}}\n" + exitStatus)
	plain := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		a.chooseOutput()
		if a.document == nil {
			plain(cmd, args)
			return
		}
		a.started = true
		a.document.member("help", strings.TrimSpace(cmd.Long+"\n\n"+cmd.UsageString()+"\n"+exitStatus))
	})
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Short, c.Long = "Write the completion script of a shell", ""
			c.RunE = a.do(func(cmd *cobra.Command, _ []string) error {
				return usagef(cmd.CommandPath(), "name the shell: bash, fish, powershell or zsh")
			})
			c.Example = "  source <(memctl completion bash)\n  memctl completion fish > ~/.config/fish/completions/memctl.fish"
		}
	}
}
