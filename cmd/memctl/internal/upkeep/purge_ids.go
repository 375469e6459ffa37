package upkeep

import (
	"context"
	"fmt"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// wholeIDs returns the whole ids that the arguments name: ids of memories or, if assemblies is true, of assemblies. If
// the store has a trace of a document whose whole id is the argument, even of a deleted one, the argument is used
// unchanged. Any other argument may be the end of an id. But if yes is true, this is an error: a purge cannot be
// undone, so the user must see the whole id and confirm the purge.
func wholeIDs(ctx context.Context, a *cli.App, st *varve.Store, assemblies, yes bool,
	unknown func(context.Context, ...string) ([]string, error), args []string) ([]string, error) {
	find := a.WholeMemory
	if assemblies {
		find = a.WholeAssembly
	}
	ids := make([]string, len(args))
	for i, arg := range args {
		id, err := find(ctx, st, arg)
		if err != nil {
			return nil, err
		}
		if ids[i] = id; id == arg {
			continue
		}
		switch none, err := unknown(ctx, arg); {
		case err != nil:
			return nil, err
		case len(none) == 0:
			ids[i] = arg
		case yes:
			return nil, cli.WithFix(fmt.Errorf("%w: %s is only the end of an id, and with --yes purge needs whole "+
				"ids: %w",
				varve.ErrNotFound, cli.PrintableID(arg), errUnconfirmed),
				"to purge the memory with the whole id: memctl purge --yes "+cli.ShellQuote(id))
		}
	}
	return ids, nil
}
