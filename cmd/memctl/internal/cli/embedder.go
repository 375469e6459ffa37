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

// Embedding returns a function that sets the options of a store whose texts are embedded. The returned function
// sets the embedder that the environment variables configure, and then calls modify unless modify is nil. If the
// variables configure no embedder, Embedding returns modify.
func (a *App) Embedding(modify func(*varve.Options)) (func(*varve.Options), error) {
	e, err := a.Embedder()
	if e == nil || err != nil {
		return modify, err
	}
	return func(o *varve.Options) {
		o.Embed, o.EmbedModel, o.EmbedService = e.Embed, e.Model(), e.String()
		if modify != nil {
			modify(o)
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
