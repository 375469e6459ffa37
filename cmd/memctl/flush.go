package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

func flushCommand(a *cli.App) *cobra.Command {
	inflate := false
	c := &cobra.Command{
		Use:   "flush",
		Short: "Write pending changes to the files and the index",
		Long: `Write everything that any process has committed to the files of the store, and the whole index
to memory_index.json. Committed changes are safe in the log without a flush. History beyond
history_bytes and history_days is removed.

The log is compressed, so a small log that was crafted for this purpose could fill the disk with
files. Memories that the log compresses more than 64-fold are therefore written to files only up to
256 MiB in all. Older versions compressed repetitive texts to that degree; --inflate writes all of
these memories.`,
		Example: "  memctl flush && git add storage",
		Args:    cli.NoArguments,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			dir, err := a.Locate()
			if err != nil {
				return err
			}
			more := func(o *varve.Options) { o.Inflate = inflate }
			return a.WithIn(cmd.Context(), dir, cli.Write, more,
				func(st *varve.Store) error { return flushAll(cmd.Context(), a, st) })
		}),
	}
	c.Flags().BoolVar(&inflate, "inflate", false,
		"also write all memories that the log compresses more than 64-fold")
	return c
}

func flushAll(ctx context.Context, a *cli.App, st *varve.Store) error {
	if err := st.Admin().Compact(ctx); err != nil {
		return err
	}
	s := st.Admin().Stats()
	a.Document.Member("memories", s.Memories)
	a.Document.Member("flushed", s.Flushed)
	a.Say("files and index are up to date: %s", cli.Count(int(s.Memories), "memory", "memories"))
	return nil
}
