package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/diff"
)

func diffCommand(a *app) *cobra.Command {
	var assemblies bool
	cmd := &cobra.Command{
		Use:   "diff ID@VERSION [ID[@VERSION]]",
		Short: "Show what has changed between two versions",
		Long: `Compare two versions of a memory, or one with what it is now. Members are compared by
their values: neither their order nor white space counts. --json lists the members that
differ, each with its path (RFC 6901) and both values.`,
		Example: "  memctl diff notes@65664 notes\n  memctl diff notes@65664 notes@70112 --json | jq '.changes[].path'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) == 2 {
				return nil
			}
			return usagef(cmd.CommandPath(), "%s wants one or two versions, not %d arguments", cmd.CommandPath(), len(args))
		},
		RunE: a.onStore(read, func(ctx context.Context, st *varve.Store, args []string) error {
			return diffVersions(ctx, a, st, assemblies, args)
		}),
	}
	cmd.Flags().BoolVar(&assemblies, "assembly", false, "of an assembly")
	return cmd
}

// side is one of two versions in diff's document.
type side struct {
	ID      string `json:"id"`
	Version uint64 `json:"version"`
}

func diffVersions(ctx context.Context, a *app, st *varve.Store, assemblies bool, args []string) error {
	was, err := named(ctx, st, assemblies, args[0])
	if err != nil {
		return err
	}
	arg := was.ID // now
	if len(args) == 2 {
		arg = args[1]
	}
	is, err := named(ctx, st, assemblies, arg)
	if err != nil {
		return err
	}
	old, err := diff.Parse(was.Document)
	if err != nil {
		return invalid(fmt.Sprintf("version %d", was.LSN), err)
	}
	now, err := diff.Parse(is.Document)
	if err != nil {
		return invalid(fmt.Sprintf("version %d", is.LSN), err)
	}
	if a.document != nil {
		a.document.member("from", side{was.ID, was.LSN})
		a.document.member("to", side{is.ID, is.LSN})
		a.document.begin("changes")
		for _, c := range diff.Changes(nil, "", old, now) {
			a.document.item(c)
		}
		return nil
	}
	hunks := diff.Unified(diff.Lines(old), diff.Lines(now))
	if len(hunks) == 0 {
		a.note("%s and %s say the same", label(&was), label(&is))
		return nil
	}
	fmt.Fprintf(a.out, "--- %s\n+++ %s\n", label(&was), label(&is))
	for _, line := range hunks {
		switch {
		case strings.HasPrefix(line, "+"):
			a.out.inColour(green, line)
		case strings.HasPrefix(line, "-"):
			a.out.inColour(red, line)
		default:
			_, _ = a.out.WriteString(line)
		}
		fmt.Fprintln(a.out)
	}
	return nil
}

func label(v *varve.Version) string {
	return fmt.Sprintf("%s@%d\t%s", printableID(v.ID), v.LSN, v.Time.Format("2006-01-02T15:04:05.000000Z"))
}
