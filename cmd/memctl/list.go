package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

func listCommand(a *cli.App) *cobra.Command {
	var (
		f     filterFlags
		limit int
	)
	c := &cobra.Command{
		Use:   "list",
		Short: "List memories",
		Long: `List memories by id: on a terminal as a table, otherwise one per line with id, time of the last
write (UTC), session and text, separated by tabs, and for a memory that expires the time when
("expires 2026-01-31T15:04:05Z"). If there are more, a note has the command that continues, and
"next" in the JSON document is the value for --after.`,
		Example: "  memctl list --session s1 --since 24h\n  memctl list --prefix note- --limit 0 --json\n  memctl list --after note-050",
		Args:    cli.NoArguments,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return cli.Usagef(cmd.CommandPath(), "--limit %d: must be 0 (all) or more", limit)
			}
			filters, err := f.filters(cmd, a.Clock())
			if err != nil {
				return err
			}
			return a.With(cmd.Context(), cli.Read, func(st *varve.Store) error { return listMemories(cmd.Context(), a, st, filters, limit) })
		}),
	}
	f.add(a, c)
	c.Flags().StringVar(&f.after, "after", "", "only memories after this `id`")
	c.Flags().IntVarP(&limit, "limit", "n", 50, "list at most `N` memories; 0 means all")
	return c
}

// listed is a memory in list's list: all but the numbers of its embeddings.
type listed struct {
	ID        string         `json:"id"`
	Version   uint64         `json:"version"`
	Content   string         `json:"content"`
	Timestamp *time.Time     `json:"timestamp,omitempty"`
	Created   *time.Time     `json:"created_at,omitempty"`
	Updated   *time.Time     `json:"updated_at,omitempty"`
	Expires   *time.Time     `json:"expires_at,omitempty"`
	Score     float64        `json:"quickrecal_score"`
	Accesses  int64          `json:"access_count"`
	Dims      int            `json:"embedding_dims"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

func listedOf(m *varve.Memory) listed {
	return listed{
		m.ID, m.Version, m.Content, cli.OrNil(m.Timestamp), cli.OrNil(m.CreatedAt), cli.OrNil(m.UpdatedAt), cli.OrNil(m.ExpiresAt),
		m.QuickRecalScore, m.AccessCount, len(m.Embedding), m.Metadata,
	}
}

func listMemories(ctx context.Context, a *cli.App, st *varve.Store, filters []varve.Filter, limit int) error {
	a.Document.Begin("memories")
	width := a.Columns("WRITTEN", cli.TimeWidth)
	n, last, more := 0, "", false
	for m, err := range st.Memories(ctx, filters...) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			a.Fail(err)
			continue
		}
		if limit > 0 && n == limit {
			more = true
			break
		}
		n, last = n+1, m.ID
		if a.Document != nil {
			a.Document.Item(listedOf(&m))
			continue
		}
		tellMemory(a, &m, width)
	}
	a.ListEnd("list", "memory", n, last, more)
	return nil
}

func tellMemory(a *cli.App, m *varve.Memory, width int) {
	id, session, text := cli.PrintableID(m.ID), cli.Printable(m.Session()), cli.Printable(m.Content)
	if width == 0 {
		if !m.ExpiresAt.IsZero() {
			text += "\texpires " + m.ExpiresAt.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(a.Out, "%s\t%s\t%s\t%s\n", id, m.UpdatedAt.Format(time.RFC3339), session, text)
		return
	}
	if !m.ExpiresAt.IsZero() {
		text = m.ExpiresAt.Local().Format("[until 2006-01-02 15:04] ") + text
	}
	// An id is not cut: it is what is copied from here.
	fmt.Fprintf(a.Out, "%s  %s  %s  %s\n", cli.Pad(id, cli.IDWidth), cli.Pad(m.UpdatedAt.Local().Format("2006-01-02 15:04"), cli.TimeWidth),
		cli.Pad(cli.Cut(session, cli.SessionWidth), cli.SessionWidth), cli.Cut(text, width))
}
