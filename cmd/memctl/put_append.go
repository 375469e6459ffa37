package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// appendText adds text to an existing memory. If another process has changed the memory meanwhile, Update makes the
// change again on the new version, so that no text is lost.
func appendText(ctx context.Context, a *cli.App, st *varve.Store, args []string, f *putFlags,
	options []varve.PutOption) error {
	text, err := content(ctx, a, args, f.file, cli.LimitsOf(st.Admin().Config()).MemoryBytes)
	if err != nil {
		return err
	}
	if text == "" {
		return fmt.Errorf("the text to append is empty: %w", varve.ErrInvalid)
	}
	return a.MemoryToChange(ctx, st, f.appendTo, func(id string) error {
		had := false
		m, err := st.Update(ctx, id, func(m *varve.Memory) error {
			// The embedding was computed from the old text. With an embedding service the store
			// computes a new one.
			had, m.Embedding = m.Embedding != nil, nil
			if m.Content != "" && !strings.HasSuffix(m.Content, "\n") {
				m.Content += "\n"
			}
			m.Content += text
			return nil
		}, options...)
		if err == nil {
			if had && m.Embedding == nil {
				a.Note("note: the embedding of the previous text was removed; memctl reindex --missing computes it again")
			}
			tellPut(ctx, a, st, &m, "changed")
		}
		return err
	})
}
