package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

func flushCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "flush",
		Short: "Bring files and index up to date",
		Long: `Write everything that any process has committed into its files, and all of the index into
memory_index.json. Nothing is at stake without it: what is committed is in the log.`,
		Example: "  memctl flush && git add storage",
		Args:    cli.NoArguments,
		RunE: a.OnStore(cli.Write, func(ctx context.Context, st *varve.Store, _ []string) error {
			if err := st.Admin().Compact(ctx); err != nil {
				return err
			}
			s := st.Admin().Stats()
			a.Document.Member("memories", s.Memories)
			a.Document.Member("flushed", s.Flushed)
			a.Say("files and index have all %d memories", s.Memories)
			return nil
		}),
	}
}
