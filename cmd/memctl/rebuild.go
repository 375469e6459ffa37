package main

import (
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
		RunE: a.do(func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), write, func(st *varve.Store) error {
				if err := st.RebuildIndex(cmd.Context()); err != nil {
					return err
				}
				n := st.Stats().Memories
				if a.document != nil {
					a.document.member("memories", n)
					return nil
				}
				a.say("the index has all %d memories", n)
				return nil
			})
		}),
	}
}
