package assemblycmd

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// Command returns memctl assembly, the group of commands for assemblies.
func Command(a *cli.App) *cobra.Command {
	return a.Group(&cobra.Command{
		Use:     "assembly",
		Aliases: []string{"assemblies"},
		Short:   "Manage assemblies: groups of memories",
		Long: `Manage assemblies: groups of memories, each with a composite of the embeddings of its members. A
memory may be a member of several; deleting a memory removes it from all of them.`,
		Example: `  memctl assembly put --id rome --name "the trip to Rome" m1 m2
  memctl assembly add rome m3
  memctl assembly list --containing m1`,
	}, assemblyListCommand(a), assemblyShowCommand(a), assemblyPutCommand(a), assemblyAddCommand(a),
		assemblyRemoveCommand(a),
		assemblyMergeCommand(a), assemblyActivateCommand(a), assemblyRmCommand(a))
}

// storedAssembly is a written assembly in the JSON output.
type storedAssembly struct {
	ID      string `json:"id"`
	Version uint64 `json:"version,omitempty"`
	Members int    `json:"member_count"`
}

// tellWritten reports that an assembly was written. With --json, it adds the assembly's id, version and number of
// memories to the JSON document. Otherwise it prints the text that results from format and args, with the verbs of
// package fmt.
func tellWritten(a *cli.App, asm *varve.Assembly, format string, args ...any) {
	if a.Document != nil {
		a.Document.Item(storedAssembly{asm.ID, asm.Version, len(asm.MemoryIDs)})
		return
	}
	a.Say(format, args...)
}

// aboutAssembly adds a remedy to an error about an assembly.
func aboutAssembly(id string, err error) error {
	var missing *varve.MissingMembersError
	switch {
	case errors.As(err, &missing):
		return cli.WithFix(err, "put the memories first, or allow missing members with --allow-missing")
	case errors.Is(err, varve.ErrNotFound):
		return cli.WithFix(err, "memctl assembly list shows the assemblies of the store")
	case errors.Is(err, varve.ErrConflict):
		return cli.WithFix(err, "read the current version (memctl assembly show ID) and retry")
	}
	return err
}

// eachAssembly calls f for each of several assemblies. The arguments are ids of assemblies, or endings of ids. If f
// returns an error, eachAssembly reports it and continues; see Each.
func eachAssembly(ctx context.Context, a *cli.App, st *varve.Store, ids []string, f func(id string) error) error {
	return a.Each(ctx, ids, func(id string) error { return aboutAssembly(id, a.Assembly(ctx, st, id, f)) })
}

// withMembers calls f with the ids of memories in args. If f returns an error because the store lacks some of these
// memories, withMembers treats the arguments as endings of ids, and calls f again with the whole ids. With
// AllowMissing f accepts all ids, so the arguments are then always whole ids.
func withMembers(ctx context.Context, a *cli.App, st *varve.Store, args []string, f func(ids []string) error) error {
	err := f(args)
	var missing *varve.MissingMembersError
	if !errors.As(err, &missing) {
		return err
	}
	ids := slices.Clone(args)
	for i, arg := range args {
		id, merr := a.WholeMemory(ctx, st, arg)
		if merr != nil {
			return merr
		}
		ids[i] = id
	}
	if slices.Equal(ids, args) {
		return err
	}
	return f(ids)
}
