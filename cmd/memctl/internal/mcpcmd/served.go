package mcpcmd

import (
	"context"
	"path/filepath"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/mcpserver"
	"github.com/varve-db/varve/served"
)

// Served opens the store in the folder dir, and creates the store if it is missing. It calls serve with this store
// and with the options o, in which it has set the embedder of the environment variables. If another store replaces
// the store while it is served, Served opens the other store. For this it calls locate, which repeats the checks
// of the first start and returns the folder of the store that is now in place.
func Served(ctx context.Context, a *cli.App, dir string, o mcpserver.Options, locate func() (string, error),
	serve func(st *served.Store, o mcpserver.Options) error,
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
		open := func(ctx context.Context) (*varve.Store, error) {
			dir, err := locate()
			if err != nil {
				return nil, err
			}
			next, err := a.Reopen(ctx, dir, more)
			if err == nil {
				a.Warn("the store's folder %s was replaced: another store is served now", dir)
			}
			return next, err
		}
		held := served.New(st, served.Options{Open: open, Close: a.CloseServed})
		defer held.End()
		if e != nil {
			o.EmbedModel = e.Model()
			o.Embed = func(ctx context.Context, texts []string) ([][]float32, error) {
				return held.Current().Vectors().Embed(ctx, texts)
			}
		}
		return serve(held, o)
	})
}

// NoteServing prints which store is served.
func NoteServing(a *cli.App, dir string) {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs // the working directory of the server is unknown to the user
	}
	a.Note("serving the store %s", dir)
}
