package workingcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/working"
)

// Command returns memctl working, the group of commands for working memory.
func Command(a *cli.App) *cobra.Command {
	w := &scopeApp{App: a}
	c := w.Group(&cobra.Command{
		Use:   "working",
		Short: "Manage working memory: the current state of an agent",
		Long: `Manage working memory, the current state of an agent: values with a time to live, the state of its
task, a scratchpad, and checkpoints to go back to. Each belongs to a scope, which --scope names:

  global
  project:p1/agent_type:coder/agent_instance:a/session:s1      levels may be omitted`,
		Example: `  memctl working set draft "to be done" --scope session:s1
  memctl working get draft --scope session:s1
  memctl working checkpoint create --scope session:s1
  memctl working list`,
	}, w.listCommand(), w.getCommand(), w.setCommand(), w.rmCommand(), w.keysCommand(), w.taskCommand(),
		w.scratchpadCommand(), w.checkpointCommand(), w.exportCommand(), w.statsCommand(), w.dropCommand())
	c.PersistentFlags().StringVar(&w.scope, "scope", "",
		"`scope` of the working memory, as memctl working list shows it")
	return c
}

// scopeApp has the App and the flags that the commands of the group share.
type scopeApp struct {
	*cli.App
	scope string
}

// named returns the scope of working memory that --scope names.
func (w *scopeApp) named(cmd *cobra.Command) (working.Scope, error) {
	if w.scope == "" {
		return working.Scope{}, cli.Usagef(cmd.CommandPath(), "--scope is missing, for example --scope session:s1")
	}
	s, err := working.ParseScope(w.scope)
	if err != nil {
		return s, cli.Usage(cmd.CommandPath(), err)
	}
	return s, nil
}

// withScope runs f with the working memory of the scope that --scope names. Only commands that write create the
// scope.
func (w *scopeApp) withScope(cmd *cobra.Command, how cli.Access,
	f func(ctx context.Context, m *working.Memory) error) error {
	scope, err := w.named(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	return w.With(ctx, how, func(st *varve.Store) error {
		if how != cli.Write {
			if err := exists(ctx, st, scope); err != nil {
				return err
			}
		}
		m, err := open(ctx, st, scope)
		if err != nil {
			return err
		}
		return f(ctx, m)
	})
}

// open opens the working memory of a scope. Numbers in the values are read without a conversion, so that memctl shows
// them as they were written.
func open(ctx context.Context, st *varve.Store, scope working.Scope) (*working.Memory, error) {
	return st.Working().Open(ctx, scope, &working.Options{AsWritten: true})
}

// onScope returns a function for the field RunE of a command. The returned function calls f with the working memory of
// the scope that --scope names.
func (w *scopeApp) onScope(how cli.Access,
	f func(ctx context.Context, m *working.Memory, args []string) error) func(*cobra.Command, []string) error {
	return w.Do(func(cmd *cobra.Command, args []string) error {
		return w.withScope(cmd, how, func(ctx context.Context, m *working.Memory) error { return f(ctx, m, args) })
	})
}

func exists(ctx context.Context, st *varve.Store, scope working.Scope) error {
	res, err := st.Working().Home().Do(ctx, &working.Request{Scope: scope, Op: working.OpCount{}})
	if err == nil && res.Counts.Created.IsZero() {
		err = cli.WithFix(fmt.Errorf("scope %s: %w", scope.Key(), varve.ErrNotFound),
			"memctl working list shows the scopes of the store")
	}
	return err
}

func (w *scopeApp) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List scopes",
		Long: `List the scopes that have working memory, one per line with scope, time of creation (UTC), number
of keys, number of entries of the scratchpad and number of checkpoints, separated by tabs.`,
		Example: "  memctl working list\n  memctl working list --json",
		Args:    cli.NoArguments,
		RunE: w.Do(func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return w.With(ctx, cli.Read, func(st *varve.Store) error {
				w.Document.Begin("scopes")
				n, home := 0, st.Working().Home()
				for scope, err := range home.Scopes(ctx) {
					var res working.Result
					if err == nil {
						n++
						res, err = home.Do(ctx, &working.Request{Scope: scope, Op: working.OpCount{}})
					}
					if err != nil {
						w.Fail(err)
						continue
					}
					w.listed(scope, res.Counts)
				}
				if n == 0 && w.Document == nil {
					w.Note("no scope has working memory")
				}
				return ctx.Err()
			})
		}),
	}
}

