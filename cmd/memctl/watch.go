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
	"github.com/varve-db/varve/cmd/memctl/internal/assemblycmd"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/timearg"
)

// watchFlags are the flags of watch.
type watchFlags struct {
	since, kind, session string
	assembly, adopt      bool
	limit                int
}

func watchCommand(a *cli.App) *cobra.Command {
	var f watchFlags
	c := &cobra.Command{
		Use:        "watch",
		SuggestFor: []string{"tail", "follow"},
		Short:      "Show changes as they are committed",
		Long: `Show each change that any process commits, once and in the order of the commits, until
interrupted or until --limit changes were shown. One change per line with version, time (UTC),
operation, id, session and text, separated by tabs; with --json each line is a document, and a
failure is the last line. --since goes back as far as the log and the archive reach; "next" of a
line is the --since that continues after it.

While memctl watch runs, edits of the files by hand are adopted at once. With --adopt that is all it
does: it shows each edit that this process adopts, one per line with time (UTC), what was done
(adopted, deleted, set aside), file and id, and with -q nothing. It waits while the store is busy,
and ends with exit status 0 when it is told to by SIGINT or SIGTERM. memctl service install has
systemd run it.`,
		Example: `  memctl watch
  memctl watch --since 10m --session s1
  memctl watch --json --since 0 | jq -r .id
  memctl watch --json --limit 1 >/dev/null && echo "something has changed"
  memctl watch --adopt`,
		Args: cli.NoArguments,
		RunE: a.DoWhole(func(cmd *cobra.Command, _ []string) error {
			filters, err := f.filters(cmd)
			if err != nil {
				return err
			}
			if f.adopt {
				if err := checkAdopt(cmd); err != nil {
					return err
				}
				return adopt(a, cmd, f.limit)
			}
			return follow(a, cmd, f, filters)
		}),
	}
	fl := c.Flags()
	fl.StringVar(&f.since, "since", "now",
		"start at this `position`: now, a version, the \"next\" of a line, 0 for all changes that are kept, or a time "+
			"as in list; a number alone is a version")
	fl.StringVar(&f.kind, "kind", "", "only changes of this `kind`: memory, assembly or note")
	fl.BoolVar(&f.assembly, "assembly", false, "only changes of assemblies")
	fl.StringVar(&f.session, "session", "", "only changes of memories of this `session`")
	fl.IntVarP(&f.limit, "limit", "n", 0, "stop after `N` changes, with --adopt edits; 0 means never")
	fl.BoolVar(&f.adopt, "adopt", false, "only adopt edits of the files, and show those")
	return c
}

func (f *watchFlags) filters(cmd *cobra.Command) (list []varve.WatchFilter, err error) {
	if f.limit < 0 {
		return nil, cli.Usagef(cmd.CommandPath(), "--limit %d: must be 0 (no end) or more", f.limit)
	}
	if f.assembly {
		if f.kind != "" && f.kind != "assembly" {
			return nil, cli.Usagef(cmd.CommandPath(), "--assembly and --kind %s cannot be combined", f.kind)
		}
		f.kind = "assembly"
	}
	switch f.kind {
	case "":
	case "memory", "assembly", "note":
		list = append(list, varve.WatchKind(f.kind))
	default:
		return nil, cli.Usagef(cmd.CommandPath(), "--kind %q: must be memory, assembly or note", f.kind)
	}
	if cmd.Flags().Changed("session") {
		if f.kind == "assembly" || f.kind == "note" {
			return nil, cli.Usagef(cmd.CommandPath(), "--session selects memories: omit it, or --kind %s", f.kind)
		}
		list = append(list, varve.WatchSession(f.session))
	}
	return list, nil
}

// position returns the position in the log at which watch begins. since is the value of --since: a position or a time.
func position(a *cli.App, cmd *cobra.Command, st *varve.Store, since string) (uint64, error) {
	if since == "now" {
		return st.Admin().Stats().Durable, nil
	}
	if n, err := strconv.ParseUint(since, 10, 64); err == nil {
		return n, nil
	}
	at, err := timearg.Parse(since, a.Clock().Local())
	if err != nil {
		return 0, cli.Usagef(cmd.CommandPath(), "--since %w; or now, or a version", err)
	}
	return st.Admin().PositionAt(cmd.Context(), at.From)
}

// change is one line of the JSON output of watch.
type change struct {
	Version  uint64              `json:"version"`
	Next     uint64              `json:"next"`
	Time     time.Time           `json:"time"`
	Kind     string              `json:"kind"`
	ID       string              `json:"id"`
	Deleted  bool                `json:"deleted"`
	More     bool                `json:"more"` // the next line is a change of the same commit
	Writer   *varve.Writer       `json:"writer,omitempty"`
	Cause    string              `json:"cause,omitempty"`
	Memory   *listed             `json:"memory,omitempty"`
	Assembly *assemblycmd.Listed `json:"assembly,omitempty"`
}

