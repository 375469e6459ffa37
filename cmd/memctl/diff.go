package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/diff"
	"github.com/varve-db/varve/cmd/memctl/internal/intake"
)

func diffCommand(a *cli.App) *cobra.Command {
	var assemblies bool
	cmd := &cobra.Command{
		Use:   "diff ID@VERSION [ID[@VERSION]]",
		Short: "Show what has changed between two versions",
		Long: `Compare two versions of a memory, or one version with the current one. Members are compared
by value: order and white space are ignored. --json lists the members that differ, each with
its path (RFC 6901) and both values.`,
		Example: "  memctl diff notes@65664 notes\n  memctl diff notes@65664 notes@70112 --json | jq '.changes[].path'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) == 2 {
				return nil
			}
			return cli.Usagef(cmd.CommandPath(), "%s takes one or two versions, not %d arguments", cmd.CommandPath(), len(args))
		},
		RunE: a.OnStore(cli.Read, func(ctx context.Context, st *varve.Store, args []string) error {
			return diffVersions(ctx, a, st, assemblies, args)
		}),
	}
	cmd.Flags().BoolVar(&assemblies, "assembly", false, "compare versions of an assembly")
	return cmd
}

// side is one of two versions in diff's document.
type side struct {
	ID      string `json:"id"`
	Version uint64 `json:"version"`
}

func diffVersions(ctx context.Context, a *cli.App, st *varve.Store, assemblies bool, args []string) error {
	was, err := namedOrEnding(ctx, a, st, assemblies, args[0])
	if err != nil {
		return err
	}
	arg := was.ID // now
	if len(args) == 2 {
		arg = args[1]
	}
	is, err := namedOrEnding(ctx, a, st, assemblies, arg)
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

func namedOrEnding(ctx context.Context, a *cli.App, st *varve.Store, assemblies bool, arg string) (v varve.Version, err error) {
	err = orEnding(ctx, a, st, assemblies, arg, func(arg string) (err error) {
		v, err = named(ctx, st, assemblies, arg)
		return err
	})
	return v, err
}

func label(v *varve.Version) string {
	return fmt.Sprintf("%s@%d\t%s", cli.PrintableID(v.ID), v.LSN, v.Time.Format("2006-01-02T15:04:05.000000Z"))
}
