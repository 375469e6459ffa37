package mcpcmd

import (
	"context"
	"path/filepath"
	"sync/atomic"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/mcpserver"
)

// Served opens the store in the folder dir, which it creates if it is missing, and calls serve with it, and with the
// options for its tools: those that are given, with the embedder of the environment, and with a Reopen that opens what
// is in the place of a store that was replaced. For that, the function again repeats the checks of the first start and
// returns the folder.
func Served(ctx context.Context, a *cli.App, dir string, o mcpserver.Options, again func() (string, error),
	serve func(st *varve.Store, o mcpserver.Options) error,
) error {
	e, err := a.Embedder()
	if err != nil {
		return err
	}
	more, err := a.Embedding(func(v *varve.Options) {
		v.NoBackground, v.WatchFiles = false, true
		v.CacheBytes = mcpCache
		v.Logger = o.Logger
	})
	if err != nil {
		return err
	}
	return a.WithIn(ctx, dir, cli.Serve, more, func(st *varve.Store) error {
		var served atomic.Pointer[varve.Store]
		served.Store(st)
		defer func() { // WithIn closes the first store
			if last := served.Load(); last != st {
				a.CloseServed(last)
			}
		}()
		if e != nil {
			o.EmbedModel = e.Model()
			o.Embed = func(ctx context.Context, texts []string) ([][]float32, error) {
				return served.Load().Vectors().Embed(ctx, texts)
			}
		}
		o.Reopen = func(ctx context.Context, replaced *varve.Store) (*varve.Store, error) {
			dir, err := again()
			if err != nil {
				return nil, err
			}
			next, err := a.Reopen(ctx, dir, more)
			if err != nil {
				return nil, err
			}
			served.Store(next)
			a.CloseServed(replaced)
			a.Warn("the store's folder %s was replaced: another store is served now", dir)
			return next, nil
		}
		return serve(st, o)
	})
}

// NoteServing names the store that is served.
func NoteServing(a *cli.App, dir string) {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs // the working directory of the server is unknown to the user
	}
	a.Note("serving the store %s", dir)
}
