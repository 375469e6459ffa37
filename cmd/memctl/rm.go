package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/mcpcmd"
	"github.com/varve-db/varve/memstore"
)

func rmCommand(a *cli.App) *cobra.Command {
	return a.Deletes("memory", &cobra.Command{
		Short: "Delete memories",
		Long: `Delete memories, each named by its id or by an ending of it that memctl list shows. A missing id
does not keep the others from being deleted.`,
		Example: "  memctl rm notes\n  memctl rm notes --if-version 4096",
	}, a.MemoryToChange, func(ctx context.Context, st *varve.Store, id string, conds []varve.Cond) error {
		if id == memstore.TakeOverID {
			return mcpcmd.KeepMark(ctx, st)
		}
		return st.Delete(ctx, id, conds...)
	})
}
