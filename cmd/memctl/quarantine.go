package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/span"
	"github.com/varve-db/varve/cmd/memctl/internal/upkeep"
	"github.com/varve-db/varve/internal/vfs"
)

func quarantineCommand(a *cli.App) *cobra.Command {
	return a.Group(&cobra.Command{
		Use:   "quarantine",
		Short: "Manage the files in quarantine",
		Long: `Manage the files that a repair, the adoption of an edit, a flush or the recovery of the log has moved
to quarantine/: files that another file has replaced, that are damaged, or that occupied the path of
another file. memctl and the store never remove files from quarantine/ on their own.

A NAME is one that memctl quarantine list shows. Its beginning or its ending is enough if no other
name has the same; the hash at the beginning of a name may be omitted.`,
		Example: `  memctl quarantine list
  memctl quarantine show 3f2a
  memctl quarantine restore notes.json
  memctl quarantine drop --older-than 30d`,
	}, quarantineListCommand(a), quarantineShowCommand(a), quarantineRestoreCommand(a), quarantineDropCommand(a))
}

// setAside is a file in quarantine/, as the JSON output shows it.
type setAside struct {
	Name    string    `json:"name"`
	What    string    `json:"what"`
	Size    int64     `json:"size"`
	Time    time.Time `json:"time"`
	From    string    `json:"from,omitempty"`
	ID      string    `json:"id,omitempty"`
	Version uint64    `json:"version,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Hash    string    `json:"content_hash,omitempty"`
}

func setAsideOf(q *varve.Quarantined) setAside {
	return setAside{validName(q.Name), whatOf(q), q.Size, q.Time.UTC(), q.From, q.ID, q.Version, q.Reason, q.Hash}
}

// validName returns the name of a file with invalid UTF-8 replaced, as JSON requires.
func validName(name string) string { return strings.ToValidUTF8(name, "\ufffd") }

// whatOf returns the kind of a file in quarantine/ in words.
func whatOf(q *varve.Quarantined) string {
	if q.What == varve.QuarantinedSpecial {
		return strings.TrimPrefix(vfs.KindOf(q.Mode), "a ")
	}
	return string(q.What)
}

// subjectOf returns a description of a file in quarantine/. If a note about the file exists, the description is
// usually the path from which the file was moved.
func subjectOf(q *varve.Quarantined) string {
	switch {
	case q.What == varve.QuarantinedUndo:
		return "undo file of an older version of memctl"
	case q.What == varve.QuarantinedNote:
		return "note about a missing file: " + q.From
	case !q.Noted:
		return whatOf(q) + " without a note"
	case q.What == varve.QuarantinedSpecial:
		return q.From + " (" + whatOf(q) + ")"
	}
	return q.From
}

func quarantineListCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List the files in quarantine",
		Long: `List the files in quarantine, the oldest first: on a terminal as a table, otherwise one per line with
name, time (UTC), size in bytes, former path and reason, separated by tabs. A file without a note was
put into quarantine/ by an older version or by another program: its time is that of its last change.`,
		Example: "  memctl quarantine list\n  memctl quarantine list --json | jq '.quarantine[] | select(.id == \"notes\")'",
		Args:    cli.NoArguments,
		RunE: a.OnStore(cli.Read, func(ctx context.Context, st *varve.Store, _ []string) error {
			l := a.List("quarantine", nil, cli.Column{Name: "SET ASIDE"}, cli.Column{Name: "SIZE", Right: true},
				cli.Column{Name: "WHAT", Most: 30}, cli.Column{Name: "NAME", Most: 40}, cli.Column{Name: "REASON"})
			n := 0
			for q, err := range st.Admin().Quarantine().All(ctx) {
				if err != nil {
					return err
				}
				n++
				if err := l.Add(ctx, quarantineItem(a, &q)); err != nil {
					return err
				}
			}
			err := l.End(ctx)
			if n == 0 && err == nil && a.Document == nil {
				a.Note("quarantine/ is empty")
			}
			return err
		}),
	}
	a.OutputFlag(c, cli.FormTable, cli.FormJSON, cli.FormJSONL, cli.FormID)
	return c
}

func quarantineItem(a *cli.App, q *varve.Quarantined) cli.Item {
	what, reason := cli.Printable(subjectOf(q)), cli.Printable(q.Reason)
	return cli.Item{
		ID: q.Name, JSON: setAsideOf(q),
		Text: func() string {
			at := q.Time.UTC().Format(time.RFC3339)
			return strings.Join([]string{cli.PrintableID(q.Name), at, fmt.Sprint(q.Size), what, reason}, "\t")
		},
		Cells: func() []string {
			return []string{span.Age(a.Clock().Sub(q.Time)) + " ago", cli.Size(q.Size), what, cli.PrintableID(q.Name), reason}
		},
	}
}

// shownMost is the maximum size, in bytes, of a file that show prints without --raw.
const shownMost = 16 << 20

func quarantineShowCommand(a *cli.App) *cobra.Command {
	var raw bool
	var file string
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a file in quarantine",
		Long: `Show the note about a file in quarantine and, if the file is text, its content. On a terminal, the
numbers of an embedding are left out. With --raw, write the exact bytes and nothing else, to stdout or
into the file that --file names, which appears when it is complete.`,
		Example: "  memctl quarantine show notes.json\n  memctl quarantine show 3f2a --raw --file notes.json",
		Args:    cli.Exactly(1, "the name of a file in quarantine"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			ctx, toFile := cmd.Context(), file != "" && file != "-"
			raw = raw || cmd.Flags().Changed("file")
			if raw && !toFile && a.Document != nil {
				return cli.Usagef(cmd.CommandPath(), "--raw writes bytes to stdout, but --json writes one document: "+
					"give --file, or omit one of them")
			}
			return a.With(ctx, cli.Read, func(st *varve.Store) error {
				quarantine := st.Admin().Quarantine()
				q, err := findSetAside(ctx, cmd, quarantine, args[0])
				switch {
				case err != nil:
					return err
				case !raw:
					return showSetAside(ctx, a, quarantine, &q)
				case !toFile:
					_, err = quarantine.Copy(ctx, q.Name, a.Out.Data(cli.Text))
					return err
				}
				n := int64(0)
				err = a.ReplaceFile(file, 0o600, func(w io.Writer) (err error) {
					n, err = quarantine.Copy(ctx, q.Name, w)
					return err
				})
				if err != nil {
					return fmt.Errorf("writing %s: %w", file, err)
				}
				a.Document.Member("file", file)
				a.Document.Member("bytes", n)
				a.Say("wrote %s to %s", cli.Count(int(n), "byte", "bytes"), file)
				return nil
			})
		}),
	}
	c.Flags().BoolVar(&raw, "raw", false, "write the exact bytes")
	c.Flags().StringVarP(&file, "file", "f", "", "write the exact bytes into this `file`; - is stdout")
	return c
}

// showSetAside prints the note about a file in quarantine/, and the content of the file.
func showSetAside(ctx context.Context, a *cli.App, quarantine varve.Quarantine, q *varve.Quarantined) error {
	content, text, err := contentOf(ctx, quarantine, q)
	if err != nil {
		return err
	}
	if a.Document != nil {
		a.Document.Member("piece", setAsideOf(q))
		switch {
		case json.Valid(content):
			a.Document.Member("document", json.RawMessage(content))
		case text:
			a.Document.Member("text", string(content))
		}
		return nil
	}
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(a.Out, "%-10s %s\n", name, cli.Printable(value))
		}
	}
	line("name", q.Name)
	line("set aside", q.Time.UTC().Format(time.RFC3339))
	line("what", subjectOf(q))
	line("id", q.ID)
	if q.Version != 0 {
		line("version", fmt.Sprint(q.Version))
	}
	line("size", fmt.Sprintf("%d B", q.Size))
	line("hash", q.Hash)
	line("reason", q.Reason)
	line("known", q.Known)
	if !text {
		if q.What == varve.QuarantinedFile && q.Size > 0 {
			a.Note("not shown: %s of content that is not text or is too long; --raw writes the content",
				cli.Size(q.Size))
		}
		return nil
	}
	form, numbers := cli.Text, 0
	if json.Valid(content) {
		if form = cli.JSON; a.Out.Screen {
			content, numbers = withoutEmbedding(content)
		}
	}
	if !bytes.HasSuffix(content, []byte("\n")) {
		content = append(content, '\n')
	}
	fmt.Fprintln(a.Out)
	if _, err = a.Out.Data(form).Write(content); err == nil && numbers > 0 {
		a.Note("not shown: the embedding, %s; --raw prints it", cli.Count(numbers, "number", "numbers"))
	}
	return err
}

// contentOf returns the content of a file in quarantine/, or nil if it cannot be shown. text is true if the content is
// text.
func contentOf(ctx context.Context, quarantine varve.Quarantine,
	q *varve.Quarantined) (content []byte, text bool, err error) {
	if q.What != varve.QuarantinedFile && q.What != varve.QuarantinedUndo || q.Size == 0 || q.Size > shownMost {
		return nil, false, nil
	}
	var b bytes.Buffer
	if _, err := quarantine.Copy(ctx, q.Name, &b); err != nil {
		return nil, false, err
	}
	text = utf8.Valid(b.Bytes()) && !bytes.ContainsRune(b.Bytes(), 0)
	return b.Bytes(), text, nil
}

func quarantineRestoreCommand(a *cli.App) *cobra.Command {
	var version uint64
	var drop bool
	c := &cobra.Command{
		Use:   "restore NAME",
		Short: "Restore a memory or an assembly from quarantine",
		Long: `Restore a memory or an assembly from quarantine, as a new version of its id. The current version, if
there is one, stays in the history: memctl revert restores it. An expiry in the past is not restored,
and neither is the embedding of a model that was replaced since. The file stays in quarantine/ unless
you add --drop.

Only a memory or an assembly that the store accepts can be restored. To copy any other file out of
quarantine/, use memctl quarantine show --raw.`,
		Example: "  memctl quarantine restore notes.json\n" +
			"  memctl quarantine restore notes.json --if-version 65664 --drop",
		Args: cli.Exactly(1, "the name of a file in quarantine"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			var conds []varve.Cond
			if cmd.Flags().Changed("if-version") {
				conds = append(conds, varve.IfVersion(version))
			}
			return a.With(ctx, cli.Write, func(st *varve.Store) error {
				quarantine := st.Admin().Quarantine()
				q, err := findSetAside(ctx, cmd, quarantine, args[0])
				if err != nil {
					return err
				}
				r, err := quarantine.Restore(ctx, q.Name, conds...)
				if err != nil {
					return notRestored(err, &q)
				}
				kind := "memory"
				if r.Assembly {
					kind = "assembly"
				}
				a.Document.Member("restored", struct {
					Name    string `json:"name"`
					Kind    string `json:"kind"`
					ID      string `json:"id"`
					Version uint64 `json:"version"`
				}{validName(q.Name), kind, r.ID, r.Version})
				a.Say("restored %s %s as version %d", kind, cli.PrintableID(r.ID), r.Version)
				if drop {
					if _, err := quarantine.Drop(ctx, q.Name); err != nil {
						return err
					}
				}
				a.Document.Member("dropped", drop)
				return nil
			})
		}),
	}
	c.Flags().Uint64Var(&version, "if-version", 0,
		"restore only if this `version` is the newest one; 0: only if the store has no document with this id")
	c.Flags().BoolVar(&drop, "drop", false, "remove the file from quarantine/ afterwards")
	return c
}

// notRestored adds a remedy to the error that Quarantine.Restore returned for a file.
func notRestored(err error, q *varve.Quarantined) error {
	if q.What == varve.QuarantinedSpecial {
		return cli.WithFix(err, "inspect this entry in the folder quarantine/ of the store, and copy from it what "+
			"you need")
	}
	for _, refused := range []error{varve.ErrInvalid, varve.ErrTooLarge, varve.ErrDimension, varve.ErrCorrupt} {
		if errors.Is(err, refused) {
			return cli.WithFix(err,
				"memctl quarantine show "+cli.ShellQuote(q.Name)+" --raw --file FILE copies the file out of "+
					"quarantine/; correct the copy, and then put the copy into the store")
		}
	}
	return err
}

func quarantineDropCommand(a *cli.App) *cobra.Command {
	var yes bool
	var older string
	c := &cobra.Command{
		Use:   "drop NAME... | --older-than AGE",
		Short: "Remove files from quarantine",
		Long: `Remove the named files from quarantine/, with their notes, or with --older-than
everything that was set aside that long ago. A folder is removed with everything in it. If one of the
names is unknown, nothing is removed.

The bytes are not overwritten: to remove every trace of a memory, purge it instead.

On a terminal quarantine drop asks for confirmation; elsewhere it requires --yes.`,
		Example: "  memctl quarantine drop notes.json\n  memctl quarantine drop --older-than 30d --yes",
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			path := cmd.CommandPath()
			var age time.Duration
			switch byAge := cmd.Flags().Changed("older-than"); {
			case byAge == (len(args) > 0):
				return cli.Usagef(path, "%s needs the names of the entries to remove, or --older-than 30d", path)
			case byAge:
				var err error
				if age, err = span.Parse(older); err != nil {
					return cli.Usagef(path, "--older-than %w", err)
				}
			}
			if _, ok := cli.Terminal(a.In); !ok && !yes {
				return cli.Usagef(path, "nothing was removed: without a terminal, quarantine drop needs --yes")
			}
			return a.With(cmd.Context(), cli.Write, func(st *varve.Store) error {
				return dropSetAside(cmd, a, st.Admin().Quarantine(), args, age, yes)
			})
		}),
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	c.Flags().StringVar(&older, "older-than", "", "files set aside this `duration` ago or earlier: 90m, 24h, 30d")
	return c
}

func dropSetAside(cmd *cobra.Command, a *cli.App, quarantine varve.Quarantine, args []string, age time.Duration,
	yes bool) error {
	ctx := cmd.Context()
	list, err := allSetAside(ctx, quarantine)
	if err != nil {
		return err
	}
	var chosen []varve.Quarantined
	if age > 0 {
		before := a.Clock().Add(-age)
		chosen = slices.DeleteFunc(list, func(q varve.Quarantined) bool { return q.Time.After(before) })
	}
	for _, arg := range args {
		q, err := nameSetAside(cmd, list, arg)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(chosen, func(o varve.Quarantined) bool { return o.Name == q.Name }) {
			chosen = append(chosen, q)
		}
	}
	names, size := make([]string, len(chosen)), int64(0)
	for i, q := range chosen {
		names[i], size = q.Name, size+q.Size
	}
	if len(names) > 0 && !yes {
		what := fmt.Sprintf("%s of %s will be removed from quarantine/. This cannot be undone.",
			cli.Count(len(names), "file", "files"), cli.Size(size))
		refused := fmt.Errorf("%w: nothing was removed: the removal was not confirmed", varve.ErrInvalid)
		if err := upkeep.Confirm(ctx, a, what, refused); err != nil {
			return err
		}
	}
	dropped, err := quarantine.Drop(ctx, names...)
	a.Document.Begin("dropped")
	for _, name := range dropped {
		a.Document.Item(validName(name))
		a.Say("removed quarantine/%s", cli.PrintableID(name))
	}
	if len(names) == 0 && a.Document == nil {
		a.Note("nothing in quarantine/ is that old")
	}
	return err
}

func allSetAside(ctx context.Context, quarantine varve.Quarantine) (list []varve.Quarantined, err error) {
	for q, err := range quarantine.All(ctx) {
		if err != nil {
			return nil, err
		}
		list = append(list, q)
	}
	return list, nil
}

// findSetAside returns the file in quarantine/ with the given name, or the only one whose name begins or ends
// with it.
func findSetAside(ctx context.Context, cmd *cobra.Command, quarantine varve.Quarantine,
	arg string) (varve.Quarantined, error) {
	list, err := allSetAside(ctx, quarantine)
	if err != nil {
		return varve.Quarantined{}, err
	}
	return nameSetAside(cmd, list, arg)
}

// namesShown is the maximum number of names that the error for an ambiguous name lists.
const namesShown = 10

func nameSetAside(cmd *cobra.Command, list []varve.Quarantined, arg string) (varve.Quarantined, error) {
	name := strings.TrimPrefix(arg, "quarantine/") // the form in which repair and verify print it
	if name == "" || strings.Contains(name, "/") {
		return varve.Quarantined{}, cli.Usagef(cmd.CommandPath(),
			"%q is not the name of an entry in quarantine/: memctl quarantine list shows the names", arg)
	}
	var like []varve.Quarantined
	for _, q := range list {
		for _, known := range []string{q.Name, validName(q.Name)} {
			if known == name {
				return q, nil
			}
		}
		_, behind, _ := strings.Cut(q.Name, "-") // the part after the hash
		if strings.HasPrefix(q.Name, name) || strings.HasSuffix(q.Name, name) || strings.HasPrefix(behind, name) {
			like = append(like, q)
		}
	}
	switch len(like) {
	case 0:
		err := fmt.Errorf("quarantine/%s: %w", cli.PrintableID(name), varve.ErrNotFound)
		return varve.Quarantined{}, cli.WithFix(err, "memctl quarantine list shows the names")
	case 1:
		return like[0], nil
	}
	var names []string
	for _, q := range like[:min(len(like), namesShown)] {
		names = append(names, cli.PrintableID(q.Name))
	}
	more := ""
	if n := len(like) - namesShown; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	err := fmt.Errorf("%w: %s is a beginning or an ending of several names: %s%s", varve.ErrInvalid, cli.PrintableID(name),
		strings.Join(names, ", "), more)
	return varve.Quarantined{}, cli.WithFix(err, "type more of the name")
}
