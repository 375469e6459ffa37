package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// getFlags are the flags that determine how get prints memories.
type getFlags struct {
	content, raw, with, without bool
}

func getCommand(a *cli.App) *cobra.Command {
	var f getFlags
	c := &cobra.Command{
		Use:        "get ID[@VERSION]...",
		SuggestFor: []string{"show", "cat"},
		Short:      "Print memories",
		Long: `Print the document of each memory, byte for byte as in its file; a terminal gets it without the
numbers of its embedding, unless --embedding or --raw is given. A missing id does not keep the
others from being printed. Instead of an id you may type its ending, as memctl list shows it.

With @VERSION, print that version, as long as the log or the archive has it; memctl history lists
the versions. If an id itself ends in @ and a number, the id takes precedence.`,
		Example: "  memctl get notes\n  memctl get notes --content\n  memctl get notes@65664\n  memctl get a b c --json " +
			"--no-embedding | jq '.memories[].version'",
		Args: cli.AtLeastOne("the id of a memory"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			show, err := f.show(a, cmd, len(args) > 1)
			if err != nil {
				return err
			}
			a.Document.Begin("memories")
			return a.With(cmd.Context(), cli.Read, func(st *varve.Store) error {
				return a.Each(cmd.Context(), args, func(id string) error {
					return orEnding(cmd.Context(), a, st, false, id, func(id string) error { return show(cmd.Context(), a, st, id) })
				})
			})
		}),
	}
	c.Flags().BoolVar(&f.content, "content", false, "print the text only")
	c.Flags().BoolVar(&f.raw, "raw", false, "print the document byte for byte, also on a terminal")
	c.Flags().BoolVar(&f.with, "embedding", false, "print the embedding, also on a terminal")
	c.Flags().BoolVar(&f.without, "no-embedding", false, "omit the embedding, also in JSON")
	a.OutputFlag(c, cli.FormJSON, cli.FormJSONL, cli.FormID)
	for _, two := range [][]string{{"content", "raw"}, {"content", "output"}, {"raw", "output"},
		{"embedding", "no-embedding"}, {"raw", "no-embedding"}, {"content", "embedding"}, {"content", "no-embedding"}} {
		c.MarkFlagsMutuallyExclusive(two...)
	}
	return c
}

// show returns the function that prints one memory in the form that the flags request. several is true if the command
// prints several memories.
func (f *getFlags) show(a *cli.App, cmd *cobra.Command,
	several bool) (func(context.Context, *cli.App, *varve.Store, string) error, error) {
	switch {
	case f.content && a.Document != nil:
		return nil, cli.Usagef(cmd.CommandPath(), "--content and --json cannot be combined")
	case f.content:
		return showContent(several), nil
	case a.Encodes():
		return showJSON(f.without), nil
	case a.Form() == cli.FormID:
		return showID, nil
	}
	return showRaw(f.without || a.Out.Screen && !f.with && !f.raw, !f.without), nil
}

// shown is a memory in the JSON output of get.
type shown struct {
	ID      string          `json:"id"`
	Version uint64          `json:"version"`
	Memory  json.RawMessage `json:"memory"`
}

func showJSON(without bool) func(context.Context, *cli.App, *varve.Store, string) error {
	return func(ctx context.Context, a *cli.App, st *varve.Store, id string) error {
		m, err := memoryAt(ctx, st, id)
		if err != nil {
			return err
		}
		doc, err := cli.MemoryLine(&m)
		if without && err == nil {
			doc, _ = withoutEmbedding(doc)
		}
		switch {
		case err != nil:
			return err
		case a.Document == nil:
			return a.Line(shown{m.ID, m.Version, doc})
		}
		a.Document.Item(shown{m.ID, m.Version, doc})
		return nil
	}
}

// showID prints the complete id of a memory, if the user typed only the ending of the id.
func showID(ctx context.Context, a *cli.App, st *varve.Store, id string) error {
	m, err := memoryAt(ctx, st, id)
	if err == nil {
		fmt.Fprintln(a.Out, cli.PrintableID(m.ID))
	}
	return err
}

// memoryAt returns the memory that an argument of the form ID or ID@VERSION names.
func memoryAt(ctx context.Context, st *varve.Store, arg string) (varve.Memory, error) {
	v, ok, err := versionOf(ctx, memories{st}, arg)
	if err != nil {
		return varve.Memory{}, err
	}
	if ok {
		return v.Decode()
	}
	return st.Get(ctx, arg)
}

// showContent returns a function that prints the text of a memory unchanged. A line feed follows the text only if
// several memories are printed (several is true), or if the output is a terminal.
func showContent(several bool) func(context.Context, *cli.App, *varve.Store, string) error {
	return func(ctx context.Context, a *cli.App, st *varve.Store, id string) error {
		m, err := memoryAt(ctx, st, id)
		if err != nil {
			return err
		}
		content := []byte(m.Content)
		if several || a.Out.Screen {
			content = append(content, '\n')
		}
		_, err = a.Out.Data(cli.Text).Write(content)
		return err
	}
}

func showRaw(without, tell bool) func(context.Context, *cli.App, *varve.Store, string) error {
	return func(ctx context.Context, a *cli.App, st *varve.Store, id string) error {
		v, ok, err := versionOf(ctx, memories{st}, id)
		doc := v.Document
		if !ok && err == nil {
			doc, err = st.Admin().GetRaw(ctx, id)
		}
		if err != nil {
			return err
		}
		numbers := 0
		if without {
			doc, numbers = withoutEmbedding(doc)
		}
		if !bytes.HasSuffix(doc, []byte("\n")) {
			doc = append(doc, '\n')
		}
		if _, err = a.Out.Data(cli.JSON).Write(doc); err == nil && numbers > 0 && tell {
			a.Note("not shown: the embedding, %s; --embedding prints it", cli.Count(numbers, "number", "numbers"))
		}
		return err
	}
}
