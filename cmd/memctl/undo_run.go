package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/upkeep"
	"github.com/varve-db/varve/internal/timearg"
)

// undoFlags are the flags of an undo: which commits are undone, and how.
type undoFlags struct {
	run, since         string
	yes, partial, plan bool
}

func undoCommand(a *cli.App) *cobra.Command {
	var f undoFlags
	c := &cobra.Command{
		Use:        "undo [POSITION] | --run SESSION|WRITER [--since TIME]",
		SuggestFor: []string{"rollback", "reset"},
		Short:      "Undo a commit, or all commits of a run",
		Long: `Take back the last commit of your own, the commit at a position that memctl log lists, or with
--run everything that a writer wrote: its number or a name of it, such as that of its session. What was
replaced or deleted gets the exact bytes that it had, and what was created is deleted. An undo is a
commit too: memctl undo takes it back again.

Your own commits are those of memctl on this machine with the same VARVE_AGENT and VARVE_SESSION, in
any terminal. Commits that changed only working memory, and what the store removes or computes by
itself, are ignored; to take back an eviction or an expiry, give its position. A purge cannot be taken back: after
one, give the position of the commit that you mean.

The plan is shown first. What another commit has changed since stays, and so does a memory that an
assembly of others contains, and what was purged or is not kept in the history any more: then nothing
is changed, unless --partial takes back the rest. An expiry that is over does not come back, nor does
an embedding of a model that was replaced. No limit of the store is passed, and working memory is not
taken back.

An undo of more than half a segment of the log (32 MiB) is several commits. If it is interrupted, the
same command continues it, and so does memctl undo.

On a terminal undo asks for confirmation; elsewhere it requires --yes.`,
		Example: `  memctl undo
  memctl undo 66624 --yes
  memctl undo --run nightly-import --plan
  memctl undo --run 12 --since 2h --partial --yes --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			o, err := f.options(cmd, a, args)
			if err != nil {
				return err
			}
			if _, ok := cli.Terminal(a.In); !ok && !f.yes && !f.plan {
				return cli.Usagef(cmd.CommandPath(), "nothing was changed: without a terminal, undo needs --yes; --plan shows "+
					"what it would do")
			}
			ctx, how := cmd.Context(), cli.Write
			if f.plan {
				how = cli.Read
			}
			return a.With(ctx, how, func(st *varve.Store) error { return takeBack(ctx, a, st, o, &f) })
		}),
	}
	fl := c.Flags()
	fl.StringVar(&f.run, "run", "", "undo the commits of the writer with this `name` or number")
	fl.StringVar(&f.since, "since", "", "with --run, only commits at this `time` or later: 2026-01-31, yesterday, 7d, 1h")
	fl.BoolVar(&f.partial, "partial", false,
		"do not undo documents that later commits changed, or whose previous version is not kept")
	fl.BoolVar(&f.plan, "plan", false, "show what would be done, and change nothing")
	fl.BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
	return c
}

func (f *undoFlags) options(cmd *cobra.Command, a *cli.App, args []string) (o varve.UndoOptions, err error) {
	path, byRun := cmd.CommandPath(), cmd.Flags().Changed("run")
	o = varve.UndoOptions{Run: f.run, Partial: f.partial}
	switch {
	case len(args) > 0 && byRun:
		return o, cli.Usagef(path, "give a position or --run, not both")
	case byRun && f.run == "":
		return o, cli.Usagef(path, "--run is empty: give the name or the number of a writer")
	case !byRun && cmd.Flags().Changed("since"):
		return o, cli.Usagef(path, "--since needs --run")
	}
	if len(args) > 0 {
		if o.Position, err = strconv.ParseUint(args[0], 10, 64); err != nil || o.Position == 0 {
			return o, cli.Usagef(path, "%q is not a position: memctl log lists the positions", args[0])
		}
	}
	if cmd.Flags().Changed("since") {
		at, err := timearg.Parse(f.since, a.Clock().Local())
		if err != nil {
			return o, cli.Usagef(path, "--since %w", err)
		}
		o.Since = at.From
	}
	return o, nil
}

func takeBack(ctx context.Context, a *cli.App, st *varve.Store, o varve.UndoOptions, f *undoFlags) error {
	p, err := st.PlanUndo(ctx, o)
	if errors.Is(err, varve.ErrNotFound) || errors.Is(err, varve.ErrPurged) {
		return cli.WithFix(err, "memctl log lists the commits, with their positions and writers")
	}
	if err != nil {
		return err
	}
	showUndo(a, p)
	switch conflicts := len(p.Conflicts)+len(p.Unread) > 0; {
	case conflicts && !p.Partial:
		undoDocument(a, p)
		if f.plan {
			return nil
		}
		return undoFailed(&varve.UndoError{Plan: *p})
	case len(p.Changes) == 0 || f.plan:
		undoDocument(a, p)
		return nil
	}
	if !f.yes {
		refused := fmt.Errorf("%w: nothing was changed: the undo was not confirmed", varve.ErrInvalid)
		what := cli.Count(len(p.Changes), "document", "documents") + " will be changed."
		if err := upkeep.Confirm(ctx, a, what, refused); err != nil {
			return err
		}
	}
	p, err = st.Undo(ctx, p.UndoOptions) // what was shown, also if there are more commits by now
	if p == nil {
		return err
	}
	undoDocument(a, p)
	if p.Done > 0 || err == nil {
		a.Say("took back %s: changed %s", cli.Count(p.Commits, "commit", "commits"),
			cli.Count(p.Done, "document", "documents"))
	}
	return undoFailed(err)
}

// undoFailed adds a remedy to the error of an undo.
func undoFailed(err error) error {
	var conflicts *varve.UndoError
	if errors.As(err, &conflicts) && conflicts.Plan.Done == 0 {
		return cli.WithFix(err, "--partial undoes the rest")
	}
	return err
}

// undoShown is the maximum number of documents that the printed plan of an undo lists.
const undoShown = 20

// showUndo prints the plan of an undo: what it changes, and what it cannot take back.
func showUndo(a *cli.App, p *varve.UndoPlan) {
	if len(p.Changes)+len(p.Conflicts) == 0 {
		a.Say("nothing to undo")
	} else {
		span := fmt.Sprintf("at position %d", p.First)
		if p.Commits > 1 {
			span = fmt.Sprintf("at positions %d to %d", p.First, p.Last)
		}
		again := ""
		if p.Continues {
			again = ", the rest of an undo that was interrupted"
		}
		a.Say("%s %s%s", cli.Count(p.Commits, "commit", "commits"), span, again)
	}
	count := map[string]int{}
	for i, c := range p.Changes {
		if count[c.What]++; i >= undoShown {
			continue
		}
		line := fmt.Sprintf("%-8s  %s %s", c.What, c.Kind, cli.PrintableID(c.ID))
		if c.What != varve.UndoDelete {
			line += fmt.Sprintf(" to version %d", c.Restores)
		}
		a.Say("%s", line)
	}
	if len(p.Changes) > undoShown {
		var sums []string
		for _, what := range []string{varve.UndoRestore, varve.UndoUndelete, varve.UndoDelete} {
			if n := count[what]; n > 0 {
				sums = append(sums, fmt.Sprintf("%s %d", what, n))
			}
		}
		a.Say("and %d more, in all: %s", len(p.Changes)-undoShown, strings.Join(sums, ", "))
	}
	for i, c := range p.Conflicts {
		if i == undoShown {
			a.Say("stays     and %d more", len(p.Conflicts)-i)
			break
		}
		a.Say("stays     %s %s: %s", c.Kind, cli.PrintableID(c.ID), cli.Printable(c.Err.Error()))
	}
	for _, err := range p.Unread {
		a.Note("not read: %v", err)
	}
	if n := len(p.Scopes); n > 0 {
		a.Note("not undone: the changes that these commits made to %s of working memory", cli.Count(n, "scope",
			"scopes"))
	}
}

type undoneItem struct {
	Kind     string `json:"kind"`
	ID       string `json:"id"`
	What     string `json:"what"`
	Version  uint64 `json:"version,omitempty"`
	Restores uint64 `json:"restores,omitempty"`
}

type staysItem struct {
	Kind    string        `json:"kind"`
	ID      string        `json:"id"`
	Version uint64        `json:"version,omitempty"`
	Writer  *varve.Writer `json:"writer,omitempty"`
	Reason  string        `json:"reason"`
}

// undoDocument writes the plan of an undo, or the changes that it made, as JSON.
func undoDocument(a *cli.App, p *varve.UndoPlan) {
	d := a.Document
	if d == nil {
		return
	}
	d.Member("commits", p.Commits)
	d.Member("first", p.First)
	d.Member("last", p.Last)
	d.Member("before", p.Before)
	d.Member("continues", p.Continues)
	d.Begin("changes")
	for _, c := range p.Changes {
		d.Item(undoneItem(c))
	}
	d.Begin("conflicts")
	for _, c := range p.Conflicts {
		d.Item(staysItem{c.Kind, c.ID, c.Version, writerItem(&c.Writer), c.Err.Error()})
	}
	d.Begin("working")
	for _, scope := range p.Scopes {
		d.Item(scope)
	}
	d.Member("done", p.Done)
	parts := p.Parts
	if parts == nil {
		parts = []uint64{}
	}
	d.Member("parts", parts)
}
