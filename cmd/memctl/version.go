package main

import (
	"github.com/spf13/cobra"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

func versionCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of memctl",
		Example: "  memctl version --json",
		Args:    cli.NoArguments,
		RunE: a.Do(func(*cobra.Command, []string) error {
			b := cli.ThisBuild()
			if a.Document != nil {
				a.Document.All(b)
				return nil
			}
			_, _ = a.Out.WriteString(b.Line())
			return nil
		}),
	}
}
