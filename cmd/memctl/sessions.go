package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/span"
	"github.com/varve-db/varve/cmd/memctl/internal/upkeep"
)

func sessionsCommand(a *cli.App) *cobra.Command {
	return a.Group(&cobra.Command{
		Use:   "sessions",
		Short: "Manage sessions",
		Long: `Manage sessions. A memory belongs to the session that its metadata.session_id names; a session
exists as long as it has a memory.`,
		Example: `  memctl sessions list
  memctl sessions show s1
  memctl sessions sweep --older-than 30d
  memctl list --session s1`,
	}, sessionsListCommand(a), sessionsShowCommand(a), sessionsRmCommand(a), sessionsSweepCommand(a))
}

// listedSession is a session in the JSON output of sessions list.
type listedSession struct {
	ID       string    `json:"id"`
	Memories int64     `json:"memories"`
	Bytes    int64     `json:"bytes"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
}

func listedSessionOf(s varve.Session) listedSession {
	return listedSession{s.ID, s.Memories, s.Bytes, s.First, s.Last}
}

// sessionList prints a list of sessions.
type sessionList struct {
	a *cli.App
	*cli.List
}

func newSessionList(a *cli.App) *sessionList {
	return &sessionList{a, a.List("sessions", nil, cli.Column{Name: "ID"}, cli.Column{Name: "MEMORIES", Right: true},
		cli.Column{Name: "SIZE", Right: true}, cli.Column{Name: "FIRST", Right: true}, cli.Column{Name: "LAST"})}
}

// add adds a session to the list; v is the session in the form for the JSON output.
func (l *sessionList) add(ctx context.Context, s varve.Session, v any) error {
	return l.Add(ctx, cli.Item{ID: s.ID, JSON: v, Text: func() string {
		return fmt.Sprintf("%s\t%d\t%d\t%s\t%s", cli.PrintableID(s.ID), s.Memories, s.Bytes, s.First.Format(time.RFC3339),
			s.Last.Format(time.RFC3339))
	}, Cells: func() []string {
		now := l.a.Clock()
		ago := func(t time.Time) string { return span.Age(now.Sub(t)) + " ago" }
		return []string{cli.PrintableID(s.ID), strconv.FormatInt(s.Memories, 10), cli.Size(s.Bytes), ago(s.First),
			ago(s.Last)}
	}})
}

func sessionsListCommand(a *cli.App) *cobra.Command {
	var limit int
	var after string
	c := &cobra.Command{
		Use:   "list",
		Short: "List sessions",
		Long: `List sessions by id: on a terminal as a table, otherwise one per line with id, number of memories,
bytes of their files, time of the first memory and time of the last write (both UTC), separated by
tabs. With --limit a note has the command that continues, and "next" in the JSON document is the
value for --after.`,
		Example: "  memctl sessions list\n  memctl sessions list --limit 100\n  memctl sessions list --json | jq " +
			"'.sessions[].id'",
		Args: cli.NoArguments,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return cli.Usagef(cmd.CommandPath(), "--limit %d: must be 0 (all) or more", limit)
			}
			return a.With(cmd.Context(), cli.Read, func(st *varve.Store) error {
				return listSessions(cmd, a, st, after, limit)
			})
		}),
	}
	c.Flags().StringVar(&after, "after", "", "only sessions after this `id`")
	c.Flags().IntVarP(&limit, "limit", "n", 0, "list at most `N` sessions; 0 means all")
	a.OutputFlag(c, cli.FormTable, cli.FormJSON, cli.FormJSONL, cli.FormID)
	return c
}

func listSessions(cmd *cobra.Command, a *cli.App, st *varve.Store, after string, limit int) error {
	l, ctx := newSessionList(a), cmd.Context()
	n, last, more := 0, "", false
	for s, err := range st.Sessions().All(ctx) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			a.Fail(err)
			continue
		}
		if s.ID <= after {
			continue
		}
		if more = limit > 0 && n == limit; more {
			break
		}
		n, last = n+1, s.ID
		if err := l.add(ctx, s, listedSessionOf(s)); err != nil {
			return err
		}
	}
	if err := l.End(ctx); err != nil {
		return err
	}
	a.ListEnd(cmd, n, last, more, func() string {
		if after != "" {
			return "no sessions after this id"
		}
		return "no sessions"
	})
	return nil
}

func sessionsShowCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "show SESSION...", Short: "Show sessions",
		Long:    `Show sessions, one per line, in the format of memctl sessions list.`,
		Example: "  memctl sessions show s1\n  memctl sessions show s1 --json",
		Args:    cli.AtLeastOne("the id of a session"),
		RunE: a.OnStore(cli.Read, func(ctx context.Context, st *varve.Store, args []string) error {
			l := newSessionList(a)
			err := a.Each(ctx, args, func(id string) error {
				s, err := st.Sessions().Get(ctx, id)
				if err == nil {
					err = l.add(ctx, s, listedSessionOf(s))
				}
				return aboutSession(err)
			})
			return errors.Join(err, l.End(ctx))
		}),
	}
	a.OutputFlag(c, cli.FormTable, cli.FormJSON, cli.FormJSONL, cli.FormID)
	return c
}

// aboutSession adds a remedy to an error about a session.
func aboutSession(err error) error {
	if errors.Is(err, varve.ErrNotFound) {
		return cli.WithFix(err, "memctl sessions list shows the sessions of the store")
	}
	return err
}

// sweptSession is a session that sessions sweep deleted or would delete, in the JSON output. Spared and Doubted are
// set for a session that is kept: see varve.SessionSweep.
type sweptSession struct {
	listedSession
	Deleted int64 `json:"deleted"`
	Spared  bool  `json:"spared"`
	Doubted bool  `json:"doubted"`
}

func sessionsRmCommand(a *cli.App) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "rm SESSION...", Aliases: []string{"delete"}, Short: "Delete sessions with their memories",
		Long: `Delete all memories of a session in one commit: a reader sees all of them or none. Memories that
other processes add meanwhile are kept. With segments of the default size one commit takes about
300,000 memories; a larger session is deleted in several commits. If that is interrupted, the
rest is still there: run the command again.

On a terminal sessions rm asks for confirmation; elsewhere it requires --yes.`,
		Example: "  memctl sessions rm s1\n  memctl sessions rm --yes -- '../../etc/passwd'",
		Args:    cli.AtLeastOne("the id of a session"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			if _, ok := cli.Terminal(a.In); !ok && !yes {
				return cli.Usagef(cmd.CommandPath(),
					"nothing was deleted: without a terminal, deleting a session with its memories needs --yes")
			}
			err := a.With(cmd.Context(), cli.Write,
				func(st *varve.Store) error { return removeSessions(cmd.Context(), a, st, args, yes) })
			return cli.Resumable(err, "the remaining memories will be deleted")
		}),
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return c
}

func removeSessions(ctx context.Context, a *cli.App, st *varve.Store, args []string, yes bool) error {
	if !yes {
		var all int64
		names := make([]string, len(args))
		for i, id := range args {
			s, err := st.Sessions().Get(ctx, id)
			if err != nil && !errors.Is(err, varve.ErrNotFound) {
				return aboutSession(err)
			}
			all += s.Memories
			names[i] = cli.PrintableID(id)
		}
		if all > 0 {
			what := fmt.Sprintf("%s of %s will be deleted.", cli.Count(int(all), "memory", "memories"),
				strings.Join(names, ", "))
			if err := upkeep.Confirm(ctx, a, what,
				fmt.Errorf("%w: nothing was deleted: the deletion was not confirmed", varve.ErrInvalid)); err != nil {
				return err
			}
		}
	}
	a.Document.Begin("sessions")
	return a.Each(ctx, args, func(id string) error {
		n, err := st.Sessions().Delete(ctx, id)
		switch {
		case err != nil:
		case a.Document != nil:
			a.Document.Item(struct {
				ID      string `json:"id"`
				Deleted int64  `json:"deleted"`
			}{id, n})
		default:
			a.Say("deleted %s of session %s", cli.Count(int(n), "memory", "memories"), cli.PrintableID(id))
		}
		return aboutSession(err)
	})
}

func sessionsSweepCommand(a *cli.App) *cobra.Command {
	var (
		older string
		keep  int
		apply bool
	)
	c := &cobra.Command{
		Use:   "sweep --older-than DURATION | --keep N",
		Short: "Delete sessions that are no longer used",
		Long: `List the sessions that were not written to for some time (--older-than), or all except the N
written to last (--keep); with both flags, the sessions that meet either condition. Nothing is
deleted without --apply. A session that is written to meanwhile is kept. A session is also kept
("doubted") if it counts as unused only because the clock was set ahead after the machine was
started, or if the store has read the clock for the first time within the last hour.`,
		Example: "  memctl sessions sweep --older-than 30d\n  memctl sessions sweep --older-than 30d --apply\n  memctl " +
			"sessions sweep --keep 100 --apply --json",
		Args: cli.NoArguments,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			o := varve.SweepOptions{Keep: keep, Apply: apply}
			path := cmd.CommandPath()
			if cmd.Flags().Changed("older-than") {
				d, err := span.Parse(older)
				if err != nil {
					return cli.Usagef(path, "--older-than %w", err)
				}
				o.IdleFor = d
			}
			switch {
			case cmd.Flags().Changed("keep") && keep < 1:
				return cli.Usagef(path, "--keep %d: must be 1 or more", keep)
			case o.IdleFor == 0 && o.Keep == 0:
				return cli.Usagef(path, "choose the sessions with --older-than 30d, or with --keep 100")
			}
			how := cli.Read
			if apply {
				how = cli.Write
			}
			return a.With(cmd.Context(), how, func(st *varve.Store) error {
				swept, err := st.Sessions().Sweep(cmd.Context(), o)
				return errors.Join(err, tellSwept(cmd.Context(), a, swept, apply))
			})
		}),
	}
	c.Flags().StringVar(&older, "older-than", "", "sessions not written to for this `duration`: 90m, 24h, 30d")
	c.Flags().IntVar(&keep, "keep", 0, "all sessions except the `N` written to last")
	c.Flags().BoolVar(&apply, "apply", false, "delete the sessions")
	return c
}

// tellSwept prints which sessions were deleted. If apply is false, it prints which sessions would be deleted.
func tellSwept(ctx context.Context, a *cli.App, list []varve.SessionSweep, apply bool) error {
	l, memories, spared, doubted := newSessionList(a), int64(0), 0, 0
	for _, s := range list {
		if err := l.add(ctx, s.Session, sweptSession{listedSessionOf(s.Session), s.Deleted, s.Spared,
			s.Doubted}); err != nil {
			return err
		}
		if s.Spared {
			spared++
		}
		if s.Doubted {
			doubted++
		}
		memories += s.Deleted
	}
	if err := l.End(ctx); err != nil || a.Document != nil {
		a.Document.Member("applied", apply)
		return err
	}
	for _, s := range list {
		if s.Spared {
			a.Note("session %s was kept, because it was written to meanwhile", cli.PrintableID(s.ID))
		}
	}
	if doubted > 0 {
		a.Note("%s kept: the only sign of disuse is a clock that may be wrong → correct the clock, or run "+
			"this command again in an hour",
			cli.Count(doubted, "session was", "sessions were"))
	}
	spared += doubted
	switch {
	case len(list) == 0:
		a.Note("no session to delete")
	case apply:
		a.Note("deleted %s of %s", cli.Count(int(memories), "memory", "memories"),
			cli.Count(len(list)-spared, "session", "sessions"))
	default:
		a.Note("would delete %s; --apply does", cli.Count(len(list)-doubted, "session", "sessions"))
	}
	return nil
}
