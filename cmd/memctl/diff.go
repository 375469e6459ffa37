package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/intake"
	"github.com/varve-db/varve/internal/diff"
)

func diffCommand(a *cli.App) *cobra.Command {
	var assemblies bool
	cmd := &cobra.Command{
		Use:   "diff ID[@VERSION] [VERSION | ID[@VERSION]] [VERSION]",
		Short: "Show what has changed between two versions",
		Long: `Compare the current version of a memory with the one before it (diff ID), one version with the
current one (diff ID VERSION), two versions (diff ID VERSION VERSION), or two memories, each as it
is or as ID@VERSION. Members are compared by value: order and white space are ignored. --json lists
the members that differ, each with its path (RFC 6901) and both values.`,
		Example: "  memctl diff notes\n  memctl diff notes 65664\n  memctl diff notes@65664 notes\n  memctl diff " +
			"notes@65664 notes@70112 --json | jq '.changes[].path'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) == 2 || len(args) == 3 && isVersion(args[1]) && isVersion(args[2]) {
				return nil
			}
			return cli.Usagef(cmd.CommandPath(), "%s takes one id and up to two versions, or two ids", cmd.CommandPath())
		},
		RunE: a.OnStore(cli.Read, func(ctx context.Context, st *varve.Store, args []string) error {
			return diffVersions(ctx, a, st, assemblies, args)
		}),
	}
	cmd.Flags().BoolVar(&assemblies, "assembly", false, "compare versions of an assembly")
	return cmd
}

// side identifies one of the two compared versions in the JSON output of diff.
type side struct {
	ID      string `json:"id"`
	Version uint64 `json:"version"`
}

// isVersion reports whether an argument is a number, and so may be a version instead of an id.
func isVersion(arg string) bool {
	_, err := strconv.ParseUint(arg, 10, 64)
	return err == nil
}

// compared returns the two versions that the arguments of diff name: of a memory or, if assemblies is true, of an
// assembly. The command shows what has changed between from and to.
func compared(ctx context.Context, a *cli.App, st *varve.Store, assemblies bool,
	args []string) (from, to varve.Version, err error) {
	to, err = namedOrEnding(ctx, a, st, assemblies, args[0])
	if err != nil {
		return from, to, err
	}
	if len(args) == 1 {
		if _, lsn, ok := splitVersion(args[0]); !ok || lsn != to.LSN || to.ID == args[0] {
			from, err = versionBefore(ctx, st, assemblies, &to)
			return from, to, err
		}
		args = append(args, to.ID) // compare with the current version
	}
	list := []*varve.Version{&from, &to}
	if !isVersion(args[1]) || len(args) == 2 && exists(ctx, st, assemblies, args[1]) {
		from = to
		to, err = namedOrEnding(ctx, a, st, assemblies, args[1])
		return from, to, err
	}
	id := to.ID
	for i, version := range append(args[1:len(args):len(args)], "")[:2] {
		arg := id
		if version != "" {
			arg += "@" + version
		}
		if *list[i], err = named(ctx, st, assemblies, arg); err != nil {
			return from, to, err
		}
	}
	return from, to, nil
}

// exists reports whether there is a memory with exactly this id or, if assemblies is true, an assembly.
func exists(ctx context.Context, st *varve.Store, assemblies bool, id string) bool {
	_, err := versionsOf(st, assemblies).GetRaw(ctx, id)
	return err == nil
}

// versionBefore returns the newest version of a document that is older than the version cur and is not a deletion. The
// document is an assembly if assemblies is true, and otherwise a memory. If the history has no such version, the error
// matches varve.ErrNotFound.
func versionBefore(ctx context.Context, st *varve.Store, assemblies bool,
	cur *varve.Version) (prev varve.Version, err error) {
	for v, err := range versionsOf(st, assemblies).History(ctx, cur.ID) {
		if err != nil {
			return prev, err
		}
		if !v.Deleted && v.LSN < cur.LSN {
			prev = v
		}
	}
	if prev.LSN == 0 {
		return prev, fmt.Errorf("%s %s: %w: no version before version %d is kept", cur.Kind, cli.PrintableID(cur.ID),
			varve.ErrNotFound, cur.LSN)
	}
	return prev, nil
}

func diffVersions(ctx context.Context, a *cli.App, st *varve.Store, assemblies bool, args []string) error {
	was, is, err := compared(ctx, a, st, assemblies, args)
	if err != nil {
		return err
	}
	old, err := diff.Parse(was.Document)
	if err != nil {
		return intake.Invalid(fmt.Sprintf("version %d", was.LSN), err)
	}
	now, err := diff.Parse(is.Document)
	if err != nil {
		return intake.Invalid(fmt.Sprintf("version %d", is.LSN), err)
	}
	if a.Document != nil {
		a.Document.Member("from", side{was.ID, was.LSN})
		a.Document.Member("to", side{is.ID, is.LSN})
		a.Document.Begin("changes")
		for _, c := range diff.Changes(nil, "", old, now) {
			a.Document.Item(c)
		}
		return nil
	}
	hunks := diff.Unified(diff.Lines(old), diff.Lines(now))
	if len(hunks) == 0 {
		a.Note("%s and %s are equal", label(&was), label(&is))
		return nil
	}
	fmt.Fprintf(a.Out, "--- %s\n+++ %s\n", label(&was), label(&is))
	for _, line := range hunks {
		switch {
		case strings.HasPrefix(line, "+"):
			a.Out.InColour(cli.Green, line)
		case strings.HasPrefix(line, "-"):
			a.Out.InColour(cli.Red, line)
		default:
			_, _ = a.Out.WriteString(line)
		}
		fmt.Fprintln(a.Out)
	}
	return nil
}

func namedOrEnding(ctx context.Context, a *cli.App, st *varve.Store, assemblies bool,
	arg string) (v varve.Version, err error) {
	err = orEnding(ctx, a, st, assemblies, arg, func(arg string) (err error) {
		v, err = named(ctx, st, assemblies, arg)
		return err
	})
	return v, err
}

func label(v *varve.Version) string {
	return fmt.Sprintf("%s@%d\t%s", cli.PrintableID(v.ID), v.LSN, v.Time.Format("2006-01-02T15:04:05.000000Z"))
}
