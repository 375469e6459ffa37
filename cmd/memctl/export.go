package main

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/importer"
)

func exportCommand(a *cli.App) *cobra.Command {
	var (
		f        filterFlags
		file, to string
	)
	c := &cobra.Command{
		Use:   "export",
		Short: "Write memories and assemblies as lines of JSON",
		Long: `Write the documents of memories, one per line (JSONL), to stdout or into a file, which appears
when it is complete. The assemblies follow, unless a filter selects memories. memctl import
reads this format. Working memory and notes are not exported: see memctl working export and
memctl note export.

With --to server-memory, write only the entities and relations of the knowledge graph that
memctl mcp serves, in the format of the MCP reference memory server.`,
		Example: "  memctl export --file all.jsonl\n  memctl export --session s1 | jq .content\n  memctl export --to " +
			"server-memory --file memory.jsonl",
		Args: cli.NoArguments,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			if to != "" && to != string(importer.JSONL) && to != string(importer.ServerMemory) {
				return cli.Usagef(cmd.CommandPath(), "--to %q: must be jsonl or server-memory", to)
			}
			if a.Document != nil && (file == "" || file == "-") {
				return cli.Usagef(cmd.CommandPath(),
					"export writes lines to stdout, but --json writes one document: give --file, or omit --json")
			}
			filters, err := f.filters(cmd, a.Clock())
			if err != nil {
				return err
			}
			return a.With(cmd.Context(), cli.Read, func(st *varve.Store) error {
				var n, groups int
				all := func(w io.Writer) (err error) {
					if to == string(importer.ServerMemory) {
						n, err = exportGraph(cmd.Context(), a, st, filters, w)
						return err
					}
					n, err = exportMemories(cmd.Context(), a, st, filters, w)
					if err == nil && len(filters) == 0 {
						groups, err = exportAssemblies(cmd.Context(), a, st, w)
					}
					return err
				}
				if file == "" || file == "-" {
					return all(a.Out.Data(cli.JSON))
				}
				err := a.ReplaceFile(file, 0o600, all)
				if err != nil {
					return fmt.Errorf("writing %s: %w", file, err)
				}
				a.Document.Member("exported", n)
				a.Document.Member("assemblies", groups)
				a.Document.Member("file", file)
				and := ""
				if groups > 0 {
					and = " and " + cli.Count(groups, "assembly", "assemblies")
				}
				a.Say("exported %s%s to %s", cli.Count(n, "memory", "memories"), and, file)
				return nil
			})
		}),
	}
	f.add(c)
	f.addAfter(c)
	c.Flags().StringVar(&to, "to", "", "the `format`: jsonl or server-memory")
	c.Flags().StringVarP(&file, "file", "f", "", "write into this `file`; - is stdout")
	return c
}

// exportMemories writes each memory as one line of JSON, and returns the number of these lines.
func exportMemories(ctx context.Context, a *cli.App, st *varve.Store, filters []varve.Filter,
	w io.Writer) (int, error) {
	return exportLines(ctx, a, st.Memories(ctx, filters...), w, func(m *varve.Memory) ([]byte, error) {
		doc, err := cli.MemoryLine(m)
		return doc, cli.About("memory", m.ID, err)
	})
}

func exportAssemblies(ctx context.Context, a *cli.App, st *varve.Store, w io.Writer) (int, error) {
	return exportLines(ctx, a, st.Assemblies().All(ctx), w, func(as *varve.Assembly) ([]byte, error) {
		doc, err := cli.AssemblyLine(as)
		return doc, cli.About("assembly", as.ID, err)
	})
}

// exportLines writes each item as one line and returns the number of written lines. It reports an item that cannot be
// read, and continues with the next one. An error of w ends the export.
func exportLines[T any](ctx context.Context, a *cli.App, all iter.Seq2[T, error], w io.Writer,
	line func(*T) ([]byte, error)) (int, error) {
	n := 0
	for v, err := range all {
		if ctx.Err() != nil {
			return n, ctx.Err()
		}
		var doc []byte
		if err == nil {
			doc, err = line(&v)
		}
		if err != nil {
			a.Fail(err)
			continue
		}
		if _, err := w.Write(append(doc, '\n')); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
