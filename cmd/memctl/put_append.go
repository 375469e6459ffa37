package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// appendText adds text to a memory that exists. Update runs the change again on what another
// process has written meanwhile, so that no text is lost.
func appendText(ctx context.Context, a *cli.App, st *varve.Store, args []string, f *putFlags, options []varve.PutOption) error {
	text, err := content(ctx, a, args, f.file, cli.LimitsOf(st.Admin().Config()).MemoryBytes)
	if err != nil {
		return err
	}
	if text == "" {
		return fmt.Errorf("the text to append is empty: %w", varve.ErrInvalid)
	}
	return a.Memory(ctx, st, f.appendTo, func(id string) error {
		m, err := st.Update(ctx, id, func(m *varve.Memory) error {
			if m.Content != "" && !strings.HasSuffix(m.Content, "\n") {
				m.Content += "\n"
			}
			m.Content += text
			return nil
		}, options...)
		if err == nil {
			tellPut(ctx, a, st, &m)
		}
		return err
	})
}
