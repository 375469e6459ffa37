package main

import (
	"github.com/spf13/cobra"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

func versionCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of memctl",
		Long: `Print the version of memctl, the Go version and the system that it was built for, the commit and its
date where they are known, the highest version of each format that it reads and writes, and the
features of a store that it knows. A store with a newer format or an unknown feature is refused with
exit status 12.`,
		Example: "  memctl version\n  memctl version --json | jq .formats",
		Args:    cli.NoArguments,
		RunE: a.Do(func(*cobra.Command, []string) error {
			b := cli.ThisBuild()
			if a.Document != nil {
				a.Document.All(b)
				return nil
			}
			b.Print(a.Out)
			return nil
		}),
	}
}
