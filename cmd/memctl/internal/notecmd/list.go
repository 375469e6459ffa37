package notecmd

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/span"
)

func lsCommand(a *cli.App) *cobra.Command {
	var depth int
	var glob string
	c := &cobra.Command{
		Use:     "ls [FOLDER]",
		Aliases: []string{"list"},
		Short:   "List notes",
		Long: `List the notes in a folder, or all, by path: on a terminal as a table, otherwise one per line with path,
time of the last write (UTC) and size, separated by tabs. With --depth, deeper notes are replaced by their
folder, whose path ends with a slash.`,
		Example: "  memctl note ls --depth 1\n  memctl note ls travel\n  memctl note ls --glob '**/*.md' --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) <= 1 {
				return nil
			}
			return cli.Usagef(cmd.CommandPath(), "%s takes one folder", cmd.CommandPath())
		},
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			ctx, folder := cmd.Context(), ""
			if len(args) > 0 {
				folder = folderOf(args[0])
			}
			return a.With(ctx, cli.Read, func(st *varve.Store) error {
				all := st.Notes().List(ctx, folder, depth)
				if glob != "" {
					all = st.Notes().Glob(ctx, glob)
				}
				l := a.List("notes", nil, cli.Column{Name: "PATH"}, cli.Column{Name: "AGE", Right: true},
					cli.Column{Name: "SIZE", Right: true})
				n := 0
				for e, err := range all {
					if err != nil {
						return withNoteFix(err)
					}
					n++
					if err := l.Add(ctx, item(a, &e)); err != nil {
						return err
					}
				}
				if err := l.End(ctx); err != nil {
					return err
				}
				a.ListEnd(cmd, n, "", false, func() string { return "no note found" })
				return nil
			})
		}),
	}
	c.Flags().IntVar(&depth, "depth", 0, "list at most `N` levels; 0 means all")
	c.Flags().StringVar(&glob, "glob", "", "only notes whose paths match this `pattern`: *, ?, [a-z], ** for any folders")
	c.MarkFlagsMutuallyExclusive("depth", "glob")
	a.OutputFlag(c, cli.FormTable, cli.FormJSON, cli.FormJSONL, cli.FormID)
	return c
}

func item(a *cli.App, e *varve.NoteEntry) cli.Item {
	d := listed(&e.NoteInfo)
	path, size := cli.PrintableID(e.Path), fmt.Sprintf("%d B", e.Size)
	if e.Folder {
		d = Listed{Path: e.Path, Folder: true, Notes: e.Notes, Size: e.Size, Updated: cli.OrNil(e.UpdatedAt)}
		path = cli.PrintableID(e.Path + "/")
	}
	return cli.Item{
		ID: e.Path, JSON: d,
		Text:  func() string { return strings.Join([]string{path, e.UpdatedAt.Format(time.RFC3339), size}, "\t") },
		Cells: func() []string { return []string{path, span.Age(a.Clock().Sub(e.UpdatedAt)), size} },
	}
}

// match is a line that note grep has found, in the JSON output.
type match struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

