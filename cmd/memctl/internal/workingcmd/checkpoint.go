package workingcmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/working"
)

func (w *scopeApp) checkpointCommand() *cobra.Command {
	return w.Group(&cobra.Command{
		Use:   "checkpoint",
		Short: "Create, show, restore and compare checkpoints",
		Long: `Create, show, restore and compare checkpoints. A checkpoint has the values with their remaining
lifetimes, the task state and the scratchpad; it takes space for what changed since the one before.`,
		Example: `  memctl working checkpoint create "before the refactoring" --scope session:s1
  memctl working checkpoint list --scope session:s1
  memctl working checkpoint restore 6f1f… --scope session:s1`,
	}, w.createCheckpointCommand(), w.checkpointsCommand(), w.showCheckpointCommand(), w.restoreCheckpointCommand(),
		w.diffCheckpointCommand(), w.rmCheckpointCommand())
}

// aboutCheckpoint adds to an error about a checkpoint what the user can do about it.
func aboutCheckpoint(err error) error {
	if errors.Is(err, varve.ErrNotFound) {
		return cli.WithFix(err, "memctl working checkpoint list shows the checkpoints of the scope")
	}
	return err
}

func (w *scopeApp) createCheckpointCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "create [DESCRIPTION]",
		Short: "Save the current state",
		Long: `Save the current state as a checkpoint. If there are more than 100 checkpoints,
			the oldest are deleted.`,
		Example: `  memctl working checkpoint create "before the refactoring" --scope session:s1`,
		Args:    cobra.MaximumNArgs(1),
		RunE: w.Do(func(cmd *cobra.Command, args []string) error {
			description := ""
			if len(args) > 0 {
				description = args[0]
			}
			return w.withScope(cmd, cli.Write, func(ctx context.Context, m *working.Memory) error {
				c, err := m.Checkpoint(ctx, description)
				if err != nil {
					return err
				}
				if w.Document != nil {
					w.Document.Member("checkpoint", c)
				} else {
					fmt.Fprintln(w.Out, c.ID)
				}
				return nil
			})
		}),
	}
}

func (w *scopeApp) checkpointsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List checkpoints, oldest first",
		Long: `List checkpoints, oldest first, one per line with id, time, number of keys, number of entries of
the scratchpad and description, separated by tabs.`,
		Example: "  memctl working checkpoint list --scope session:s1",
		Args:    cli.NoArguments,
		RunE: w.onScope(cli.Read, func(ctx context.Context, m *working.Memory, _ []string) error {
			list, err := m.Checkpoints(ctx)
			if err != nil {
				return err
			}
			w.Document.Begin("checkpoints")
			for _, c := range list {
				switch {
				case c.Err != nil:
					w.Fail(c.Err)
				case w.Document != nil:
					w.Document.Item(c)
				default:
					fmt.Fprintf(w.Out, "%s\t%s\t%d\t%d\t%s\n", c.ID, c.Created.Format(time.RFC3339), c.Keys, c.Notes,
						cli.Printable(c.Description))
				}
			}
			return nil
		}),
	}
}

// shownState is the content of a checkpoint in the JSON output.
type shownState struct {
	Checkpoint *working.CheckpointInfo `json:"checkpoint,omitempty"`
	Values     map[string]any          `json:"values"`
	TTL        map[string]float64      `json:"ttl_seconds"`
	Task       *working.Task           `json:"task"`
	Notes      []working.Note          `json:"scratchpad"`
}

func (w *scopeApp) showCheckpointCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show the content of a checkpoint",
		Long:    `Show the content of a checkpoint as JSON.`,
		Example: "  memctl working checkpoint show 6f1f… --scope session:s1",
		Args:    cli.Exactly(1, "the id of a checkpoint"),
		RunE: w.onScope(cli.Read, func(ctx context.Context, m *working.Memory, args []string) error {
			s, err := m.LoadCheckpoint(ctx, args[0])
			if err != nil {
				return aboutCheckpoint(err)
			}
			out := stateShown(s)
			out.Checkpoint = &s.Info
			if w.Document != nil {
				w.Document.All(out)
			} else {
				return w.show(out)
			}
			return nil
		}),
	}
}

