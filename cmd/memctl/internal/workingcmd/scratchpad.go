package workingcmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/working"
)

func (w *scopeApp) scratchpadCommand() *cobra.Command {
	return w.Group(&cobra.Command{
		Use:   "scratchpad",
		Short: "Show, append to or clear the scratchpad",
		Long:  `Show the scratchpad, append to it, or clear it. All processes see the entries in the same order.`,
		Example: `  memctl working scratchpad list -n 10 --scope session:s1
  memctl working scratchpad append "the tests fail on Windows only" --scope session:s1`,
	}, w.notesCommand(), w.appendCommand(), w.clearNotesCommand())
}

func (w *scopeApp) notesCommand() *cobra.Command {
	last := 0
	c := &cobra.Command{
		Use:     "list",
		Short:   "Show the entries, oldest first",
		Long:    `Show the entries, oldest first, one per line with time (UTC) and text, separated by a tab.`,
		Example: "  memctl working scratchpad list -n 10 --scope session:s1",
		Args:    cli.NoArguments,
		RunE: w.Do(func(cmd *cobra.Command, _ []string) error {
			if last < 0 {
				return cli.Usagef(cmd.CommandPath(), "--last %d: must be 0 (all) or more", last)
			}
			if last == 0 {
				last = -1
			}
			return w.withScope(cmd, cli.Read, func(ctx context.Context, m *working.Memory) error {
				notes, err := m.Notes(ctx, last)
				if err != nil {
					return err
				}
				if w.Document != nil {
					w.Document.Member("entries", notes)
					return nil
				}
				for _, n := range notes {
					fmt.Fprintf(w.Out, "%s\t%s\n", n.Time.Format(time.RFC3339), cli.Printable(n.Text))
				}
				return nil
			})
		}),
	}
	c.Flags().IntVarP(&last, "last", "n", 0, "show the last `N` entries; 0 means all")
	return c
}

func (w *scopeApp) appendCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "append TEXT",
		Short:   "Append an entry",
		Long:    `Append an entry; "-" reads it from stdin. A scope that does not exist is created.`,
		Example: `  memctl working scratchpad append "the tests fail on Windows only" --scope session:s1`,
		Args:    cli.Exactly(1, "a text"),
		RunE: w.Do(func(cmd *cobra.Command, args []string) error {
			text, err := w.value(cmd.Context(), args[0], true)
			if err != nil {
				return err
			}
			return w.withScope(cmd, cli.Write, func(ctx context.Context, m *working.Memory) error {
				n, err := m.Append(ctx, text.(string))
				if err != nil {
					return err
				}
				w.Document.Member("entry", n)
				w.Say("appended entry %d", n.Seq)
				return nil
			})
		}),
	}
}

func (w *scopeApp) clearNotesCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "clear",
		Short:   "Remove all entries",
		Long:    `Remove all entries.`,
		Example: "  memctl working scratchpad clear --scope session:s1",
		Args:    cli.NoArguments,
		RunE: w.onScope(cli.Write, func(ctx context.Context, m *working.Memory, _ []string) error {
			n, err := m.ClearScratchpad(ctx)
			return w.removed(n, "entry", "entries", err)
		}),
	}
}
