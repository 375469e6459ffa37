package cli

import (
	"context"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/vector/embed"
)

// Embedder returns the embedder that the environment variables configure. It returns nil if they configure no embedder.
func (a *App) Embedder() (*embed.Embedder, error) {
	e, ok, err := embed.FromEnv(a.Getenv)
	if err != nil {
		return nil, Usage("", err)
	}
	if !ok {
		return nil, nil
	}
	return e, nil
}

// Embedding returns a function for the options of a store in which texts are embedded. This function sets the embedder
// of the environment variables, and then calls more if more is not nil. If the variables configure no embedder,
// Embedding returns more itself.
func (a *App) Embedding(more func(*varve.Options)) (func(*varve.Options), error) {
	e, err := a.Embedder()
	if e == nil || err != nil {
		return more, err
	}
	return func(o *varve.Options) {
		o.Embed, o.EmbedModel, o.EmbedService = e.Embed, e.Model(), e.String()
		if more != nil {
			more(o)
		}
	}, nil
}

// WithEmbedder is like With, for commands that write texts and therefore need the embedder.
func (a *App) WithEmbedder(ctx context.Context, f func(st *varve.Store) error) error {
	dir, err := a.Locate()
	if err != nil {
		return err
	}
	more, err := a.Embedding(nil)
	if err != nil {
		return err
	}
	return a.WithIn(ctx, dir, Write, more, f)
}