// listedScope is a scope in the JSON output of working list.
type listedScope struct {
	Scope       string    `json:"scope"`
	Created     time.Time `json:"created_at"`
	Keys        int       `json:"user_keys"`
	Bytes       int64     `json:"bytes"`
	Notes       int       `json:"scratchpad_entries"`
	Checkpoints int       `json:"checkpoint_count"`
	Task        bool      `json:"has_task_state"`
}

func (w *scopeApp) listed(scope working.Scope, c working.Counts) {
	if w.Document != nil {
		w.Document.Item(listedScope{scope.Key(), c.Created, c.Keys, c.Bytes, c.Notes, c.Checkpoints, c.Task})
		return
	}
	fmt.Fprintf(w.Out, "%s\t%s\t%d\t%d\t%d\n", cli.Printable(scope.Key()), c.Created.Format(time.RFC3339), c.Keys, c.Notes,
		c.Checkpoints)
}

func (w *scopeApp) statsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "stats",
		Short:   "Show statistics of a scope",
		Long:    `Show statistics of a scope, all as of one moment.`,
		Example: "  memctl working stats --scope session:s1",
		Args:    cli.NoArguments,
		RunE: w.onScope(cli.Read, func(ctx context.Context, m *working.Memory, _ []string) error {
			s, err := m.Stats(ctx)
			if err != nil {
				return err
			}
			if w.Document != nil {
				w.Document.Member("stats", s)
				return nil
			}
			w.Say("scope\t%s\ncreated\t%s\nkeys\t%d\nexpired\t%d\nbytes\t%d\nscratchpad\t%d\ncheckpoints\t%d\ntask\t%v\nhome\t%s",
				cli.Printable(s.Scope), s.Created.Format(time.RFC3339), s.UserKeys, s.Expired, s.Bytes, s.Notes, s.Checkpoints,
				s.HasTask, s.Home)
			return nil
		}),
	}
}

func (w *scopeApp) dropCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "drop",
		Short: "Remove a scope and everything in it",
		Long: `Remove a scope and everything in it, including its checkpoints. This cannot be undone, but the log
and the archive keep the data for a while: memctl purge --working leaves no trace.`,
		Example: "  memctl working drop --scope session:s1",
		Args:    cli.NoArguments,
		RunE: w.Do(func(cmd *cobra.Command, _ []string) error {
			scope, err := w.named(cmd)
			if err != nil {
				return err
			}
			return w.With(cmd.Context(), cli.Write, func(st *varve.Store) error {
				if err := exists(cmd.Context(), st, scope); err != nil && !errors.Is(err, varve.ErrCorrupt) {
					return err
				}
				_, err := st.Working().Home().Do(cmd.Context(), &working.Request{Scope: scope, Op: working.OpDrop{}})
				if err == nil && w.Document != nil {
					w.Document.Member("dropped", scope.Key())
				} else if err == nil {
					w.Say("dropped %s", cli.Printable(scope.Key()))
				}
				return err
			})
		}),
	}
}

// show prints a value as valueText returns it, or as JSON with --json.
func (w *scopeApp) show(v any) error {
	form := cli.JSON
	if _, ok := v.(string); ok {
		form = cli.Text
	}
	_, err := w.Out.Data(form).Write([]byte(valueText(v) + "\n"))
	return err
}

// valueText returns a value for a terminal: a text unchanged, any other value as JSON.
func valueText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
