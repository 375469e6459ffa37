package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/memstore"
)

func (a *app) rmCommand() *cobra.Command {
	return a.deletes("memory", &cobra.Command{
		Short:   "Delete memories",
		Long:    `Delete memories. One that is missing does not keep the others from being deleted.`,
		Example: "  memctl rm notes\n  memctl rm notes --if-version 4096",
	}, func(ctx context.Context, st *varve.Store, id string, conds []varve.Cond) error {
		if id == memstore.TakeOverID {
			return keepMark(ctx, st)
		}
		return st.Delete(ctx, id, conds...)
	})
}

// deletes makes c a command that deletes what its arguments name.
func (a *app) deletes(what string, c *cobra.Command, del func(ctx context.Context, st *varve.Store, id string, conds []varve.Cond) error) *cobra.Command {
	var version uint64
	c.Use, c.Aliases = "rm ID...", []string{"delete"}
	c.Args = atLeastOne("the id of what is to be deleted")
	c.RunE = a.do(func(cmd *cobra.Command, args []string) error {
		var conds []varve.Cond
		if cmd.Flags().Changed("if-version") {
			if len(args) > 1 {
				return usagef(cmd.CommandPath(), "--if-version is about one %s, not %d", what, len(args))
			}
			conds = append(conds, varve.IfVersion(version))
		}
		return a.with(cmd.Context(), write, func(st *varve.Store) error {
			a.document.begin("deleted")
			return a.each(cmd.Context(), args, func(id string) error {
				err := del(cmd.Context(), st, id, conds)
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
	})
	c.Flags().Uint64Var(&version, "if-version", 0, "only if this `version` is the newest")
	return c
}
