package workingcmd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/working"
)

func (w *scopeApp) taskCommand() *cobra.Command {
	var (
		u        working.TaskUpdate
		text     [2]string
		numbers  [2]int
		progress float64
		more     []string
		clear    bool
	)
	c := &cobra.Command{
		Use:   "task",
		Short: "Show or change the state of the task",
		Long: `Show the state of the task. Flags change the members that they name; if the scope has no state, they
create it. Progress is limited to the range 0 to 100.`,
		Example: `  memctl working task --scope session:s1
  memctl working task --description "port the parser" --steps 5 --scope session:s1
  memctl working task --step 2 --progress 40 --set branch='"main"' --scope session:s1`,
		Args: cli.NoArguments,
		RunE: w.Do(func(cmd *cobra.Command, _ []string) error {
			fl := cmd.Flags()
			changes := clear
			for name, set := range map[string]func(){
				"description": func() { u.Description = &text[0] }, "status": func() { u.Status = &text[1] },
				"step": func() { u.CurrentStep = &numbers[0] }, "steps": func() { u.TotalSteps = &numbers[1] },
				"progress": func() { u.Progress = &progress },
				"set":      func() { u.Extra = map[string]any{} }, "unset": func() {},
			} {
				if fl.Changed(name) {
					set()
					changes = true
				}
			}
			for _, m := range more {
				name, value, ok := strings.Cut(m, "=")
				if !ok || name == "" {
					return cli.Usagef(cmd.CommandPath(), "--set %q: must be name=value", m)
				}
				v, err := w.value(cmd.Context(), value, false)
				if err != nil {
					return err
				}
				u.Extra[name] = v
			}
			if !changes {
				return w.withScope(cmd, cli.Read, func(ctx context.Context, m *working.Memory) error {
					t, set, err := m.Task(ctx)
					if err == nil && !set {
						err = cli.WithFix(fmt.Errorf("task state: %w", varve.ErrNotFound),
							"memctl working task --description TEXT sets one")
					}
					return w.showTask(&t, err)
				})
			}
			return w.withScope(cmd, cli.Write, func(ctx context.Context, m *working.Memory) error {
				if clear {
					was, err := m.ClearTask(ctx)
					n := 0
					if was {
						n = 1
					}
					return w.removed(n, "task state", "task states", err)
				}
				t, set, err := m.UpdateTask(ctx, u)
				if err == nil && !set {
					t, err = m.SetTask(ctx,
						working.Task{Description: text[0], Status: text[1], CurrentStep: numbers[0], TotalSteps: numbers[1],
							Progress: progress, Extra: u.Extra})
				}
				return w.showTask(&t, err)
			})
		}),
	}
	fl := c.Flags()
	fl.StringVar(&text[0], "description", "", "`text` that describes the task")
	fl.StringVar(&text[1], "status", "", "`text` of the status")
	fl.IntVar(&numbers[0], "step", 0, "number of the current step")
	fl.IntVar(&numbers[1], "steps", 0, "total number of steps")
	fl.Float64Var(&progress, "progress", 0, "progress in percent")
	fl.StringArrayVar(&more, "set", nil, "set another member, as `name=value`; the value is JSON or a text")
	fl.StringArrayVar(&u.Remove, "unset", nil, "remove another member with this `name`")
	fl.BoolVar(&clear, "clear", false, "remove the state of the task")
	return c
}

func (w *scopeApp) showTask(t *working.Task, err error) error {
	if err != nil {
		return err
	}
	if w.Document != nil {
		w.Document.Member("task", t)
		return nil
	}
	w.Say("description\t%s\nstatus\t%s\nstep\t%d of %d\nprogress\t%g %%\nstarted\t%s\nupdated\t%s",
		cli.Printable(t.Description), cli.Printable(t.Status),
		t.CurrentStep, t.TotalSteps, t.Progress, t.StartedAt.Format(time.RFC3339), t.UpdatedAt.Format(time.RFC3339))
	for _, name := range slices.Sorted(maps.Keys(t.Extra)) {
		w.Say("%s\t%s", cli.Printable(name), cli.Printable(valueText(t.Extra[name])))
	}
	return nil
}
