package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/timearg"
	"github.com/varve-db/varve/memstore"
)

// order returns the order that the flags --sort and --reverse request; nil means the order of ids.
func (f *listFlags) order(cmd *cobra.Command) (*memstore.Order, error) {
	path, name := cmd.CommandPath(), "id"
	if cmd.Flags().Changed("sort") {
		name = f.sort
	}
	key, down := strings.CutPrefix(name, "-")
	o, err := memstore.ParseOrder(key, "")
	switch {
	case err != nil || strings.HasPrefix(key, "-"):
		return nil, cli.Usagef(path, "--sort %q: must be %s; a - before the name reverses the order", f.sort,
			strings.Join(memstore.OrderNames(), ", "))
	case f.offset < 0:
		return nil, cli.Usagef(path, "--offset %d: must be 0 or more", f.offset)
	}
	if o.Down = down != f.reverse; key == "id" && !o.Down {
		if f.offset > 0 {
			return nil, cli.Usagef(path,
				"--offset requires --sort with another order than id; a list by id is continued with --after ID")
		}
		return nil, nil
	}
	if f.sorted = true; cmd.Flags().Changed("after") {
		if o, err = memstore.ParseOrder(o.Key(), f.after); err != nil {
			return nil, cli.Usagef(path,
				"--after %q: must be the \"next\" value of a list sorted by %s; for times use --since and --before",
				f.after, name)
		}
	}
	o.Skip = f.offset
	return o, nil
}

// place returns an error if the value of --after looks like a time. In the command search, --after is a time; in list
// it is the id after which the list continues. If the store has or had a memory whose id looks like a time, that id is
// accepted.
func (f *listFlags) place(cmd *cobra.Command, st *varve.Store, now time.Time) error {
	at, err := timearg.Parse(f.after, now.Local())
	if f.sorted || err != nil {
		return nil
	}
	if _, err := st.Admin().GetRaw(cmd.Context(), f.after); err == nil {
		return nil
	}
	for _, err := range st.History(cmd.Context(), f.after) {
		if !errors.Is(err, varve.ErrNotFound) {
			return nil
		}
	}
	// In a store whose ids look like times it may be an id that was purged, or whose history was
	// lost, since the previous page.
	for _, of := range [][]varve.Filter{{varve.After(f.after)}, nil} {
		for m, err := range st.Memories(cmd.Context(), of...) {
			if _, no := timearg.Parse(m.ID, now.Local()); err == nil && no == nil {
				return nil
			}
			break
		}
	}
	from := at.After().Local().Format(time.RFC3339)
	return cli.Usagef(cmd.CommandPath(),
		"--after %q: must be the id after which the list continues, and no memory has or had this id; for memories "+
			"after that time, use --since %s", f.after, from)
}
