package upkeep

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

func RebuildIndex(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "rebuild-index",
		Short: "Rebuild the index from the log and the files",
		Long: `Rebuild memory_index.json from the log and the files. The old index is moved to backups/ if it is
sound. Other processes may use the store meanwhile. memctl repair does this where necessary.`,
		Example: "  memctl rebuild-index",
		Args:    cli.NoArguments,
		RunE: a.OnStore(cli.Write, func(ctx context.Context, st *varve.Store, _ []string) error {
			if err := st.Admin().RebuildIndex(ctx); err != nil {
				return err
			}
			n := st.Admin().Stats().Memories
			a.Document.Member("memories", n)
			a.Say("rebuilt the index: %s", cli.Count(int(n), "memory", "memories"))
			return nil
		}),
	}
}