// follow watches the store of the command line. If another store replaces the store's folder, follow watches the other
// store, from the current end of its log.
func follow(a *cli.App, cmd *cobra.Command, f watchFlags, filters []varve.WatchFilter) error {
	dir, err := a.Locate()
	if err != nil {
		return err
	}
	if a.Document != nil {
		a.Document.Lines = true
	}
	n := 0
	for {
		err := followIn(a, cmd, dir, f, filters, &n)
		if !errors.Is(err, varve.ErrReplaced) || cmd.Context().Err() != nil {
			return err
		}
		if dir, err = a.ReopenedAs(err, "watches"); err != nil {
			return err
		}
		f.since = "now"
	}
}

// followIn watches the store in the folder dir. It adds the number of changes that it shows to n.
func followIn(a *cli.App, cmd *cobra.Command, dir string, f watchFlags, filters []varve.WatchFilter, n *int) error {
	return a.WithIn(cmd.Context(), dir, cli.Read, func(o *varve.Options) { o.NoBackground, o.WatchFiles = false, true },
		func(st *varve.Store) error {
			from, err := position(a, cmd, st, f.since)
			spelled, _ := timearg.Spelled(f.since, a.Clock().Local())
			if err != nil {
				return withWatchFix(err, spelled)
			}
			if !a.Quiet && a.Document == nil {
				a.Note("watching from position %d; Ctrl-C ends memctl", from)
			}
			at := from
			for c, err := range st.Watch(cmd.Context(), from, filters...) {
				switch {
				case err != nil && c.LSN == 0:
					return ended(cmd.Context(), a, at, spelled, err)
				case err != nil:
					a.Fail(err)
				default:
					err = changed(a, st, &c)
				}
				if cli.BrokenPipe(err) { // the reader has closed the pipe
					a.Out.Discard()
					a.Document.Discard()
					return nil
				}
				if err != nil {
					return fmt.Errorf("writing a line: %w", err)
				}
				at = c.Next
				if *n++; *n == f.limit {
					break
				}
			}
			return nil
		})
}

// ended adds a remedy to the error err with which watching has ended. If ctx is done, the remedy is the command
// that continues at the log position pos. Otherwise ended returns the result of
// withWatchFix.
func ended(ctx context.Context, a *cli.App, pos uint64, spelled string, err error) error {
	if ctx.Err() == nil {
		return withWatchFix(err, spelled)
	}
	end := cli.WithFix(ctx.Err(), fmt.Sprintf("to continue: memctl watch --since %d", pos))
	if a.Quiet && a.Document == nil { // the exit code reports it
		a.Tell(cli.Classify(end))
		return nil
	}
	return end
}

// withWatchFix adds a remedy to an error that reports that a position is no longer kept: the command that watches
// the changes that are still kept. If the user typed a number that looks like a time, spelled is that time in
// full. withWatchFix returns other errors unchanged.
func withWatchFix(err error, spelled string) error {
	var gone *varve.TruncatedError
	var gap *varve.GapError
	var fixes []string
	if errors.As(err, &gap) {
		return cli.WithFix(err, fmt.Sprintf("to continue after the lost versions: memctl watch --since %d", gap.To))
	}
	if spelled != "" && (errors.Is(err, varve.ErrTruncated) || errors.Is(err, varve.ErrInvalid)) {
		fixes = append(fixes, "a number alone is a version; to watch from that time, run memctl watch --since "+spelled)
	}
	if errors.As(err, &gone) { // also for a number that looks like a time: versions can be as large
		fixes = append(fixes,
			fmt.Sprintf("list the memories (memctl list --limit 0), then watch from the oldest change that is kept: memctl "+
				"watch --since %d", gone.Oldest))
	}
	if fixes == nil {
		return err
	}
	return cli.WithFix(err, strings.Join(fixes, "; or "))
}

// changed writes the line for a change, and flushes it.
func changed(a *cli.App, st *varve.Store, c *varve.Change) error {
	if a.Document == nil {
		did, session, text := "put", "", ""
		switch {
		case c.Deleted:
			did = "delete"
		case c.Kind == "memory":
			session, text = c.Memory.Session(), c.Memory.Content
		case c.Kind == "assembly":
			text = c.Assembly.Name
		}
		if c.Kind != "memory" {
			did += " " + c.Kind
		}
		fmt.Fprintln(a.Out, strings.Join([]string{
			strconv.FormatUint(c.LSN, 10), c.Time.Format("2006-01-02T15:04:05.000000Z07:00"), did, cli.PrintableID(c.ID),
			cli.Printable(session), cli.Printable(text),
		}, "\t"))
		return a.Out.Flush()
	}
	l := change{Version: c.LSN, Next: c.Next, Time: c.Time, Kind: c.Kind, ID: c.ID, Deleted: c.Deleted, More: c.More,
		Writer: writerItem(&c.Writer), Cause: c.Cause}
	switch {
	case c.Deleted:
	case c.Kind == "memory":
		m := listedOf(&c.Memory, nil)
		l.Memory = &m
	case c.Kind == "assembly":
		g := assemblycmd.ListedOf(&c.Assembly, st.Assemblies().Level(&c.Assembly))
		l.Assembly = &g
	}
	if err := a.Document.Line(l); err != nil {
		return err
	}
	return a.Out.Flush()
}
