package mcpcmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/memstore"
)

const withoutMark = "without this memory the next memctl mcp imports the file again and restores what was deleted since"

// KeepMark returns the error for an attempt to delete the memory that records an import. The error says why rm does not
// delete this memory.
func KeepMark(ctx context.Context, st *varve.Store) error {
	m, err := st.Get(ctx, memstore.TakeOverID)
	if err != nil {
		return err
	}
	lines := ""
	if aside, _ := m.Metadata["aside"].([]any); len(aside) > 0 {
		lines = " and keeps " + cli.Count(len(aside), "line", "lines") + " that could not be read,"
	}
	err = cli.NotDeleted(fmt.Errorf("memory %q was not deleted: it records that %s was imported into this store,%s "+
		"and %s", m.ID, takenFrom(&m), lines, withoutMark))
	return cli.WithFix(err, "to import the file once more, delete this memory with: memctl purge "+m.ID)
}

// MarkGoes prints a note if a purge of these ids includes the memory that records an import.
func MarkGoes(ctx context.Context, a *cli.App, st *varve.Store, ids []string) {
	if !slices.Contains(ids, memstore.TakeOverID) {
		return
	}
	if m, err := st.Get(ctx, memstore.TakeOverID); err == nil {
		a.Note("%s records that %s was imported: %s", m.ID, takenFrom(&m), withoutMark)
	}
}

func takenFrom(m *varve.Memory) string {
	if source, ok := m.Metadata["source"].(string); ok {
		return source
	}
	return "the file of another server"
}
