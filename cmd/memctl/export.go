package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/importer"
)

func (a *app) exportCommand() *cobra.Command {
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
						n, err = a.exportGraph(cmd.Context(), st, filters, w)
						return err
					}
					n, err = a.export(cmd.Context(), st, filters, w)
					if err == nil && len(filters) == 0 {
						groups, err = a.exportAssemblies(cmd.Context(), st, w)
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
				if a.document != nil {
					a.document.member("exported", n)
					a.document.member("assemblies", groups)
					a.document.member("file", file)
				}
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
func (a *app) export(ctx context.Context, st *varve.Store, filters []varve.Filter, w io.Writer) (int, error) {
	return exportLines(ctx, a, st.Memories(ctx, filters...), w, func(m *varve.Memory) ([]byte, error) {
		doc, err := line(m)
		return doc, wrap("memory", m.ID, err)
	})
}

func (a *app) exportAssemblies(ctx context.Context, st *varve.Store, w io.Writer) (int, error) {
	return exportLines(ctx, a, st.Assemblies().All(ctx), w, func(as *varve.Assembly) ([]byte, error) {
		doc, err := assemblyLine(as)
		return doc, wrap("assembly", as.ID, err)
	})
}

func wrap(what, id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, printableID(id), err)
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

// line is a memory's document on one line.
func line(m *varve.Memory) ([]byte, error) {
	doc, err := m.Encode(noLimits())
	if err != nil {
		return nil, err
	}
	return oneLine(doc)
}

// assemblyLine is an assembly's document on one line.
func assemblyLine(as *varve.Assembly) ([]byte, error) {
	doc, err := as.Encode(noAssemblyLimits())
	if err != nil {
		return nil, err
	}
	return oneLine(doc)
}

func oneLine(doc []byte) ([]byte, error) {
	var b bytes.Buffer
	err := json.Compact(&b, doc)
	return b.Bytes(), err
}

// replaceFile lets write fill a file that takes its name when it is whole. What
// is no ordinary file (a pipe, /dev/full) is written to as it is.
func replaceFile(name string, write func(io.Writer) error) error {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return fill(f, write)
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part")
	if err != nil {
		return err
	}
	if err := fill(f, write); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), name)
}

func fill(f *os.File, write func(io.Writer) error) error {
	w := bufio.NewWriterSize(f, 256<<10)
	err := write(w)
	if err == nil {
		err = w.Flush()
	}
	if info, serr := f.Stat(); err == nil && serr == nil && info.Mode().IsRegular() {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
