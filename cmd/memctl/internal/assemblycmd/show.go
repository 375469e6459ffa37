package assemblycmd

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

func assemblyShowCommand(a *cli.App) *cobra.Command {
	var ids bool
	c := &cobra.Command{
		Use:   "show ID...",
		Short: "Print assemblies",
		Long: `Print the document of each assembly, byte for byte as in its file, or the ids of its members, one
per line. A missing id does not keep the others from being printed.`,
		Example: "  memctl assembly show rome\n  memctl assembly show rome --members | xargs memctl get --content",
		Args:    cli.AtLeastOne("the id of an assembly"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			if ids && a.Document != nil {
				return cli.Usagef(cmd.CommandPath(), "--members and --json cannot be combined")
			}
			ctx := cmd.Context()
			return a.With(ctx, cli.Read, func(st *varve.Store) error {
				a.Document.Begin("assemblies")
				return eachAssembly(ctx, a, st, args, func(id string) error {
					if a.Document == nil && !ids {
						doc, err := st.Assemblies().GetRaw(ctx, id)
						if err != nil {
							return err
						}
						_, err = a.Out.Data(cli.JSON).Write(append(bytes.TrimSuffix(doc, []byte("\n")), '\n'))
						return err
					}
					as, err := st.Assemblies().Get(ctx, id)
					if err == nil {
						err = showAssembly(a, &as)
					}
					return err
				})
			})
		}),
	}
	c.Flags().BoolVar(&ids, "members", false, "print the ids of the members only")
	return c
}

// shownAssembly is an assembly in the list that show prints.
type shownAssembly struct {
	ID       string          `json:"id"`
	Version  uint64          `json:"version"`
	Assembly json.RawMessage `json:"assembly"`
}

func showAssembly(a *cli.App, asm *varve.Assembly) error {
	if a.Document == nil {
		for _, id := range asm.MemoryIDs {
			fmt.Fprintln(a.Out, cli.PrintableID(id))
		}
		return nil
	}
	doc, err := cli.AssemblyLine(asm)
	if err == nil {
		a.Document.Item(shownAssembly{asm.ID, asm.Version, doc})
	}
	return err
}