func (w *scopeApp) restoreCheckpointCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore ID",
		Short: "Go back to a checkpoint",
		Long: `Replace the current state by that of a checkpoint, in one step. All checkpoints are kept. The
previous state becomes a checkpoint, whose id is shown: restoring it undoes the restore.`,
		Example: "  memctl working checkpoint restore 6f1f… --scope session:s1",
		Args:    cli.Exactly(1, "the id of a checkpoint"),
		RunE: w.onScope(cli.Write, func(ctx context.Context, m *working.Memory, args []string) error {
			undo, err := m.Restore(ctx, args[0])
			if err != nil {
				return aboutCheckpoint(err)
			}
			w.Document.Member("undo", undo)
			w.Say("restored %s; to undo: memctl working checkpoint restore %s --scope %s", args[0], undo.ID,
				cli.ShellQuote(m.Scope().Key()))
			return nil
		}),
	}
}

func (w *scopeApp) diffCheckpointCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff ID [ID]",
		Short: "Compare two checkpoints, or one with the current state",
		Long: `Compare two checkpoints, or one with the current state. Each key has a line that begins with + if
only the second has it, with - if only the first has it, and with ~ if they differ.`,
		Example: "  memctl working checkpoint diff 6f1f… --scope session:s1",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) == 2 {
				return nil
			}
			return cli.Usagef(cmd.CommandPath(), "%s takes one or two checkpoints, not %d arguments", cmd.CommandPath(),
				len(args))
		},
		RunE: w.onScope(cli.Read, func(ctx context.Context, m *working.Memory, args []string) error {
			d, err := m.Diff(ctx, args[0], append(args, "")[1])
			if err != nil {
				return aboutCheckpoint(err)
			}
			w.showDifference(d)
			return nil
		}),
	}
}

func (w *scopeApp) showDifference(d *working.Difference) {
	if w.Document != nil {
		w.Document.All(struct {
			Added        map[string]any    `json:"added"`
			Removed      map[string]any    `json:"removed"`
			Changed      map[string][2]any `json:"changed"`
			Task         *[2]*working.Task `json:"task"`
			NotesAdded   []working.Note    `json:"scratchpad_added"`
			NotesRemoved []working.Note    `json:"scratchpad_removed"`
		}{d.Added, d.Removed, d.Changed, d.Task, d.NotesAdded, d.NotesRemoved})
		return
	}
	line := func(sign, key string, v any) {
		fmt.Fprintf(w.Out, "%s %s\t%s\n", sign, cli.Printable(key), cli.Printable(valueText(v)))
	}
	for _, key := range slices.Sorted(maps.Keys(d.Removed)) {
		line("-", key, d.Removed[key])
	}
	for _, key := range slices.Sorted(maps.Keys(d.Added)) {
		line("+", key, d.Added[key])
	}
	for _, key := range slices.Sorted(maps.Keys(d.Changed)) {
		line("~", key, d.Changed[key][1])
	}
	if d.Task != nil {
		line("~", "the task state", d.Task[1])
	}
	for _, n := range d.NotesRemoved {
		line("-", "scratchpad", n.Text)
	}
	for _, n := range d.NotesAdded {
		line("+", "scratchpad", n.Text)
	}
}

func (w *scopeApp) rmCheckpointCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "rm ID...",
		Aliases: []string{"delete"},
		Short:   "Delete checkpoints",
		Long:    `Delete checkpoints. A missing one does not keep the others from being deleted.`,
		Example: "  memctl working checkpoint rm 6f1f… --scope session:s1",
		Args:    cli.AtLeastOne("the id of a checkpoint"),
		RunE: w.onScope(cli.Write, func(ctx context.Context, m *working.Memory, args []string) error {
			w.Document.Begin("deleted")
			return w.Each(ctx, args, func(id string) error {
				was, err := m.DeleteCheckpoint(ctx, id)
				switch {
				case err != nil:
					return err
				case !was:
					return aboutCheckpoint(fmt.Errorf("checkpoint %q: %w", id, varve.ErrNotFound))
				default:
					w.Document.Item(id)
					w.Say("deleted %s", id)
				}
				return nil
			})
		}),
	}
}
