package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

func historyCommand(a *cli.App) *cobra.Command {
	var assemblies bool
	cmd := &cobra.Command{
		Use:        "history ID",
		SuggestFor: []string{"versions"},
		Short:      "List the versions of a memory",
		Long: `List the versions of a memory that the log and the archive still have, oldest first, including
those of a deleted memory; with --assembly, of an assembly. On a terminal the result is a table,
otherwise one version per line with version, time (UTC), size, hash and writer, separated by tabs;
--output id prints ID@VERSION. Of a version that was redacted (memctl purge ID --version N) the list has
the time and the writer, and in the place of the hash when and by whom it was redacted. memctl get
ID@VERSION prints a version, memctl diff ID@VERSION ID what has changed since.`,
		Example: "  memctl history notes\n  memctl history notes --json | jq '.versions[-2].version'",
		Args:    cli.Exactly(1, "the id of a memory"),
		RunE: a.OnStore(cli.Read, func(ctx context.Context, st *varve.Store, args []string) error {
			try := a.Memory
			if assemblies {
				try = a.Assembly
			}
			l := &versionList{a: a}
			err := try(ctx, st, args[0], func(id string) error { return l.show(ctx, versionsOf(st, assemblies), id) })
			l.begin(args[0]) // also where there is no such id
			return err
		}),
	}
	a.OutputFlag(cmd, cli.FormTable, cli.FormJSON, cli.FormJSONL, cli.FormID)
	cmd.Flags().BoolVar(&assemblies, "assembly", false, "list the versions of an assembly")
	return cmd
}

// listedVersion is a version in the JSON output of history.
type listedVersion struct {
	Version  uint64        `json:"version"`
	Time     *time.Time    `json:"time,omitempty"`
	Deleted  bool          `json:"deleted"`
	Size     int64         `json:"size"`
	Hash     string        `json:"content_hash,omitempty"`
	Previous uint64        `json:"previous,omitempty"`
	Kept     bool          `json:"kept,omitempty"`
	Writer   *varve.Writer `json:"writer,omitempty"`
	Cause    string        `json:"cause,omitempty"`
	Redacted *redacted     `json:"redacted,omitempty"`
}

// redacted has the time of a redaction and the writer that made it.
type redacted struct {
	Time   time.Time     `json:"time"`
	Writer *varve.Writer `json:"writer,omitempty"`
}

// versionList prints a list of versions of one document. The list begins, with the id and the heading of the table,
// when the complete id of the document is known.
type versionList struct {
	a *cli.App
	*cli.List
}

func (l *versionList) begin(id string) {
	if l.List != nil {
		return
	}
	l.a.Document.Member("id", id)
	l.List = l.a.List("versions", nil, cli.Column{Name: "VERSION", Right: true}, cli.Column{Name: "TIME"},
		cli.Column{Name: "SIZE", Right: true}, cli.Column{Name: "HASH"}, cli.Column{Name: "WRITER"})
}

func (l *versionList) show(ctx context.Context, vs versions, id string) error {
	a, n, complete, gone, holed := l.a, 0, true, false, false
	for v, err := range vs.History(ctx, id) {
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, varve.ErrNotFound) {
				return err
			}
			complete = false
			if lost := (*varve.GapError)(nil); errors.As(err, &lost) {
				holed = true
				a.Note("the log was damaged between the versions %d and %d and was repaired: versions of some "+
					"documents, perhaps also of %s, are lost", lost.From, lost.To, id)
				continue
			}
			a.Fail(err)
			continue
		}
		if n++; n == 1 && (v.Previous != 0 || v.FromFile || v.Kept) {
			complete, gone = false, v.HistoryGone
		}
		l.begin(id)
		if err := l.Add(ctx, versionItem(&v)); err != nil {
			return err
		}
	}
	l.begin(id)
	if err := l.End(ctx); err != nil {
		return err
	}
	switch {
	case a.Document != nil:
		a.Document.Member("complete", complete)
	case gone:
		a.Note("the history is gone: wal/ was deleted, or the store was copied or restored without wal/; if older " +
			"versions existed, only a backup can have them")
	case !complete && !holed:
		a.Note("older versions, if there were any, are no longer kept")
	}
	return nil
}

func versionItem(v *varve.Version) cli.Item {
	d := listedVersion{v.LSN, cli.OrNil(v.Time), v.Deleted, v.Size, "", v.Previous, v.Kept, writerItem(&v.Writer),
		v.Cause, nil}
	if v.Redacted {
		d.Redacted = &redacted{v.RedactedAt, writerItem(&v.RedactedBy)}
	} else if !v.Deleted {
		d.Hash = "sha256:" + hex.EncodeToString(v.ContentHash[:])
	}
	number, at := strconv.FormatUint(v.LSN, 10), v.Time.Format("2006-01-02T15:04:05.000000Z")
	size, hash := fmt.Sprintf("%d B", v.Size), "sha256:"+hex.EncodeToString(v.ContentHash[:6])
	if v.Deleted {
		size, hash = "deleted", ""
	}
	if v.Redacted {
		size, hash = "redacted", v.RedactedAt.Format("2006-01-02T15:04:05Z")
		if by := cli.WrittenBy(&v.RedactedBy, ""); by != "" {
			hash += " by " + by
		}
	}
	by := cli.WrittenBy(&v.Writer, v.Cause)
	return cli.Item{
		ID: v.ID + "@" + number, JSON: d,
		Text:  func() string { return strings.Join([]string{number, at, size, hash, by}, "\t") },
		Cells: func() []string { return []string{number, at, size, hash, by} },
	}
}
