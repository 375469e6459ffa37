package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/varve-db/varve"
)

func (a *app) listCommand() *cobra.Command {
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
			return a.with(cmd.Context(), read, func(st *varve.Store) error { return a.list(cmd.Context(), st, filters, limit) })
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

func (a *app) list(ctx context.Context, st *varve.Store, filters []varve.Filter, limit int) error {
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
		a.row(&m, width)
	}
	a.listEnd("list", "memory", n, last, more)
	return nil
}

// listEnd says how the list goes on.
func (a *app) listEnd(command, what string, n int, last string, more bool) {
	switch {
	case a.document != nil && more:
		a.document.member("next", last)
	case a.document != nil:
		a.document.member("next", nil)
	case more:
		a.note("there are more: memctl %s … --after %s", command, shellQuote(last))
	case n == 0:
		a.note("no %s passes", what)
	}
}

// columns of the table; the text has the rest.
const idWidth, timeWidth, sessionWidth = 36, 16, 16

// columns writes the table's head, in which one column is named and as wide as
// given, and gives the width for the text; 0 when there is no terminal.
func (a *app) columns(name string, wide int) int {
	fd, ok := terminal(a.out.to)
	if !ok || a.document != nil {
		return 0
	}
	width, _, err := term.GetSize(fd)
	if err != nil || width <= 0 {
		width = 80
	}
	text := max(width-idWidth-wide-sessionWidth-6, 20)
	head := []string{pad("ID", idWidth), pad(name, wide), pad("SESSION", sessionWidth), "TEXT"}
	if wide == scoreWidth {
		head[0], head[1] = head[1], head[0]
	}
	a.out.inColour(bold, strings.Join(head, "  "))
	fmt.Fprintln(a.out)
	return text
}

func (a *app) row(m *varve.Memory, width int) {
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

func some(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// shellQuote makes one word of it for a POSIX shell; of what a terminal may not have, one for
// bash and zsh.
func shellQuote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@%+,=") == "" {
		return s
	}
	if escape(s, "") == s {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}
