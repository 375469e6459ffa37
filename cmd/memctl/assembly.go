package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
)

// assemblyCommand is the group of all that works on assemblies.
func (a *app) assemblyCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:     "assembly",
		Aliases: []string{"assemblies"},
		Short:   "Work on assemblies: groups of memories",
		Long: `Work on assemblies: groups of memories, each with a composite of the embeddings of its
members. A memory may be in several; deleting it takes it out of all of them.`,
		Example: `  memctl assembly put --id rome --name "the trip to Rome" m1 m2
  memctl assembly add rome m3
  memctl assembly list --containing m1`,
	}, a.assemblyListCommand(), a.assemblyShowCommand(), a.assemblyPutCommand(), a.assemblyAddCommand(), a.assemblyRemoveCommand(),
		a.assemblyMergeCommand(), a.assemblyActivateCommand(), a.assemblyRmCommand())
}

// storedAssembly is an assembly that was written.
type storedAssembly struct {
	ID      string `json:"id"`
	Version uint64 `json:"version,omitempty"`
	Members int    `json:"member_count"`
}

// wrote tells of an assembly that was written.
func (a *app) wrote(as *varve.Assembly, format string, args ...any) {
	if a.document != nil {
		a.document.item(storedAssembly{as.ID, as.Version, len(as.MemoryIDs)})
		return
	}
	a.say(format, args...)
}

// aboutAssembly puts the right remedy to an error.
func aboutAssembly(id string, err error) error {
	var missing *varve.MissingMembersError
	switch {
	case errors.As(err, &missing):
		return &fixed{err, "put the memories first, or name them all the same: --allow-missing"}
	case errors.Is(err, varve.ErrNotFound):
		return &fixed{err, "memctl assembly list shows what there is"}
	case errors.Is(err, varve.ErrConflict):
		return &fixed{err, "read it again (memctl assembly show ID) and repeat"}
	}
	return err
}

// eachAssembly does one thing for several; see each.
func (a *app) eachAssembly(ctx context.Context, ids []string, f func(id string) error) error {
	return a.each(ctx, ids, func(id string) error { return aboutAssembly(id, f(id)) })
}

// count is a number with its noun.
func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
