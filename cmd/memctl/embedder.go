package main

import (
	"context"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/vector/embed"
)

// embedder is the one that the environment describes, nil if it describes none.
func (a *app) embedder() (*embed.Embedder, error) {
	e, ok, err := embed.FromEnv(a.get)
	if err != nil {
		return nil, usage("", err)
	}
	if !ok {
		return nil, nil
	}
	return e, nil
}

// embedding adds the embedder to a store's options.
func (a *app) embedding(more func(*varve.Options)) (func(*varve.Options), error) {
	e, err := a.embedder()
	if e == nil || err != nil {
		return more, err
	}
	return func(o *varve.Options) {
		o.Embed, o.EmbedModel = e.Embed, e.Model()
		if more != nil {
			more(o)
		}
	}, nil
}

// withEmbedder is with for commands that write texts.
func (a *app) withEmbedder(ctx context.Context, f func(st *varve.Store) error) error {
	dir, err := a.locate()
	if err != nil {
		return err
	}
	more, err := a.embedding(nil)
	if err != nil {
		return err
	}
	return a.withIn(ctx, dir, write, more, f)
}
