package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

func undeleteCommand(a *cli.App) *cobra.Command {
	var assemblies bool
	c := &cobra.Command{
		Use: "undelete ID...", SuggestFor: []string{"unrm"}, Short: "Restore deleted memories",
		Long: `Restore the last version of deleted memories, no matter whether a command, an edit by hand, a limit
or their expiry deleted them, as long as the log or the archive has this version. The embedding is
restored too, unless the store has changed its embedding model since. An expiry in the past is not
restored. With --assembly, restore deleted assemblies, without the members that no longer exist. A
purged memory cannot be restored.`,
		Example: "  memctl undelete notes\n  memctl undelete notes draft --json",
		Args:    cli.AtLeastOne("the id of a deleted memory"),
		RunE: a.OnStore(cli.Write, func(ctx context.Context, st *varve.Store, args []string) error {
			begin(a, assemblies)
			return a.Each(ctx, args, func(id string) error {
				version := uint64(0)
				var err error
				if assemblies {
					var g varve.Assembly
					g, err = st.Assemblies().Undelete(ctx, id)
					version = g.Version
				} else {
					var m varve.Memory
					m, err = st.Undelete(ctx, id)
					version = m.Version
				}
				return broughtBack(a, id, version, "restored", err)
			})
		}),
	}
	c.Flags().BoolVar(&assemblies, "assembly", false, "the ids are ids of assemblies")
	return c
}

func revertCommand(a *cli.App) *cobra.Command {
	var assemblies bool
	c := &cobra.Command{
		Use: "revert ID VERSION", Short: "Restore an older version of a memory",
		Long: `Restore a version that memctl history lists, as a new version of the memory, also if the memory is
deleted. The help of memctl undelete says what is restored with it. To see the changes first, run
memctl diff ID@VERSION ID.`,
		Example: "  memctl revert notes 65664\n  memctl revert --assembly project-x 65664",
		Args:    cli.Exactly(2, "an id and a version that memctl history lists"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			lsn, err := strconv.ParseUint(strings.TrimPrefix(args[1], args[0]+"@"), 10, 64) // as history prints it
			if err != nil {
				return cli.Usagef(cmd.CommandPath(), "%q is not a version: memctl history ID lists the versions", args[1])
			}
			ctx := cmd.Context()
			return a.With(ctx, cli.Write, func(st *varve.Store) error {
				begin(a, assemblies)
				if assemblies {
					return a.Assembly(ctx, st, args[0], func(id string) error {
						g, err := st.Assemblies().Revert(ctx, id, lsn)
						return broughtBack(a, id, g.Version, "reverted", err)
					})
				}
				return a.MemoryToChange(ctx, st, args[0], func(id string) error {
					m, err := st.Revert(ctx, id, lsn)
					return broughtBack(a, id, m.Version, "reverted", err)
				})
			})
		}),
	}
	c.Flags().BoolVar(&assemblies, "assembly", false, "revert an assembly")
	return c
}

func begin(a *cli.App, assemblies bool) {
	if assemblies {
		a.Document.Begin("assemblies")
	} else {
		a.Document.Begin("memories")
	}
}

func broughtBack(a *cli.App, id string, version uint64, verb string, err error) error {
	if err == nil {
		a.Document.Item(stored{id, version})
		a.Say("%s %s as version %d", verb, cli.PrintableID(id), version)
	}
	return err
}
