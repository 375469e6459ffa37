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

// Most is how many words a shell is offered.
const Most = 100

// A person waits for the answer: the store is read until soonest, and what does not end then is left
// behind at limit.
const (
	soonest = 700 * time.Millisecond
	limit   = time.Second
)

// width is how much of a description is shown, in columns.
const width = 60

// word is one that a shell is offered, with its description.
type word struct{ text, about string }

// source reads words that begin with begun from a store, until offer returns false.
type source func(ctx context.Context, st *varve.Store, begun string, offer func(word) bool)

// Words offers a list.
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

// Folders offers the folders below the current one.
func Folders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// Nothing offers nothing: neither words nor files.
func Nothing(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// fromStore offers what a source reads from the store that the command line names, without the words
// that are arguments already.
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

// plain reports whether every shell takes the text for one word as it is.
func plain(s string) bool {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:/@+,=%", r) ||
			r == unicode.ReplacementChar
	}
	return s != "" && s[0] != '-' && s[0] != '=' && strings.IndexFunc(s, odd) < 0
}

// about is a description made of a text that anybody may have written.
func about(text string) string {
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
