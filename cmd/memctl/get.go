package main

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

func getCommand(a *cli.App) *cobra.Command {
	var content bool
	c := &cobra.Command{
		Use:   "get ID[@VERSION]...",
		Short: "Print memories",
		Long: `Print the document of each memory, byte for byte as in its file. A missing id does not keep
the others from being printed. With @VERSION, print that version, as long as the log or the
archive has it; memctl history lists the versions. If an id itself ends in @ and a number, the
id takes precedence.`,
		Example: "  memctl get notes\n  memctl get notes --content\n  memctl get notes@65664\n  memctl get a b c --json | jq '.memories[].version'",
		Args:    cli.AtLeastOne("the id of a memory"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			show := showRaw
			switch {
			case content && a.Document != nil:
				return cli.Usagef(cmd.CommandPath(), "--content and --json cannot be combined")
			case content:
				show = showContent(len(args) > 1)
			case a.Document != nil:
				a.Document.Begin("memories")
				show = showJSON
			}
			return a.With(cmd.Context(), cli.Read, func(st *varve.Store) error {
				return a.Each(cmd.Context(), args, func(id string) error { return show(cmd.Context(), a, st, id) })
			})
		}),
	}
	c.Flags().BoolVar(&content, "content", false, "print the text only")
	c.Flags().Bool("raw", true, "print the document; this is the default")
	c.MarkFlagsMutuallyExclusive("content", "raw")
	return c
}

// shown is a memory in get's list.
type shown struct {
	ID      string          `json:"id"`
	Version uint64          `json:"version"`
	Memory  json.RawMessage `json:"memory"`
}

func showJSON(ctx context.Context, a *cli.App, st *varve.Store, id string) error {
	m, err := memoryAt(ctx, st, id)
	if err != nil {
		return err
	}
	doc, err := cli.MemoryLine(&m)
	if err != nil {
		return err
	}
	a.Document.Item(shown{m.ID, m.Version, doc})
	return nil
}

// memoryAt is the memory that ID or ID@VERSION names.
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

// showContent prints the text to the byte; a line end follows it where it would
// otherwise run into what comes next.
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

func showRaw(ctx context.Context, a *cli.App, st *varve.Store, id string) error {
	v, ok, err := versionOf(ctx, memories{st}, id)
	doc := v.Document
	if !ok && err == nil {
		doc, err = st.Admin().GetRaw(ctx, id)
	}
	if err != nil {
		return err
	}
	if !bytes.HasSuffix(doc, []byte("\n")) {
		doc = append(doc, '\n')
	}
	_, err = a.Out.Data(cli.JSON).Write(doc)
	return err
}
