package notecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// Command returns memctl note, the group of commands for notes.
func Command(a *cli.App) *cobra.Command {
	return a.Group(&cobra.Command{
		Use:     "note",
		Aliases: []string{"notes"},
		Short:   "Manage notes: text files at paths",
		Long: `Manage notes: files of text, or of any bytes up to 16 MiB, at paths. The file notes/PATH in the store
has exactly the bytes of the note, and may be edited by hand. The versions of a note are kept in the
history, like those of a memory.`,
		Example: `  echo "- prefers trains" | memctl note append travel/rome.md
  memctl note edit travel/rome.md --old trains --new buses
  memctl note grep -i rome`,
	}, lsCommand(a), catCommand(a), writeCommand(a), editCommand(a), appendCommand(a), mvCommand(a), rmCommand(a),
		grepCommand(a), logCommand(a), diffCommand(a), restoreCommand(a), importCommand(a), exportCommand(a),
		adoptCommand(a), releaseCommand(a))
}

// Listed is a note, or a folder of notes, in the JSON output of note ls.
type Listed struct {
	Path     string         `json:"path"`
	Folder   bool           `json:"folder,omitempty"`
	Notes    int            `json:"notes,omitempty"` // number of notes in the folder
	ID       string         `json:"id,omitempty"`
	Version  uint64         `json:"version,omitempty"`
	Size     int64          `json:"size"`
	Hash     string         `json:"content_sha256,omitempty"`
	Session  string         `json:"session_id,omitempty"`
	Tags     []string       `json:"tags,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
	Expires  *time.Time     `json:"expires_at,omitempty"`
	Created  *time.Time     `json:"created_at,omitempty"`
	Updated  *time.Time     `json:"updated_at,omitempty"`
}

func listed(i *varve.NoteInfo) Listed {
	return Listed{Path: i.Path, ID: i.ID, Version: i.Version, Size: i.Size, Hash: i.ContentHash,
		Session: i.Properties.SessionID, Tags: i.Properties.Tags, Metadata: i.Properties.Metadata,
		Expires: cli.OrNil(i.Properties.ExpiresAt), Created: cli.OrNil(i.CreatedAt), Updated: cli.OrNil(i.UpdatedAt)}
}

// conditions are the flags that make a write conditional on the current version of the note.
type conditions struct {
	version uint64
	hash    string
	absent  bool
}

func (c *conditions) flags(cmd *cobra.Command, creates bool) {
	cmd.Flags().Uint64Var(&c.version, "if-version", 0, "only if this `version` is the newest one")
	cmd.Flags().StringVar(&c.hash, "if-hash", "", "only if the content has this `sha256`, as hexadecimal digits")
	if creates {
		cmd.Flags().BoolVar(&c.absent, "if-absent", false, "only if no note has this path")
	}
}

func (c *conditions) list(cmd *cobra.Command) (list []varve.Cond) {
	if cmd.Flags().Changed("if-version") {
		list = append(list, varve.IfVersion(c.version))
	}
	if cmd.Flags().Changed("if-hash") {
		list = append(list, varve.IfHash(c.hash))
	}
	if c.absent {
		list = append(list, varve.IfAbsent())
	}
	return list
}

// withNoteFix adds a remedy to an error about a note. If no remedy for the error is known, withNoteFix returns the
// error unchanged.
func withNoteFix(err error) error {
	var match *varve.MatchError
	switch {
	case errors.As(err, &match):
		return cli.WithFix(err, "memctl note cat PATH shows the note")
	case errors.Is(err, varve.ErrNotFound):
		return cli.WithFix(err, "memctl note ls shows the notes of the store")
	case errors.Is(err, varve.ErrConflict):
		return cli.WithFix(err, "read the current version (memctl note cat PATH) and retry")
	}
	return err
}

// absent adds a remedy to the error err of a command on the note at path. If no such note exists and path is a folder
// of notes, the new error says that path is a folder, and the remedy is memctl note with the subcommand instead.
func absent(ctx context.Context, st *varve.Store, path string, err error, instead string) error {
	if !errors.Is(err, varve.ErrNotFound) {
		return withNoteFix(err)
	}
	folder, n := strings.TrimSuffix(path, "/"), 0
	for e, err := range st.Notes().List(ctx, folder, 1) {
		if err != nil {
			break
		}
		n += e.Notes
	}
	if n == 0 {
		return withNoteFix(err)
	}
	return cli.WithFix(fmt.Errorf("%w: %s is a folder of %s", varve.ErrNotFound, cli.PrintableID(folder),
		cli.Count(n, "note", "notes")), fmt.Sprintf("memctl note %s %s", instead, cli.PrintableID(folder)))
}

// tell prints that a note was written. verb is the verb of this message.
func tell(a *cli.App, i *varve.NoteInfo, verb string) {
	if a.Document != nil {
		a.Document.All(listed(i))
		return
	}
	a.Say("%s %s", verb, cli.PrintableID(i.Path))
}

// read returns the new content of a note, which it reads from stdin.
func read(a *cli.App) ([]byte, error) {
	const most = 16<<20 + 1 // the store refuses what is longer
	return io.ReadAll(io.LimitReader(a.In, most))
}

// writes sets in c the arguments, the flags and the function of a command that changes one note. The first argument is
// the path of the note. f makes the change, under the conditions that the flags name. creates is true if the command
// can create a note; then it has the flag --if-absent.
func writes(a *cli.App, c *cobra.Command, creates bool,
	f func(ctx context.Context, ns varve.Notes, path string, conds []varve.Cond) (varve.NoteInfo, error)) *cobra.Command {
	var conds conditions
	c.Args = cli.Exactly(1, "the path of a note")
	c.RunE = a.Do(func(cmd *cobra.Command, args []string) error {
		return a.With(cmd.Context(), cli.Write, func(st *varve.Store) error {
			i, err := f(cmd.Context(), st.Notes(), args[0], conds.list(cmd))
			if err == nil {
				tell(a, &i, "wrote")
			}
			return withNoteFix(err)
		})
	})
	conds.flags(c, creates)
	return c
}

func writeCommand(a *cli.App) *cobra.Command {
	return writes(a, &cobra.Command{
		Use:   "write PATH",
		Short: "Write a note from standard input",
		Long: `Write a note from standard input. The previous content stays in the history. If the note already has
this content, no new version is made.`,
		Example: "  memctl note write travel/rome.md < rome.md\n  memctl note write index.md --if-absent < index.md",
	}, true, func(ctx context.Context, ns varve.Notes, path string, conds []varve.Cond) (varve.NoteInfo, error) {
		data, err := read(a)
		if err != nil {
			return varve.NoteInfo{}, err
		}
		return ns.Write(ctx, path, data, conds...)
	})
}

func appendCommand(a *cli.App) *cobra.Command {
	return writes(a, &cobra.Command{
		Use:     "append PATH",
		Short:   "Append standard input to a note",
		Long:    `Append standard input to a note; a note that does not exist is created.`,
		Example: "  echo '- took the train' | memctl note append log/2026-03-01.md",
	}, true, func(ctx context.Context, ns varve.Notes, path string, conds []varve.Cond) (varve.NoteInfo, error) {
		data, err := read(a)
		if err != nil {
			return varve.NoteInfo{}, err
		}
		return ns.Append(ctx, path, data, conds...)
	})
}

func editCommand(a *cli.App) *cobra.Command {
	var from, to string
	c := writes(a, &cobra.Command{
		Use:   "edit PATH --old TEXT --new TEXT",
		Short: "Replace a text in a note",
		Long: `Replace a text that occurs exactly once in a note. If the text occurs more often, or not at all, nothing
is written, and the error lists the lines of the occurrences. Two processes that edit one note at the same
time lose no edit.`,
		Example: "  memctl note edit travel/rome.md --old trains --new buses",
	}, false, func(ctx context.Context, ns varve.Notes, path string, conds []varve.Cond) (varve.NoteInfo, error) {
		return ns.Edit(ctx, path, from, to, conds...)
	})
	c.Flags().StringVar(&from, "old", "", "the `TEXT` to replace")
	c.Flags().StringVar(&to, "new", "", "the `TEXT` that replaces the old text")
	_ = c.MarkFlagRequired("old")
	_ = c.MarkFlagRequired("new")
	return c
}

func catCommand(a *cli.App) *cobra.Command {
	var version uint64
	c := &cobra.Command{
		Use:     "cat PATH...",
		Short:   "Print notes",
		Long:    `Print the content of notes, byte for byte; with --version, of an older version.`,
		Example: "  memctl note cat travel/rome.md\n  memctl note cat travel/rome.md --version 65664",
		Args:    cli.AtLeastOne("the path of at least one note"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			ctx, older := cmd.Context(), cmd.Flags().Changed("version")
			if older && len(args) > 1 {
				return cli.Usagef(cmd.CommandPath(), "--version works with only one note, not with %d", len(args))
			}
			return a.With(ctx, cli.Read, func(st *varve.Store) error {
				a.Document.Begin("notes")
				return a.Each(ctx, args, func(path string) error {
					var n varve.Note
					var err error
					if older {
						var v varve.Version
						v, err = document(ctx, st, path, version)
						n = varve.Note{NoteInfo: varve.NoteInfo{Path: v.ID, Version: v.LSN, Size: v.Size, UpdatedAt: v.Time},
							Content: v.Document}
					} else {
						n, err = st.Notes().Read(ctx, path)
					}
					if err != nil {
						return absent(ctx, st, path, err, "ls")
					}
					if a.Document != nil {
						a.Document.Item(shown{listed(&n.NoteInfo), string(n.Content)})
						return nil
					}
					_, err = a.Out.Data(cli.Text).Write(n.Content)
					return err
				})
			})
		}),
	}
	c.Flags().Uint64Var(&version, "version", 0, "print this `version`")
	return c
}

// shown is a note with its content in the JSON output. Bytes that are not valid UTF-8 are shown as U+FFFD.
type shown struct {
	Listed
	Content string `json:"content"`
}

func mvCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "mv FROM TO",
		Aliases: []string{"rename"},
		Short:   "Rename a note or a folder",
		Long: `Give a note, or all notes in a folder, another path, in one commit. The notes keep their history. If a
note or a folder exists at the new path, nothing is changed.`,
		Example: "  memctl note mv travel/rome.md archive/rome.md\n  memctl note mv travel trips",
		Args:    cli.Exactly(2, "two paths"),
		RunE: a.OnStore(cli.Write, func(ctx context.Context, st *varve.Store, args []string) error {
			n, err := st.Notes().Rename(ctx, folderOf(args[0]), folderOf(args[1]))
			if err != nil {
				return withNoteFix(err)
			}
			if a.Document != nil {
				a.Document.All(struct {
					From  string `json:"from"`
					To    string `json:"to"`
					Notes int    `json:"notes"`
				}{args[0], args[1], n})
				return nil
			}
			a.Say("renamed %s to %s", cli.PrintableID(args[0]), cli.PrintableID(args[1]))
			return nil
		}),
	}
}

func folderOf(path string) string { return strings.TrimSuffix(path, "/") }

func rmCommand(a *cli.App) *cobra.Command {
	var conds conditions
	var all bool
	c := &cobra.Command{
		Use:     "rm PATH...",
		Aliases: []string{"delete"},
		Short:   "Delete notes",
		Long: `Delete notes; with --recursive, all notes in a folder. Their versions stay in the history, and memctl
note restore restores a note.`,
		Example: "  memctl note rm travel/rome.md\n  memctl note rm --recursive travel",
		Args:    cli.AtLeastOne("the path of at least one note"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			list := conds.list(cmd)
			if len(list) > 0 && (len(args) > 1 || all) {
				return cli.Usagef(cmd.CommandPath(), "--if-version and --if-hash work with only one note")
			}
			ctx := cmd.Context()
			return a.With(ctx, cli.Write, func(st *varve.Store) error {
				a.Document.Begin("deleted")
				return a.Each(ctx, args, func(path string) error {
					err := st.Notes().Delete(ctx, path, list...)
					if all && (errors.Is(err, varve.ErrNotFound) || errors.Is(err, varve.ErrInvalid)) {
						_, err = st.Notes().DeleteFolder(ctx, folderOf(path))
					}
					if err == nil {
						a.Document.Item(path)
						a.Say("deleted %s", cli.PrintableID(path))
					}
					return absent(ctx, st, path, err, "rm --recursive")
				})
			})
		}),
	}
	conds.flags(c, false)
	c.Flags().BoolVarP(&all, "recursive", "r", false, "if a path is a folder, delete all notes in it")
	return c
}
