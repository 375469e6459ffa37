package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

func historyCommand(a *cli.App) *cobra.Command {
	var assemblies bool
	cmd := &cobra.Command{
		Use:   "history ID",
		Short: "List the versions of a memory",
		Long: `List the versions of a memory that the log and the archive still have, oldest first, including
those of a deleted memory; with --assembly, of an assembly. One per line: version, time, size
and hash, separated by tabs. memctl get ID@VERSION prints a version, memctl diff ID@VERSION ID
what has changed since.`,
		Example: "  memctl history notes\n  memctl history notes --json | jq '.versions[-2].version'",
		Args:    cli.Exactly(1, "the id of a memory"),
		RunE: a.OnStore(cli.Read, func(ctx context.Context, st *varve.Store, args []string) error {
			return listVersions(ctx, a, versionsOf(st, assemblies), args[0])
		}),
	}
	cmd.Flags().BoolVar(&assemblies, "assembly", false, "list the versions of an assembly")
	return cmd
}

// listedVersion is one of history's list.
type listedVersion struct {
	Version  uint64     `json:"version"`
	Time     *time.Time `json:"time,omitempty"`
	Deleted  bool       `json:"deleted"`
	Size     int64      `json:"size"`
	Hash     string     `json:"content_hash,omitempty"`
	Previous uint64     `json:"previous,omitempty"`
}

func listVersions(ctx context.Context, a *cli.App, vs versions, id string) error {
	a.Document.Member("id", id)
	a.Document.Begin("versions")
	n, complete := 0, true
	for v, err := range vs.History(ctx, id) {
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, varve.ErrNotFound) {
				return err
			}
			complete = false
			a.Fail(err)
			continue
		}
		if n++; n == 1 && (v.Previous != 0 || v.FromFile) {
			complete = false
		}
		if a.Document != nil {
			d := listedVersion{v.LSN, cli.OrNil(v.Time), v.Deleted, v.Size, "", v.Previous}
			if !v.Deleted {
				d.Hash = "sha256:" + hex.EncodeToString(v.ContentHash[:])
			}
			a.Document.Item(d)
			continue
		}
		what := fmt.Sprintf("%d B\tsha256:%s", v.Size, hex.EncodeToString(v.ContentHash[:6]))
		if v.Deleted {
			what = "deleted\t"
		}
		fmt.Fprintf(a.Out, "%d\t%s\t%s\n", v.LSN, v.Time.Format("2006-01-02T15:04:05.000000Z"), what)
	}
	switch {
	case a.Document != nil:
		a.Document.Member("complete", complete)
	case !complete:
		a.Note("older versions, if there were any, are no longer kept")
	}
	return nil
}
