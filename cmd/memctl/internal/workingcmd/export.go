package workingcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/working"
)

// exportedScope is the working memory of a scope as one line of JSON in the export.
type exportedScope struct {
	Scope string `json:"scope"`
	shownState
	Checkpoints []shownState `json:"checkpoints"`
}

func (w *scopeApp) exportCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "export",
		Short: "Write scopes as lines of JSON",
		Long: `Write the content of scopes, one per line (JSONL), to stdout or into a file, which appears when it
is complete: the scope of --scope, or all. A line has these members:

  scope         as memctl working list shows it
  values        key: value
  ttl_seconds   key: remaining seconds, for the values that expire
  task          null when none is set
  scratchpad    [{"seq", "content", "timestamp"}]
  checkpoints   [{"checkpoint": {"id", "description", …}, and the members above except scope}], oldest first

The output is meant for other programs. memctl export omits working memory; memctl backup includes
all of it.`,
		Example: "  memctl working export | jq .values\n  memctl working export --scope session:s1 --file s1.jsonl",
		Args:    cli.NoArguments,
		RunE: w.Do(func(cmd *cobra.Command, _ []string) error {
			if w.Document != nil && (file == "" || file == "-") {
				return cli.Usagef(cmd.CommandPath(),
					"export writes lines to stdout, but --json writes one document: give --file, or omit --json")
			}
			return w.With(cmd.Context(), cli.Read, func(st *varve.Store) error {
				n := 0
				all := func(out io.Writer) (err error) {
					n, err = w.export(cmd, st, out)
					return err
				}
				if file == "" || file == "-" {
					return all(w.Out.Data(cli.JSON))
				}
				if err := w.ReplaceFile(file, 0o600, all); err != nil {
					return fmt.Errorf("writing %s: %w", file, err)
				}
				w.Document.Member("exported", n)
				w.Document.Member("file", file)
				w.Say("exported %s to %s", cli.Count(n, "scope", "scopes"), file)
				return nil
			})
		}),
	}
	c.Flags().StringVarP(&file, "file", "f", "", "write to this `file`; - is stdout")
	return c
}

// export writes the scope that --scope names, or all scopes. It reports a scope that cannot be read, and
// continues. n is the number of exported scopes.
func (w *scopeApp) export(cmd *cobra.Command, st *varve.Store, out io.Writer) (n int, err error) {
	ctx := cmd.Context()
	one := func(scope working.Scope) error {
		line, err := exportScope(ctx, st, scope)
		if err == nil {
			_, err = out.Write(append(line, '\n'))
			n++
		}
		return err
	}
	if w.scope != "" {
		scope, err := w.named(cmd)
		if err == nil {
			err = exists(ctx, st, scope)
		}
		if err != nil {
			return n, err
		}
		return n, one(scope)
	}
	for scope, err := range st.Working().Home().Scopes(ctx) {
		if ctx.Err() != nil {
			return n, ctx.Err()
		}
		if err == nil {
			err = cli.About("working memory of", scope.Key(), one(scope))
		}
		if err != nil {
			w.Fail(err)
		}
	}
	return n, nil
}

func exportScope(ctx context.Context, st *varve.Store, scope working.Scope) ([]byte, error) {
	m, err := open(ctx, st, scope)
	if err != nil {
		return nil, err
	}
	now, err := m.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	e := exportedScope{Scope: scope.Key(), shownState: stateShown(now), Checkpoints: []shownState{}}
	list, err := m.Checkpoints(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		s, err := m.LoadCheckpoint(ctx, c.ID)
		if err != nil {
			return nil, fmt.Errorf("checkpoint %s: %w", c.ID, err)
		}
		then := stateShown(s)
		then.Checkpoint = &s.Info
		e.Checkpoints = append(e.Checkpoints, then)
	}
	return json.Marshal(&e)
}

// stateShown returns the state of a scope in the form for the JSON output.
func stateShown(s *working.Snapshot) shownState {
	out := shownState{Values: s.Values, TTL: map[string]float64{}, Task: s.Task, Notes: s.Notes}
	for key, left := range s.TTL {
		out.TTL[key] = left.Seconds()
	}
	if out.Notes == nil {
		out.Notes = []working.Note{}
	}
	return out
}
