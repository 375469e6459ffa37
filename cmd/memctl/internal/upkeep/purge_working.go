package upkeep

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/working"
)

// scopeArguments returns the keys of the scopes of working memory that the arguments name.
func scopeArguments(cmd *cobra.Command, args []string) ([]string, error) {
	keys := make([]string, len(args))
	for i, arg := range args {
		s, err := working.ParseScope(arg)
		if err != nil {
			return nil, cli.Usage(cmd.CommandPath(), err)
		}
		keys[i] = s.Key()
	}
	return keys, nil
}

func parseScopes(keys []string) ([]working.Scope, error) {
	scopes := make([]working.Scope, len(keys))
	for i, key := range keys {
		var err error
		if scopes[i], err = working.ParseScope(key); err != nil {
			return nil, err
		}
	}
	return scopes, nil
}

// purgeScopes returns a function that purges the scopes of working memory with the given keys. The function that
// unknownScopes returns has the same purpose as Admin.Unknown: it returns the keys of which the store has no trace.
func purgeScopes(st *varve.Store) func(context.Context, ...string) (*varve.PurgeReport, error) {
	return func(ctx context.Context, keys ...string) (*varve.PurgeReport, error) {
		scopes, err := parseScopes(keys)
		if err != nil {
			return nil, err
		}
		return st.Working().Purge(ctx, scopes...)
	}
}

func unknownScopes(st *varve.Store) func(context.Context, ...string) ([]string, error) {
	return func(ctx context.Context, keys ...string) ([]string, error) {
		scopes, err := parseScopes(keys)
		if err != nil {
			return nil, err
		}
		unknown, err := st.Working().Unknown(ctx, scopes...)
		var list []string
		for _, s := range unknown {
			list = append(list, s.Key())
		}
		return list, err
	}
}
