package main

import (
	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
)

func (a *app) rmCommand() *cobra.Command {
	var version uint64
	c := &cobra.Command{
		Use:     "rm ID...",
		Aliases: []string{"delete"},
		Short:   "Delete memories",
		Long:    `Delete memories. One that is missing does not keep the others from being deleted.`,
		Example: "  memctl rm notes\n  memctl rm notes --if-version 4096",
		Args:    atLeastOne("the id of a memory"),
		RunE: a.do(func(cmd *cobra.Command, args []string) error {
			var conds []varve.Cond
			if cmd.Flags().Changed("if-version") {
				if len(args) > 1 {
					return usagef(cmd.CommandPath(), "--if-version is about one memory, not %d", len(args))
				}
				conds = append(conds, varve.IfVersion(version))
			}
			return a.with(cmd.Context(), write, func(st *varve.Store) error {
				if a.document != nil {
					a.document.begin("deleted")
				}
				return a.each(cmd.Context(), args, func(id string) error {
					err := st.Delete(cmd.Context(), id, conds...)
					switch {
					case err != nil:
					case a.document != nil:
						a.document.item(id)
					default:
						a.say("deleted %s", printableID(id))
					}
					return err
				})
			})
		}),
	}
	c.Flags().Uint64Var(&version, "if-version", 0, "only if this `version` is the newest")
	return c
}
