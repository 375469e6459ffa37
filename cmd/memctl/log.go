package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/timearg"
)

// logFlags are the flags that select commits.
type logFlags struct {
	since, until, by, session, id string
	deleted                       bool
	before                        uint64
	limit                         int
}

func logCommand(a *cli.App) *cobra.Command {
	var f logFlags
	c := &cobra.Command{
		Use:        "log",
		SuggestFor: []string{"commits", "reflog"},
		Short:      "List the commits, the newest first",
		Long: `List the commits that the log and the archive still have, by any process, the newest first, and
exit; memctl watch shows those to come. On a terminal the result is a table, otherwise one line per
changed memory, assembly or scope of working memory with position, time (UTC), writer, what was done
(created, changed or deleted) and why, if no caller wrote it (expired, evicted, edited by hand, upkeep,
or undo), kind and id, separated by tabs. With --json a commit has the list of its changes; --output
id prints the ids.

A writer has a number that the store issued. --by takes the number, or a name: of the program, the
agent, its session, the client or its token. What a program says about itself is not verified. The
writer of versions that an older program wrote, and of edits of the files by hand, is unknown.

--deleted shows deletions: memctl undelete restores them, and memctl undo POSITION takes a commit back.`,
		Example: `  memctl log --limit 10
  memctl log --since 1h --by claude-code
  memctl log --deleted --since yesterday --output id | xargs memctl undelete
  memctl log --id notes --json | jq '.commits[0].writer'`,
		Args: cli.NoArguments,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(cmd, a.Clock())
			if err != nil {
				return err
			}
			return a.With(cmd.Context(), cli.Read, func(st *varve.Store) error {
				return listCommits(cmd.Context(), a, st, o, f.limit)
			})
		}),
	}
	fl := c.Flags()
	fl.StringVar(&f.since, "since", "", "only commits at this `time` or later: 2026-01-31, yesterday, 7d, 1h")
	fl.StringVar(&f.until, "until", "", "only commits before this `time`, or in it if it is a day, week, month or year")
	fl.StringVar(&f.by, "by", "", "only commits by this writer: its `name`, its number, or unknown")
	fl.StringVar(&f.session, "session", "", "only changes of memories and working memory of this `session`")
	fl.StringVar(&f.id, "id", "", "only changes of this `id`")
	fl.BoolVar(&f.deleted, "deleted", false, "only deletions")
	fl.Uint64Var(&f.before, "before", 0, "only commits before this `position`, to continue a listing")
	fl.IntVarP(&f.limit, "limit", "n", 50, "list at most `N` commits; 0 means all")
	a.OutputFlag(c, cli.FormTable, cli.FormJSON, cli.FormJSONL, cli.FormID)
	return c
}

func (f *logFlags) options(cmd *cobra.Command, now time.Time) (o varve.LogOptions, err error) {
	path := cmd.CommandPath()
	if f.limit < 0 {
		return o, cli.Usagef(path, "--limit %d: must be 0 (all) or more", f.limit)
	}
	for _, name := range []string{"by", "session", "id"} {
		if v, _ := cmd.Flags().GetString(name); v == "" && cmd.Flags().Changed(name) {
			return o, cli.Usagef(path, "--%s is empty: give a value, or omit it", name)
		}
	}
	o = varve.LogOptions{By: f.by, Deleted: f.deleted, Before: f.before}
	if cmd.Flags().Changed("session") {
		o.Session = &f.session
	}
	if cmd.Flags().Changed("id") {
		o.ID = &f.id
	}
	for _, t := range []struct {
		name, value string
		set         func(at timearg.Span)
	}{
		{"since", f.since, func(at timearg.Span) { o.Since = at.From }},
		{"until", f.until, func(at timearg.Span) { o.Until = at.To }},
	} {
		if !cmd.Flags().Changed(t.name) {
			continue
		}
		at, err := timearg.Parse(t.value, now.Local())
		if err != nil {
			return o, cli.Usagef(path, "--%s %w", t.name, err)
		}
		t.set(at)
	}
	return o, nil
}

// commitItem is a commit in the JSON output of log.
type commitItem struct {
	Position uint64        `json:"position"`
	Next     uint64        `json:"next"`
	Time     time.Time     `json:"time"`
	Writer   *varve.Writer `json:"writer,omitempty"`
	Changes  []changeItem  `json:"changes"`
}

type changeItem struct {
	Version  uint64 `json:"version"`
	Kind     string `json:"kind"`
	ID       string `json:"id"`
	What     string `json:"what"`
	Cause    string `json:"cause,omitempty"`
	Previous uint64 `json:"previous,omitempty"`
}

func listCommits(ctx context.Context, a *cli.App, st *varve.Store, o varve.LogOptions, limit int) error {
	l := a.List("commits", nil, cli.Column{Name: "POSITION", Right: true}, cli.Column{Name: "TIME"},
		cli.Column{Name: "WRITER", Most: 32}, cli.Column{Name: "WHAT"}, cli.Column{Name: "KIND"}, cli.Column{Name: "ID"})
	n, next := 0, uint64(0)
	for c, err := range st.Log(ctx, o) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			a.Fail(err)
			continue
		}
		if limit > 0 && n == limit {
			next = c.Next
			break
		}
		n++
		if err := addCommit(ctx, a, l, &c); err != nil {
			return err
		}
	}
	if err := l.End(ctx); err != nil {
		return err
	}
	switch {
	case n == 0 && next == 0:
		why := noWriter(ctx, st, o.By)
		if why != "" {
			why = ": " + why
		}
		a.Note("no commit found%s", why)
		return nil
	case next == 0:
		return nil
	}
	if a.Document != nil {
		a.Document.Member("next", next)
		return nil
	}
	a.Note("there are more commits: --limit 0 lists all, --before %d lists the next ones", next)
	return nil
}

// addCommit adds a commit to the list: as one item of the JSON output, or as one line for each of its changes.
func addCommit(ctx context.Context, a *cli.App, l *cli.List, c *varve.Commit) error {
	if a.Encodes() {
		item := commitItem{Position: c.LSN, Next: c.Next, Time: c.Time, Writer: writerItem(&c.Writer)}
		for _, ch := range c.Changes {
			item.Changes = append(item.Changes, changeItem{ch.LSN, ch.Kind, ch.ID, ch.What, ch.Cause, ch.Previous})
		}
		return l.Add(ctx, cli.Item{JSON: item})
	}
	for _, ch := range c.Changes {
		what := ch.What
		if ch.Cause != "" {
			what += " (" + ch.Cause + ")"
		}
		cells := []string{strconv.FormatUint(ch.LSN, 10), c.Time.UTC().Format("2006-01-02T15:04:05.000000Z"),
			cli.WrittenBy(&c.Writer, ""), what, ch.Kind, cli.PrintableID(ch.ID)}
		err := l.Add(ctx, cli.Item{ID: ch.ID, Text: func() string { return strings.Join(cells, "\t") },
			Cells: func() []string { return cells }})
		if err != nil {
			return fmt.Errorf("writing a line: %w", err)
		}
	}
	return nil
}
