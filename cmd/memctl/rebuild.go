package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
)

func rebuildCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "rebuild-index",
		Short: "Make the index anew from log and files",
		Long: `Make memory_index.json anew from the log and the files. The old one goes to backups/ if it is
sound. Others may go on using the store. memctl repair does this where it is needed.`,
		Example: "  memctl rebuild-index",
		Args:    noArguments,
		RunE: a.onStore(write, func(ctx context.Context, st *varve.Store, _ []string) error {
			if err := st.RebuildIndex(ctx); err != nil {
				return err
			}
			n := st.Stats().Memories
			a.document.member("memories", n)
			a.say("the index has all %d memories", n)
			return nil
		}),
	}
}
