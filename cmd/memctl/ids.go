package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/varve-db/varve"
	"github.com/varve-db/varve/memstore"
)

func (a *app) clockID() (string, error) { return memstore.NewID(a.clock(), nil) }

// each does one thing for several ids; one that fails does not end it.
func (a *app) each(ctx context.Context, ids []string, f func(id string) error) error {
	for _, id := range ids {
		if err := f(id); err != nil {
			if ctx.Err() != nil {
				return err
			}
			a.fail(err)
		}
	}
	return nil
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
				default:
					a.document.item(id)
					a.say("deleted %s", printableID(id))
				}
				return err
			})
		})
	})
	c.Flags().Uint64Var(&version, "if-version", 0, "only if this `version` is the newest")
	return c
}
