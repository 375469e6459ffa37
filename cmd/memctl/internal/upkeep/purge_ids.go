package upkeep

import (
	"context"
	"fmt"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// wholeIDs returns the ids that the arguments name. If the store has any trace of an argument, even as a deleted id,
// the argument is that id. An ending of another id is accepted only if a user sees the whole id and confirms it: a
// purge cannot be undone.
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
			return nil, cli.WithFix(fmt.Errorf("%w: %s is the ending of an id, and with --yes purge takes whole ids: %w",
				varve.ErrNotFound, cli.PrintableID(arg), errUnconfirmed),
				"if it is the one: memctl purge --yes "+cli.ShellQuote(id))
		}
	}
	return ids, nil
}
