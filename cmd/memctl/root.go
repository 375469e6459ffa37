package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/assemblycmd"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/mcpcmd"
	"github.com/varve-db/varve/cmd/memctl/internal/notecmd"
	"github.com/varve-db/varve/cmd/memctl/internal/projectcmd"
	"github.com/varve-db/varve/cmd/memctl/internal/remotecmd"
	"github.com/varve-db/varve/cmd/memctl/internal/servecmd"
	"github.com/varve-db/varve/cmd/memctl/internal/servicecmd"
	"github.com/varve-db/varve/cmd/memctl/internal/upkeep"
	"github.com/varve-db/varve/cmd/memctl/internal/workingcmd"
)

// commands has the constructors of all commands of memctl. A new command gets a file of its own and a line
// here.
var commands = []func(*cli.App) *cobra.Command{
	initCommand,
	putCommand,
	getCommand,
	listCommand,
	searchCommand,
	editCommand,
	rmCommand,
	upkeep.Purge,
	assemblycmd.Command,
	notecmd.Command,
	sessionsCommand,
	workingcmd.Command,
	importCommand,
	exportCommand,
	historyCommand,
	logCommand,
	diffCommand,
	undoCommand,
	undeleteCommand,
	revertCommand,
	watchCommand,
	servicecmd.Command,
	upkeep.Backup,
	upkeep.Restore,
	upkeep.Migrate,
	remotecmd.Command,
	remotecmd.Clone,
	upkeep.Status,
	upkeep.Verify,
	upkeep.Repair,
	doctorCommand,
	quarantineCommand,
	upkeep.RebuildIndex,
	upkeep.Reindex,
	mcpcmd.Command,
	projectcmd.Command,
	servecmd.Command,
	servecmd.UICommand,
	flushCommand,
	configCommand,
	demoCommand,
	manualCommand,
	versionCommand,
}

// root returns the command memctl, with all other commands below it.
func root(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "memctl",
		Short: "Manage a store of AI-agent memory",
		Long: `memctl manages a Varve store: the memory of AI agents as plain JSON files, with a write-ahead
log.

The store is the one that --store or VARVE_STORE names, or else the nearest folder, from the
current one upwards, that is a store or contains one in storage/ and does not belong to another
user. Without a command, memctl shows the status of the store.`,
		Example: `  memctl init
  memctl put "prefers short answers" --session s1
  memctl list --session s1
  memctl search "short answers"
  memctl get 0190f3a5-… --json`,
		Args: cli.UnknownCommand,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error { return bare(a, cmd) }),
	}
	for _, command := range commands {
		c.AddCommand(command(a))
	}
	completeTree(a, c)
	return c
}

// bare runs when memctl is called without a command. If there is no store, bare prints how to create one; otherwise it
// prints the status of the store.
func bare(a *cli.App, cmd *cobra.Command) error {
	_, err := a.Locate()
	if errors.Is(err, varve.ErrNoStore) && a.Document == nil {
		fmt.Fprint(a.Out, `memctl keeps the memory of AI agents as plain JSON files. There is no store here yet.
  memctl init                            creates a store in ./storage
  memctl put "prefers short answers"     stores a memory; memctl help lists all commands
`)
		return nil
	}
	return upkeep.ShowStatus(cmd.Context(), a)
}
