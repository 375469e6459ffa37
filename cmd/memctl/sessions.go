package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
)

func sessionsCommand(a *app) *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "sessions",
		Short: "Look after sessions",
		Long: `Look after sessions. A memory belongs to the session that its metadata.session_id names;
a session is there as long as it has a memory.`,
		Example: `  memctl sessions list
  memctl sessions show s1
  memctl sessions sweep --older-than 30d
  memctl list --session s1`,
	}, sessionsListCommand(a), sessionsShowCommand(a), sessionsRmCommand(a), sessionsSweepCommand(a))
}

// listedSession is a session in a list.
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

// session tells of one.
func tellSession(a *app, s varve.Session) {
	if a.document != nil {
		a.document.item(listedSessionOf(s))
		return
	}
	fmt.Fprintf(a.out, "%s\t%d\t%d\t%s\t%s\n", printableID(s.ID), s.Memories, s.Bytes, s.First.Format(time.RFC3339), s.Last.Format(time.RFC3339))
}

func sessionsListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List sessions",
		Long: `List sessions by id, one a line, with tabs between id, number of memories, bytes of their
files, when the first was made and when one was last written.`,
		Example: "  memctl sessions list\n  memctl sessions list --json | jq '.sessions[].id'",
		Args:    noArguments,
		RunE: a.onStore(read, func(ctx context.Context, st *varve.Store, _ []string) error {
			a.document.begin("sessions")
			n := 0
			for s, err := range st.Sessions(ctx) {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err != nil {
					a.fail(err)
					continue
				}
				n++
				tellSession(a, s)
			}
			if n == 0 && a.document == nil {
				a.note("there is no session")
			}
			return nil
		}),
	}
}

func sessionsShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show SESSION...", Short: "Show sessions", Long: `Show sessions, one a line as memctl sessions list does.`,
		Example: "  memctl sessions show s1\n  memctl sessions show s1 --json",
		Args:    atLeastOne("the id of a session"), ValidArgsFunction: completeSessions(a),
		RunE: a.onStore(read, func(ctx context.Context, st *varve.Store, args []string) error {
			a.document.begin("sessions")
			return a.each(ctx, args, func(id string) error {
				s, err := st.Session(ctx, id)
				if err == nil {
					tellSession(a, s)
				}
				return aboutSession(err)
			})
		}),
	}
}

// aboutSession puts the right remedy to an error.
func aboutSession(err error) error {
	if errors.Is(err, varve.ErrNotFound) {
		return withFix(err, "memctl sessions list shows what there is")
	}
	return err
}

// sweptSession is a session that went, or would go.
type sweptSession struct {
	listedSession
	Deleted int64 `json:"deleted"`
	Spared  bool  `json:"spared"`
}

func sessionsRmCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "rm SESSION...", Aliases: []string{"delete"}, Short: "Delete sessions with their memories",
		Long: `Delete all memories of a session, in one commit: whoever reads sees all of them or none. What
others put into it meanwhile stays. With segments of the default size one commit takes about
300,000 memories; a larger session goes in several, and if it is interrupted the rest is still
there: run it again.`,
		Example: "  memctl sessions rm s1\n  memctl sessions rm -- '../../etc/passwd'",
		Args:    atLeastOne("the id of a session"), ValidArgsFunction: completeSessions(a),
		RunE: a.onStore(write, func(ctx context.Context, st *varve.Store, args []string) error {
			a.document.begin("sessions")
			return a.each(ctx, args, func(id string) error {
				n, err := st.DeleteSession(ctx, id)
				switch {
				case err != nil:
				case a.document != nil:
					a.document.item(struct {
						ID      string `json:"id"`
						Deleted int64  `json:"deleted"`
					}{id, n})
				default:
					a.say("deleted %s of session %s", count(int(n), "memory", "memories"), printableID(id))
				}
				return aboutSession(err)
			})
		}),
	}
}

func sessionsSweepCommand(a *app) *cobra.Command {
	var (
		older string
		keep  int
		apply bool
	)
	c := &cobra.Command{
		Use:   "sweep --older-than TIME | --keep N",
		Short: "Delete sessions that nobody uses",
		Long: `Say which sessions were not written to for some time, or are more than a number to keep, those
written to last; with both, which of them are either. Nothing is changed until --apply. One
that is written to meanwhile is spared.`,
		Example: "  memctl sessions sweep --older-than 30d\n  memctl sessions sweep --older-than 30d --apply\n  memctl sessions sweep --keep 100 --apply --json",
		Args:    noArguments,
		RunE: a.do(func(cmd *cobra.Command, _ []string) error {
			o := varve.SweepOptions{Keep: keep, Apply: apply}
			path := cmd.CommandPath()
			if cmd.Flags().Changed("older-than") {
				d, err := parseSpan(older)
				if err != nil {
					return usagef(path, "--older-than %w", err)
				}
				o.IdleFor = d
			}
			switch {
			case cmd.Flags().Changed("keep") && keep < 1:
				return usagef(path, "--keep %d: it must be 1 or more", keep)
			case o.IdleFor == 0 && o.Keep == 0:
				return usagef(path, "say which: --older-than 30d, or --keep 100")
			}
			how := read
			if apply {
				how = write
			}
			return a.with(cmd.Context(), how, func(st *varve.Store) error {
				swept, err := st.SweepSessions(cmd.Context(), o)
				tellSwept(a, swept, apply)
				return err
			})
		}),
	}
	c.Flags().StringVar(&older, "older-than", "", "those not written to for this `time`: 90m, 24h, 30d")
	c.Flags().IntVar(&keep, "keep", 0, "all but `N`, those written to last")
	c.Flags().BoolVar(&apply, "apply", false, "delete them")
	return c
}

// swept tells which sessions go, or went.
func tellSwept(a *app, list []varve.SessionSweep, apply bool) {
	if a.document != nil {
		a.document.begin("sessions")
		for _, s := range list {
			a.document.item(sweptSession{listedSessionOf(s.Session), s.Deleted, s.Spared})
		}
		a.document.member("applied", apply)
		return
	}
	memories, spared := int64(0), 0
	for _, s := range list {
		tellSession(a, s.Session)
		if s.Spared {
			a.note("session %s was used meanwhile, and is spared", printableID(s.ID))
			spared++
		}
		memories += s.Deleted
	}
	switch {
	case len(list) == 0:
		a.note("no session is meant")
	case apply:
		a.note("deleted %s of %s", count(int(memories), "memory", "memories"), count(len(list)-spared, "session", "sessions"))
	default:
		a.note("%s would go; --apply deletes them", count(len(list), "session", "sessions"))
	}
}

// completeSessions completes the id of a session. What a shell could not take is left out.
func completeSessions(a *app) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		var ids []string
		_ = a.with(cmd.Context(), look, func(st *varve.Store) error {
			for s, err := range st.Sessions(cmd.Context()) {
				if err == nil && strings.HasPrefix(s.ID, begun) && printableID(s.ID) == s.ID && !strings.ContainsAny(s.ID, "\t\n") {
					ids = append(ids, s.ID)
				}
				if len(ids) == mostCompleted {
					break
				}
			}
			return nil
		})
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

// mostCompleted is how many a shell is offered.
const mostCompleted = 200
