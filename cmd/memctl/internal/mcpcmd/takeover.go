package mcpcmd

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/mcpserver"
	"github.com/varve-db/varve/memstore"
)

const MemoryFileVariable = "MEMORY_FILE_PATH" // the reference server's variable for its file

// asideTold is the maximum number of unreadable lines of the imported file that are printed one by one. It is small
// because a client may not read stderr.
const asideTold = 20

// memoryFile is the file in which the MCP reference memory server keeps its memories. memctl mcp imports this file when
// it replaces that server.
type memoryFile struct {
	path    string // absolute path, "" if no file was named
	missing bool   // neither the file nor a store exists yet
}

// look checks that the file can be imported, and sets f.missing if the file does not exist. store is the folder of the
// store. If a store already exists there, look does nothing. The check comes before the store is created, so that no
// store remains if the file cannot be imported.
func (f *memoryFile) look(store string) error {
	if f.path == "" || cli.IsStore(store) {
		return nil
	}
	there, err := mcpserver.CanTakeOver(f.path)
	f.missing = err == nil && !there
	return withRemedy(err)
}

// takeOver imports the file into the store, and prints the result.
func takeOver(ctx context.Context, a *cli.App, st *varve.Store, from *memoryFile) error {
	if from.path == "" {
		return nil
	}
	file := from.path
	if from.missing {
		a.Note("%s does not exist, so there is nothing to import: the store starts empty", file)
	}
	t, err := mcpserver.TakeOver(ctx, st, file, a.Clock())
	if errors.Is(err, varve.ErrReadOnly) {
		a.Note("%s is not imported now, because the store is read-only; the first memctl mcp that can write imports "+
			"it", file)
		return nil
	}
	if err != nil {
		return withRemedy(err)
	}
	switch {
	case t.Before && t.Changed:
		a.Note("%s has changed since it was imported; to add what the store does not have, including what was "+
			"deleted from it: memctl import --from server-memory %s --store %s", file, cli.ShellQuote(file),
			cli.ShellQuote(st.Admin().Stats().Dir))
	case t.Entities+t.Relations+len(t.Aside) > 0:
		a.Note("took over %s and %s from %s; the file was not changed", cli.Count(t.Entities, "entity", "entities"),
			cli.Count(t.Relations, "relation", "relations"), file)
	}
	if t.There > 0 {
		a.Note("%d of them were in the store already and were not changed", t.There)
	}
	for i, s := range t.Aside {
		if i == asideTold {
			a.Note("%s kept aside; memctl get %s shows all", cli.Count(len(t.Aside)-i, "more line was", "more lines were"),
				memstore.TakeOverID)
			break
		}
		a.Note("%s:%d was kept aside in the memory %s: %s", file, s.Line, memstore.TakeOverID, s.Why)
	}
	return nil
}

// withRemedy adds a remedy to an error about a file that cannot be imported.
func withRemedy(err error) error {
	var source *mcpserver.SourceError
	if !errors.As(err, &source) {
		return err
	}
	const orStore = ", or name the store with --store or " + cli.StoreVariable
	fix := "set " + MemoryFileVariable + " to the file of the old server, which need not exist yet" + orStore
	switch {
	case cli.IsStore(source.Path):
		fix = "the path is a store: unset " + MemoryFileVariable + ", and name the store with --store or " + cli.StoreVariable
	case vfs.IsPermission(err):
		fix = "make the file readable for the user who runs memctl" + orStore
	default:
		for _, name := range []string{"memory.jsonl", "memory.json"} {
			in := filepath.Join(source.Path, name)
			if info, err := os.Stat(in); err == nil && info.Mode().IsRegular() {
				fix = "set " + MemoryFileVariable + " to the file in that folder: " + cli.ShellQuote(in)
				break
			}
		}
	}
	return cli.WithFix(err, fix)
}
