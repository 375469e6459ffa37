package main

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/importer"
)

func exportCommand(a *app) *cobra.Command {
	var (
		f        filterFlags
		file, to string
	)
	c := &cobra.Command{
		Use:   "export",
		Short: "Write memories and assemblies as lines of JSON",
		Long: `Write the documents of memories, one a line (JSONL), to stdout or into a file, which
appears when it is whole; behind them those of the assemblies, unless a filter chooses
among the memories. memctl import reads it. Working memory is not in it: see memctl working export.

With --to server-memory only the entities and relations of the knowledge graph that
memctl mcp serves, as the MCP reference memory server keeps them.`,
		Example: "  memctl export --file all.jsonl\n  memctl export --session s1 | jq .content\n  memctl export --to server-memory --file memory.jsonl",
		Args:    noArguments,
		RunE: a.do(func(cmd *cobra.Command, _ []string) error {
			if to != "" && to != string(importer.JSONL) && to != string(importer.ServerMemory) {
				return usagef(cmd.CommandPath(), "--to %q: it must be jsonl or server-memory", to)
			}
			if a.document != nil && (file == "" || file == "-") {
				return usagef(cmd.CommandPath(), "export writes lines to stdout, --json one document: give --file, or leave --json out")
			}
			filters, err := f.filters(cmd, a.clock())
			if err != nil {
				return err
			}
			return a.with(cmd.Context(), read, func(st *varve.Store) error {
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
					return all(a.out.data(jsonly))
				}
				err := replaceFile(file, all)
				if err != nil {
					return fmt.Errorf("writing %s: %w", file, err)
				}
				a.document.member("exported", n)
				a.document.member("assemblies", groups)
				a.document.member("file", file)
				and := ""
				if groups > 0 {
					and = " and " + count(groups, "assembly", "assemblies")
				}
				a.say("%d memories%s are in %s", n, and, file)
				return nil
			})
		}),
	}
	f.add(a, c)
	c.Flags().StringVar(&to, "to", "", "the `format`: jsonl or server-memory")
	_ = c.RegisterFlagCompletionFunc("to", cobra.FixedCompletions([]string{string(importer.JSONL), string(importer.ServerMemory)}, cobra.ShellCompDirectiveNoFileComp))
	c.Flags().StringVarP(&file, "file", "f", "", "write into this `file`; - is stdout")
	return c
}

// export writes one line a memory.
func exportMemories(ctx context.Context, a *app, st *varve.Store, filters []varve.Filter, w io.Writer) (int, error) {
	return exportLines(ctx, a, st.Memories(ctx, filters...), w, func(m *varve.Memory) ([]byte, error) {
		doc, err := line(m)
		return doc, wrap("memory", m.ID, err)
	})
}

func exportAssemblies(ctx context.Context, a *app, st *varve.Store, w io.Writer) (int, error) {
	return exportLines(ctx, a, st.Assemblies().All(ctx), w, func(as *varve.Assembly) ([]byte, error) {
		doc, err := assemblyLine(as)
		return doc, wrap("assembly", as.ID, err)
	})
}

// exportLines writes one line each. One that cannot be read does not end it.
func exportLines[T any](ctx context.Context, a *app, all iter.Seq2[T, error], w io.Writer, line func(*T) ([]byte, error)) (int, error) {
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
			a.fail(err)
			continue
		}
		if _, err := w.Write(append(doc, '\n')); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
