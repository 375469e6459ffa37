package complete

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// Most is the maximum number of words proposed to a shell.
const Most = 100

// Time limits of a completion, because a user waits for it: the store is read until soonest, and a read that has not
// ended by limit is abandoned.
const (
	soonest = 700 * time.Millisecond
	limit   = time.Second
)

// width is the maximum width of a description in columns.
const width = 60

// word is a proposal for the shell, with its description.
type word struct{ text, about string }

// source is a function that reads words from a store. It calls offer for each word that begins with begun, until offer
// returns false.
type source func(ctx context.Context, st *varve.Store, begun string, offer func(word) bool)

// Words returns a completion that proposes the words of a list.
func Words(list ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begun string) (some []string, _ cobra.ShellCompDirective) {
		for _, w := range list {
			if strings.HasPrefix(w, begun) {
				some = append(some, w)
			}
		}
		return some, cobra.ShellCompDirectiveNoFileComp
	}
}

// Folders proposes the folders below the current one.
func Folders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// Nothing is a completion without proposals: the shell proposes neither words nor files.
func Nothing(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// fromStore returns a completion that uses the store of the command line. It proposes the words that the function read
// yields, except those that are already arguments of the command.
func fromStore(a *cli.App, read source) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		a.Quiet, a.Wait = true, soonest
		ctx, cancel := context.WithTimeout(cmd.Context(), limit)
		defer cancel()
		found := make(chan word, Most)
		go func() {
			defer close(found)
			ctx, cancel := context.WithTimeout(ctx, soonest)
			defer cancel()
			n := 0
			_ = a.With(ctx, cli.Look, func(st *varve.Store) error {
				read(ctx, st, begun, func(w word) bool {
					if n < Most && strings.HasPrefix(w.text, begun) && plain(w.text) && !slices.Contains(args, w.text) {
						n++
						found <- w
					}
					return n < Most && ctx.Err() == nil
				})
				return nil
			})
		}()
		var list []string
		for {
			select {
			case w, ok := <-found:
				if !ok {
					return list, directive
				}
				list = append(list, cobra.CompletionWithDesc(w.text, w.about))
			case <-ctx.Done():
				return list, directive
			}
		}
	}
}

// plain reports whether every shell reads the text as one word without quoting.
func plain(s string) bool {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:/@+,=%", r) ||
			r == unicode.ReplacementChar
	}
	return s != "" && s[0] != '-' && s[0] != '=' && strings.IndexFunc(s, odd) < 0
}

// descriptionOf returns a description for a proposal of the completion. The description is made of a stored text,
// which anyone may have written.
func descriptionOf(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsGraphic(r):
			return -1
		}
		return r
	}, text[:min(len(text), 8*width)])
	return cli.Cut(strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " "), width)
}
