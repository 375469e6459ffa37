package notecmd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/diff"
)

// document returns a version of a note, and an error if the version is a deletion.
func document(ctx context.Context, st *varve.Store, path string, number uint64) (varve.Version, error) {
	v, err := st.Notes().GetAt(ctx, path, number)
	if err == nil && v.Deleted {
		err = fmt.Errorf("%w: version %d of %s is a deletion", varve.ErrNotFound, number, cli.PrintableID(path))
	}
	return v, err
}

func diffCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "diff PATH [VERSION [VERSION]]",
		Short: "Show what has changed in a note",
		Long: `Compare, line by line, the current version of a note with the version before it or with a given
version, or compare two given versions.`,
		Example: "  memctl note diff travel/rome.md\n  memctl note diff travel/rome.md 65664",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) >= 1 && len(args) <= 3 {
				return nil
			}
			return cli.Usagef(cmd.CommandPath(), "%s takes one path and up to two versions", cmd.CommandPath())
		},
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			var numbers []uint64
			for _, arg := range args[1:] {
				n, err := strconv.ParseUint(arg, 10, 64)
				if err != nil {
					return cli.Usagef(cmd.CommandPath(), "%q is not a version: memctl note log PATH lists the "+
						"versions", arg)
				}
				numbers = append(numbers, n)
			}
			ctx := cmd.Context()
			return a.With(ctx, cli.Read, func(st *varve.Store) error {
				was, is, err := compared(ctx, st, args[0], numbers)
				if err != nil {
					return withNoteFix(err)
				}
				lines := diff.Unified(strings.Split(string(was.Document), "\n"),
					strings.Split(string(is.Document), "\n"))
				if a.Document != nil {
					a.Document.All(struct {
						Path string   `json:"path"`
						Was  uint64   `json:"was"`
						Is   uint64   `json:"is"`
						Diff []string `json:"diff"`
					}{args[0], was.LSN, is.LSN, append([]string{}, lines...)})
					return nil
				}
				for _, line := range lines {
					fmt.Fprintln(a.Out, cli.Printable(line))
				}
				if len(lines) == 0 {
					a.Note("the two versions are equal")
				}
				return nil
			})
		}),
	}
}

// compared returns the two versions that note diff compares. The command shows the changes that lead from older to
// newer. With two numbers, these are the versions with the numbers. With one number, older is the version with the
// number, and newer is the current version. Without numbers, newer is the current version, and older is the
// version before the last change of the content.
func compared(ctx context.Context, st *varve.Store, path string,
	numbers []uint64) (older, newer varve.Version, err error) {
	switch len(numbers) {
	case 2:
		if older, err = document(ctx, st, path, numbers[0]); err == nil {
			newer, err = document(ctx, st, path, numbers[1])
		}
		return older, newer, err
	case 1:
		if older, err = document(ctx, st, path, numbers[0]); err != nil {
			return older, newer, err
		}
	}
	for v, err := range st.Notes().History(ctx, path) {
		if err != nil {
			return older, newer, err
		}
		if len(numbers) == 0 && !newer.Deleted && newer.ContentHash != v.ContentHash {
			older = newer
		}
		newer = v
	}
	if newer.Deleted {
		newer = varve.Version{ID: path, LSN: newer.LSN, Deleted: true}
	}
	return older, newer, nil
}

func restoreCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "restore PATH [VERSION]",
		Short: "Write an older version of a note again",
		Long: `Write a given version of a note again, as its newest version. Without a version, restore the last version
of a deleted note.`,
		Example: "  memctl note restore travel/rome.md 65664",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) == 2 {
				return nil
			}
			return cli.Usagef(cmd.CommandPath(), "%s takes a path, and a version", cmd.CommandPath())
		},
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			ctx, number := cmd.Context(), uint64(0)
			if len(args) == 2 {
				var err error
				if number, err = strconv.ParseUint(args[1], 10, 64); err != nil {
					return cli.Usagef(cmd.CommandPath(), "%q is not a version: memctl note log PATH lists the "+
						"versions", args[1])
				}
			}
			return a.With(ctx, cli.Write, func(st *varve.Store) error {
				v, err := varve.Version{}, error(nil)
				var conds []varve.Cond
				if number != 0 {
					v, err = document(ctx, st, args[0], number)
				} else if v, err = deleted(ctx, st, args[0]); err == nil {
					conds = append(conds, varve.IfAbsent())
				}
				if err != nil {
					return withNoteFix(err)
				}
				i, err := st.Notes().Write(ctx, args[0], v.Document, conds...)
				if err == nil {
					tell(a, &i, "restored")
				}
				return withNoteFix(err)
			})
		}),
	}
	return c
}

// deleted returns the last version of a deleted note.
func deleted(ctx context.Context, st *varve.Store, path string) (last varve.Version, err error) {
	if _, err := st.Notes().Read(ctx, path); !errors.Is(err, varve.ErrNotFound) {
		if err == nil {
			err = fmt.Errorf("%w: the note %s is not deleted: give the version to restore", varve.ErrInvalid,
				cli.PrintableID(path))
		}
		return last, err
	}
	for v, err := range st.Notes().History(ctx, path) {
		if err != nil {
			return last, err
		}
		if !v.Deleted {
			last = v
		}
	}
	return last, nil
}
