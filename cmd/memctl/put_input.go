package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/intake"
)

// putInput stores the memories in a file or on stdin, which contains complete JSON documents. It reads all documents
// before it writes any memory.
func putInput(ctx context.Context, a *cli.App, st *varve.Store, name string, options []varve.PutOption) error {
	limits := cli.LimitsOf(st.Admin().Config())
	all, err := intake.ReadEach(ctx, a.In, name, "memory",
		func(raw []byte) (varve.Memory, error) { return intake.DecodeMemory(raw, limits, a.NewID) })
	if err != nil {
		return err
	}
	if len(all) == 1 {
		return putTold(ctx, a, st, all[0], options)
	}
	n, err := putTogether(ctx, st, all, options)
	a.Document.Begin("memories")
	for _, m := range all[:n] {
		if a.Document != nil {
			a.Document.Item(stored{ID: m.ID})
		} else {
			fmt.Fprintln(a.Out, cli.PrintableID(m.ID))
		}
	}
	if err != nil && n > 0 {
		err = cli.WithFix(fmt.Errorf("stored the first %d of %d memories: %w", n, len(all), err),
			"correct the input, then put the remaining memories")
	}
	return err
}

// putTogether writes all memories in one commit, or in several commits if one cannot hold all. It returns the number
// of written memories.
func putTogether(ctx context.Context, st *varve.Store, all []varve.Memory, options []varve.PutOption) (int, error) {
	b := new(varve.Batch)
	for _, m := range all {
		b.Put(m, options...)
	}
	switch err := st.Apply(ctx, b); {
	case err == nil:
		return len(all), nil
	case !errors.Is(err, varve.ErrBatchTooLarge):
		return 0, err
	}
	n, err := st.PutAll(ctx, slices.Values(all), options...)
	return int(n), err
}
