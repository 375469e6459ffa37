package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/span"
	"github.com/varve-db/varve/memstore"
)

// listFlags are the flags of list.
type listFlags struct {
	filterFlags
	sort          string
	reverse       bool
	limit, offset int
}

func listCommand(a *cli.App) *cobra.Command {
	var f listFlags
	c := &cobra.Command{
		Use:        "list",
		SuggestFor: []string{"ls"},
		Short:      "List memories",
		Long: `List memories by id: on a terminal as a table, otherwise one per line with id, time of the last
write (UTC), session and text, separated by tabs, and for a memory that expires the time when
("expires 2026-01-31T15:04:05Z"). If there are more, a note has the command that continues, and
"next" in the JSON document is the value for --after.

A table on a terminal shows the age of the last write, and of each generated id the ending, 6
characters or more, that no other memory of the store has: commands take such an ending in the
place of the id. Everything else has whole ids: a pipe, --output id, --json, and a table of more
than 1,000 rows.

--after is a place in the list, not a time as in memctl search: for times use --since and
--before.

--sort orders by created, updated, score, size, timestamp or id; -updated, or --reverse, is the
opposite order. Memories of one key are in the order of their ids. A sorted list continues with
--after too, whose value is then the place that the note and "next" in the JSON document have: what
others write meanwhile does not shift the pages. --offset skips memories.`,
		Example: `  memctl list --session s1 --since 24h
  memctl list --sort -updated --limit 10
  memctl list --prefix note- --limit 0 --json
  memctl list --after note-050 --output id`,
		Args: cli.NoArguments,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			if f.limit < 0 {
				return cli.Usagef(cmd.CommandPath(), "--limit %d: must be 0 (all) or more", f.limit)
			}
			order, err := f.order(cmd)
			if err != nil {
				return err
			}
			filters, err := f.filters(cmd, a.Clock())
			if err != nil {
				return err
			}
			return a.With(cmd.Context(), cli.Read, func(st *varve.Store) error {
				if err := f.place(cmd, st, a.Clock()); err != nil {
					return err
				}
				l := newMemoryList(a, st, "memories", "AGE")
				return listMemories(cmd, a, st, l, order, filters, &f)
			})
		}),
	}
	f.add(c)
	fl := c.Flags()
	fl.StringVar(&f.after, "after", "",
		"only memories after this `id`, or, in a sorted list, after the place that the previous page gave as \"next\"")
	fl.IntVarP(&f.limit, "limit", "n", 50, "list at most `N` memories; 0 means all")
	fl.StringVar(&f.sort, "sort", "",
		"sort by this `key`: created, updated, score, size, timestamp or id; put - before the key for the opposite "+
			"order")
	fl.BoolVar(&f.reverse, "reverse", false, "list in the opposite order")
	fl.IntVar(&f.offset, "offset", 0, "skip the first `N` memories of a sorted list")
	a.OutputFlag(c, cli.FormTable, cli.FormJSON, cli.FormJSONL, cli.FormID)
	return c
}

// listed is a memory in the JSON output of list, without the numbers of its embedding.
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
	Writer    *varve.Writer  `json:"writer,omitempty"`
}

// listedOf returns a memory in the form for the JSON output of list. author is the writer of the memory's version,
// nil if unknown.
func listedOf(m *varve.Memory, author *varve.Writer) listed {
	return listed{
		m.ID, m.Version, m.Content, cli.OrNil(m.Timestamp), cli.OrNil(m.CreatedAt), cli.OrNil(m.UpdatedAt),
		cli.OrNil(m.ExpiresAt),
		m.QuickRecalScore, m.AccessCount, len(m.Embedding), m.Metadata, author,
	}
}

// memoryList is a list of memories: a first column that depends on the command, then id, session
// and text.
type memoryList struct {
	a  *cli.App
	st *varve.Store
	*cli.List
}

// by returns the writer of a memory's version for the JSON output, nil if the writer is unknown.
func (l *memoryList) by(m *varve.Memory) *varve.Writer {
	w := l.st.Admin().WriterOf(m.By, m.Version)
	return writerItem(&w)
}

func newMemoryList(a *cli.App, st *varve.Store, member, first string) *memoryList {
	return &memoryList{a, st, a.List(member, st.Admin().Lines,
		cli.Column{Name: "ID"}, cli.Column{Name: first, Right: true}, cli.Column{Name: "SESSION", Most: 12},
		cli.Column{Name: "TEXT"})}
}

// listMemories lists the memories that pass filters, sorted by order, or by id if order is nil. It passes each memory
// to l as soon as the memory is read.
func listMemories(cmd *cobra.Command, a *cli.App, st *varve.Store, l *memoryList, order *memstore.Order,
	filters []varve.Filter, f *listFlags) error {
	ctx, limit, chosen := cmd.Context(), f.limit, filters
	if order != nil {
		filters = append(filters, varve.Sorted(order))
	}
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
		if n, last = n+1, m.ID; order != nil {
			last = order.Place()
		}
		if err := l.add(ctx, &m); err != nil {
			return err
		}
	}
	if err := l.End(ctx); err != nil {
		return err
	}
	cmd.Flags().Lookup("offset").Changed = false // the cursor is after the skipped memories
	a.ListEnd(cmd, n, last, more, func() string { return f.noMatchMessage(ctx, st, chosen) })
	return nil
}

// add adds a memory to the list, with the time since its last write in the first column.
func (l *memoryList) add(ctx context.Context, m *varve.Memory) error {
	it := cli.Item{ID: m.ID, Text: func() string { return memoryLine(m) }, Cells: func() []string {
		now := l.a.Clock()
		return l.cells(m, span.Age(now.Sub(m.UpdatedAt)))
	}}
	if l.a.Encodes() {
		it.JSON = listedOf(m, l.by(m))
	}
	return l.Add(ctx, it)
}

func (l *memoryList) cells(m *varve.Memory, first string) []string {
	return []string{cli.PrintableID(m.ID), first, cli.Printable(m.Session()), l.timeLeft(m) + cli.Printable(m.Content)}
}

// timeLeft returns the time until a memory expires, as text in brackets. It returns "" if the memory never
// expires.
func (l *memoryList) timeLeft(m *varve.Memory) string {
	if m.ExpiresAt.IsZero() {
		return ""
	}
	return "[" + span.Age(m.ExpiresAt.Sub(l.a.Clock())) + " left] "
}

// memoryLine returns a memory as a line of text for output that a program reads.
func memoryLine(m *varve.Memory) string {
	text := cli.Printable(m.Content)
	if !m.ExpiresAt.IsZero() {
		text += "\texpires " + m.ExpiresAt.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s", cli.PrintableID(m.ID), m.UpdatedAt.Format(time.RFC3339),
		cli.Printable(m.Session()), text)
}
