package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/memstore"
)

// order is the order that the flags ask for, nil for that of the ids.
func (f *listFlags) order(cmd *cobra.Command) (*memstore.Order, error) {
	path, name := cmd.CommandPath(), "id"
	if cmd.Flags().Changed("sort") {
		name = f.sort
	}
	key, down := strings.CutPrefix(name, "-")
	o, err := memstore.ParseOrder(key, "")
	switch {
	case err != nil || strings.HasPrefix(key, "-"):
		return nil, cli.Usagef(path, "--sort %q: must be %s, or one of them after -", f.sort, strings.Join(memstore.OrderNames(), ", "))
	case f.offset < 0:
		return nil, cli.Usagef(path, "--offset %d: must be 0 or more", f.offset)
	}
	if o.Down = down != f.reverse; key == "id" && !o.Down {
		if f.offset > 0 {
			return nil, cli.Usagef(path, "--offset is for a list sorted by another key; the list by id continues with --after ID")
		}
		return nil, nil
	}
	if f.sorted = true; cmd.Flags().Changed("after") {
		if o, err = memstore.ParseOrder(o.Key(), f.after); err != nil {
			return nil, cli.Usagef(path, "--after %q: must be \"next\" of a list sorted by %s", f.after, name)
		}
	}
	o.Skip = f.offset
	return o, nil
}
