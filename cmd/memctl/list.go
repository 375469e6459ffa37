package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
)

func listCommand(a *app) *cobra.Command {
	var (
		f     filterFlags
		limit int
	)
	c := &cobra.Command{
		Use:   "list",
		Short: "List memories",
		Long: `List memories by id. On a terminal as a table; elsewhere one a line, with tabs between
id, time of writing, session and text, and of what expires the time of that behind it
("expires 2026-01-31T15:04:05Z"). When there are more, the command that goes on
is named, and "next" in the JSON document is what --after wants.`,
		Example: "  memctl list --session s1 --since 24h\n  memctl list --prefix note- --limit 0 --json\n  memctl list --after note-050",
		Args:    noArguments,
		RunE: a.do(func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef(cmd.CommandPath(), "--limit %d: it must be 0 (all) or more", limit)
			}
			filters, err := f.filters(cmd, a.clock())
			if err != nil {
				return err
			}
			return a.with(cmd.Context(), read, func(st *varve.Store) error { return listMemories(cmd.Context(), a, st, filters, limit) })
		}),
	}
	f.add(a, c)
	c.Flags().StringVar(&f.after, "after", "", "those behind this `id`")
	c.Flags().IntVarP(&limit, "limit", "n", 50, "how many; 0 is all")
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
		m.ID, m.Version, m.Content, some(m.Timestamp), some(m.CreatedAt), some(m.UpdatedAt), some(m.ExpiresAt),
		m.QuickRecalScore, m.AccessCount, len(m.Embedding), m.Metadata,
	}
}

func listMemories(ctx context.Context, a *app, st *varve.Store, filters []varve.Filter, limit int) error {
	a.document.begin("memories")
	width := a.columns("WRITTEN", timeWidth)
	n, last, more := 0, "", false
	for m, err := range st.Memories(ctx, filters...) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			a.fail(err)
			continue
		}
		if limit > 0 && n == limit {
			more = true
			break
		}
		n, last = n+1, m.ID
		if a.document != nil {
			a.document.item(listedOf(&m))
			continue
		}
		tellMemory(a, &m, width)
	}
	a.listEnd("list", "memory", n, last, more)
	return nil
}

func tellMemory(a *app, m *varve.Memory, width int) {
	id, session, text := printableID(m.ID), printable(m.Session()), printable(m.Content)
	if width == 0 {
		if !m.ExpiresAt.IsZero() {
			text += "\texpires " + m.ExpiresAt.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(a.out, "%s\t%s\t%s\t%s\n", id, m.UpdatedAt.Format(time.RFC3339), session, text)
		return
	}
	if !m.ExpiresAt.IsZero() {
		text = m.ExpiresAt.Local().Format("[until 2006-01-02 15:04] ") + text
	}
	// An id is not cut: it is what is copied from here.
	fmt.Fprintf(a.out, "%s  %s  %s  %s\n", pad(id, idWidth), pad(m.UpdatedAt.Local().Format("2006-01-02 15:04"), timeWidth),
		pad(cut(session, sessionWidth), sessionWidth), cut(text, width))
}
