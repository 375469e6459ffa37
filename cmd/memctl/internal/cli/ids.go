package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/memstore"
)

func (a *App) NewID() (string, error) { return memstore.NewID(a.Clock(), nil) }

// Each calls f for each of several ids. If f returns an error, Each reports the error and continues.
func (a *App) Each(ctx context.Context, ids []string, f func(id string) error) error {
	for _, id := range ids {
		if err := f(id); err != nil {
			if ctx.Err() != nil {
				return err
			}
			a.Fail(err)
		}
	}
	return nil
}

// Deletes completes c to a command that deletes the documents that its arguments name by their ids or by endings of
// ids. orEnding calls f with the whole id of an argument, and del deletes a document. noun is the noun for a document
// in messages.
func (a *App) Deletes(noun string, c *cobra.Command,
	orEnding func(ctx context.Context, st *varve.Store, id string, f func(id string) error) error,
	del func(ctx context.Context, st *varve.Store, id string, conds []varve.Cond) error) *cobra.Command {
	var version uint64
	c.Use, c.Aliases, c.SuggestFor = "rm ID...", []string{"delete"}, []string{"remove", "forget", "del"}
	c.Args = AtLeastOne("at least one id")
	c.RunE = a.Do(func(cmd *cobra.Command, args []string) error {
		if slices.Contains(args, "") { // before anything is deleted
			return Usagef(cmd.CommandPath(), "an id is empty; nothing was deleted")
		}
		var conds []varve.Cond
		if cmd.Flags().Changed("if-version") {
			if len(args) > 1 {
				return Usagef(cmd.CommandPath(), "--if-version works with only one %s, not with %d", noun, len(args))
			}
			conds = append(conds, varve.IfVersion(version))
		}
		return a.With(cmd.Context(), Write, func(st *varve.Store) error {
			a.Document.Begin("deleted")
			return a.Each(cmd.Context(), args, func(id string) error {
				return orEnding(cmd.Context(), st, id, func(id string) error {
					err := del(cmd.Context(), st, id, conds)
					if err == nil {
						a.Document.Item(id)
						a.Say("deleted %s", PrintableID(id))
					}
					return err
				})
			})
		})
	})
	c.Flags().Uint64Var(&version, "if-version", 0, "only if this `version` is the newest one")
	return c
}