func grepCommand(a *cli.App) *cobra.Command {
	var ignoreCase, fixed bool
	c := &cobra.Command{
		Use:   "grep PATTERN [PATH]",
		Short: "Find lines of notes",
		Long: `Print the lines that match a regular expression (RE2), of all notes, or of the note or folder at PATH,
each with the path and the number of the line. A note that is not text is skipped.`,
		Example: "  memctl note grep -i rome\n  memctl note grep --fixed 'a.b' travel",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) == 2 {
				return nil
			}
			return cli.Usagef(cmd.CommandPath(), "%s takes a pattern, and a path", cmd.CommandPath())
		},
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			pattern, path := args[0], ""
			if fixed {
				pattern = regexp.QuoteMeta(pattern)
			}
			if ignoreCase {
				pattern = "(?i)" + pattern
			}
			re, err := regexp.Compile(pattern)
			if err != nil {
				return cli.Usagef(cmd.CommandPath(), "%v", err)
			}
			if len(args) > 1 {
				path = folderOf(args[1])
			}
			ctx := cmd.Context()
			return a.With(ctx, cli.Read, func(st *varve.Store) error {
				a.Document.Begin("matches")
				n := 0
				for m, err := range st.Notes().Grep(ctx, path, re) {
					if err != nil {
						return withNoteFix(err)
					}
					if n++; a.Document != nil {
						a.Document.Item(match(m))
						continue
					}
					fmt.Fprintf(a.Out, "%s:%d:%s\n", cli.PrintableID(m.Path), m.Line, cli.Printable(m.Text))
				}
				if n == 0 && a.Document == nil {
					a.Note("no line matches")
				}
				return nil
			})
		}),
	}
	c.Flags().BoolVarP(&ignoreCase, "ignore-case", "i", false, "ignore case")
	c.Flags().BoolVarP(&fixed, "fixed", "F", false, "the pattern is a text, not a regular expression")
	return c
}

// version is a version of a note in the JSON output of note history.
type version struct {
	Version uint64        `json:"version"`
	Path    string        `json:"path"` // path of the note at that version
	Time    *time.Time    `json:"time,omitempty"`
	Deleted bool          `json:"deleted"`
	Size    int64         `json:"size"`
	Hash    string        `json:"content_sha256,omitempty"`
	Writer  *varve.Writer `json:"writer,omitempty"`
	Cause   string        `json:"cause,omitempty"`
}

func logCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:     "log PATH",
		Aliases: []string{"history"},
		Short:   "List the versions of a note",
		Long: `List the versions of a note that the log and the archive still have, oldest first, also those from before
it was renamed, and those of a deleted note: on a terminal as a table, otherwise one per line with version, time (UTC),
size, hash, path and writer, separated by tabs; (edited) marks an edit of the file.`,
		Example: "  memctl note log travel/rome.md",
		Args:    cli.Exactly(1, "the path of a note"),
		RunE: a.OnStore(cli.Read, func(ctx context.Context, st *varve.Store, args []string) error {
			a.Document.Member("path", args[0])
			l := a.List("versions", nil, cli.Column{Name: "VERSION", Right: true}, cli.Column{Name: "TIME"},
				cli.Column{Name: "SIZE", Right: true}, cli.Column{Name: "HASH"}, cli.Column{Name: "PATH"},
				cli.Column{Name: "BY"})
			for v, err := range st.Notes().History(ctx, args[0]) {
				if err != nil {
					return withNoteFix(err)
				}
				if err := l.Add(ctx, versionItem(&v)); err != nil {
					return err
				}
			}
			return l.End(ctx)
		}),
	}
	a.OutputFlag(c, cli.FormTable, cli.FormJSON, cli.FormJSONL, cli.FormID)
	return c
}

func versionItem(v *varve.Version) cli.Item {
	d := version{Version: v.LSN, Path: v.ID, Time: cli.OrNil(v.Time), Deleted: v.Deleted, Size: v.Size, Cause: v.Cause}
	if v.Writer.Number != 0 {
		d.Writer = &v.Writer
	}
	size, hash := fmt.Sprintf("%d B", v.Size), fmt.Sprintf("%x", v.ContentHash[:6])
	if v.Deleted {
		size, hash = "deleted", ""
	} else {
		d.Hash = fmt.Sprintf("%x", v.ContentHash)
	}
	cells := []string{strconv.FormatUint(v.LSN, 10), v.Time.Format("2006-01-02T15:04:05.000000Z"), size, hash,
		cli.PrintableID(v.ID), cli.Printable(cli.WrittenBy(&v.Writer, v.Cause))}
	return cli.Item{ID: v.ID + "@" + cells[0], JSON: d,
		Text:  func() string { return strings.Join(cells, "\t") },
		Cells: func() []string { return cells }}
}
