package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
)

// root is the command without a name, and all others below it.
func (a *app) root() *cobra.Command {
	c := &cobra.Command{
		Use:   "memctl",
		Short: "Work on a store of AI-agent memory",
		Long: `memctl works on a Varve store: the memory of AI agents as plain JSON files,
with the durability of a database.

The store is the one that --store or MEMCTL_STORE names, else the nearest folder,
from the current one upwards, that is a store or holds one in storage/. Without a
command memctl shows the status of the store.`,
		Example: `  memctl init
  memctl put "prefers short answers" --session s1
  memctl list --session s1
  memctl search "short answers"
  memctl get 0190f3a5-… --json`,
		Args:                       unknownCommand,
		RunE:                       a.do(a.bare),
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		Version:                    thisBuild().Version,
	}
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
			return &fixed{&usageError{cmd.CommandPath(), err}, cmd.CommandPath() + " --help shows the flags; what begins with - and is none goes behind --"}
		}
		return &usageError{cmd.CommandPath(), err}
	})
	c.AddCommand(
		a.initCommand(), a.putCommand(), a.getCommand(), a.listCommand(), a.searchCommand(), a.editCommand(), a.rmCommand(), a.purgeCommand(),
		a.assemblyCommand(), a.sessionsCommand(), a.workingCommand(), a.importCommand(), a.exportCommand(), a.historyCommand(), a.diffCommand(), a.watchCommand(),
		a.backupCommand(), a.restoreCommand(), a.migrateCommand(),
		a.statusCommand(), a.verifyCommand(), a.repairCommand(), a.rebuildCommand(), a.reindexCommand(),
		a.mcpCommand(), a.flushCommand(), a.configCommand(), a.demoCommand(), a.versionCommand(),
	)
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

// bare is memctl without a command.
func (a *app) bare(cmd *cobra.Command, _ []string) error {
	_, err := a.locate()
	if errors.Is(err, varve.ErrNoStore) && a.document == nil {
		fmt.Fprint(a.out, `memctl keeps the memory of AI agents as plain JSON files. There is no store here yet.
  memctl init                            makes one in ./storage
  memctl put "prefers short answers"     puts a memory into it; memctl help shows the rest
`)
		return nil
	}
	return a.status(cmd.Context())
}

// exactly wants n arguments and says which.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return usagef(cmd.CommandPath(), "%s wants %s, not %d arguments", cmd.CommandPath(), what, len(args))
	}
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef(cmd.CommandPath(), "%s takes no arguments, but there is %q", cmd.CommandPath(), args[0])
}

func atLeastOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return usagef(cmd.CommandPath(), "%s wants %s", cmd.CommandPath(), what)
	}
}

// readAll reads a stream that may wait for a person: ctx ends it.
func readAll(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	type result struct {
		b   []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		b, err := read()
		done <- result{b, err}
	}()
	select {
	case r := <-done:
		return r.b, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
