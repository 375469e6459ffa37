package main

import (
	"github.com/spf13/cobra"
)

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of memctl",
		Example: "  memctl version --json",
		Args:    noArguments,
		RunE: a.do(func(*cobra.Command, []string) error {
			b := thisBuild()
			if a.document != nil {
				a.document.all(b)
				return nil
			}
			_, _ = a.out.WriteString(b.line())
			return nil
		}),
	}
}
