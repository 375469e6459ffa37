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
		Short: "Write pending changes to the files and the index",
		Long: `Write everything that any process has committed to the files of the store, and the whole index
to memory_index.json. Committed changes are safe in the log without a flush. History beyond
history_bytes and history_days is removed.`,
		Example: "  memctl flush && git add storage",
		Args:    cli.NoArguments,
		RunE: a.OnStore(cli.Write, func(ctx context.Context, st *varve.Store, _ []string) error {
			if err := st.Admin().Compact(ctx); err != nil {
				return err
			}
			s := st.Admin().Stats()
			a.Document.Member("memories", s.Memories)
			a.Document.Member("flushed", s.Flushed)
			a.Say("files and index are up to date: %s", cli.Count(int(s.Memories), "memory", "memories"))
			return nil
		}),
	}
}
