package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
)

func (a *app) exportCommand() *cobra.Command {
	var (
		f    filterFlags
		file string
	)
	c := &cobra.Command{
		Use:   "export",
		Short: "Write memories as lines of JSON",
		Long: `Write the documents of memories, one a line (JSONL), to stdout or into a file, which
appears when it is whole. memctl import reads it.`,
		Example: "  memctl export --file all.jsonl\n  memctl export --session s1 | jq .content",
		Args:    noArguments,
		RunE: a.do(func(cmd *cobra.Command, _ []string) error {
			if a.document != nil && (file == "" || file == "-") {
				return usagef(cmd.CommandPath(), "export writes lines to stdout, --json one document: give --file, or leave --json out")
			}
			filters, err := f.filters(cmd, a.clock())
			if err != nil {
				return err
			}
			return a.with(cmd.Context(), read, func(st *varve.Store) error {
				if file == "" || file == "-" {
					_, err := a.export(cmd.Context(), st, filters, a.out)
					return err
				}
				var n int
				err := replaceFile(file, func(w io.Writer) error {
					var err error
					n, err = a.export(cmd.Context(), st, filters, w)
					return err
				})
				if err != nil {
					return fmt.Errorf("writing %s: %w", file, err)
				}
				if a.document != nil {
					a.document.member("exported", n)
					a.document.member("file", file)
				}
				a.say("%d memories are in %s", n, file)
				return nil
			})
		}),
	}
	f.add(c)
	c.Flags().StringVarP(&file, "file", "f", "", "write into this `file`; - is stdout")
	return c
}

// export writes one line a memory. One that cannot be read does not end it.
func (a *app) export(ctx context.Context, st *varve.Store, filters []varve.Filter, w io.Writer) (int, error) {
	n := 0
	for m, err := range st.Memories(ctx, filters...) {
		if ctx.Err() != nil {
			return n, ctx.Err()
		}
		if err != nil {
			a.fail(err)
			continue
		}
		doc, err := line(&m)
		if err != nil {
			a.fail(fmt.Errorf("memory %s: %w", printableID(m.ID), err))
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
	var b bytes.Buffer
	err = json.Compact(&b, doc)
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
