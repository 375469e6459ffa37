package assemblycmd

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// idAndMore requires the id of an assembly and at least one other argument. rest names the other arguments in the
// error.
func idAndMore(rest string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return nil
		}
		return cli.Usagef(cmd.CommandPath(), "%s takes the id of an assembly and %s", cmd.CommandPath(), rest)
	}
}

func assemblyAddCommand(a *cli.App) *cobra.Command {
	var missing bool
	c := &cobra.Command{
		Use:   "add ID MEMORY...",
		Short: "Add memories to an assembly",
		Long: `Add memories to an assembly, after its members. Memories that are members already keep their
place. If one of the memories does not exist, none is added.`,
		Example: "  memctl assembly add rome m3 m4",
		Args:    idAndMore("memories to add"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			var options []varve.PutOption
			if missing {
				options = append(options, varve.AllowMissing())
			}
			return changeAssembly(cmd.Context(), a, args[0],
				func(ctx context.Context, st *varve.Store, id string) (as varve.Assembly, err error) {
					err = withMembers(ctx, a, st, args[1:], func(ids []string) error {
						as, err = st.Assemblies().Add(ctx, id, ids, options...)
						return err
					})
					return as, err
				})
		}),
	}
	allowMissing(c, &missing)
	return c
}

func assemblyRemoveCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "remove ID MEMORY...",
		Short: "Remove memories from an assembly",
		Long: `Remove memories from an assembly. The memories themselves are kept; ids that are not members are
ignored.`,
		Example: "  memctl assembly remove rome m3",
		Args:    idAndMore("memories to remove"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			return changeAssembly(cmd.Context(), a, args[0],
				func(ctx context.Context, st *varve.Store, id string) (varve.Assembly, error) {
					now, err := st.Assemblies().Get(ctx, id)
					if err != nil {
						return now, err
					}
					ids := slices.Clone(args[1:])
					for i, arg := range ids {
						if slices.Contains(now.MemoryIDs, arg) {
							continue
						}
						if ids[i], err = a.WholeMemory(ctx, st, arg); err != nil {
							return now, err
						}
					}
					return st.Assemblies().Remove(ctx, id, ids)
				})
		}),
	}
}

func assemblyMergeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "merge INTO FROM...",
		Short: "Merge assemblies into one",
		Long: `Merge assemblies into an existing one and delete them, in one commit: members, keywords, tags and
topics are united, counts are added up, and merged_from lists the merged assemblies.`,
		Example: "  memctl assembly merge rome rome-2 italy",
		Args:    idAndMore("assemblies to merge into it"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			return changeAssembly(cmd.Context(), a, args[0],
				func(ctx context.Context, st *varve.Store, id string) (varve.Assembly, error) {
					from := slices.Clone(args[1:])
					for i, arg := range from {
						err := a.AssemblyToChange(ctx, st, arg, func(id string) error {
							_, err := st.Assemblies().GetRaw(ctx, id)
							from[i] = id
							return err
						})
						if err != nil {
							return varve.Assembly{}, err
						}
					}
					return st.Assemblies().Merge(ctx, id, from...)
				})
		}),
	}
}

// changeAssembly changes one assembly with the function f, and prints the result. arg is the id of the assembly or the
// ending of its id; f gets the whole id.
func changeAssembly(ctx context.Context, a *cli.App, arg string,
	f func(ctx context.Context, st *varve.Store, id string) (varve.Assembly, error)) error {
	return a.With(ctx, cli.Write, func(st *varve.Store) error {
		a.Document.Begin("assemblies")
		var as varve.Assembly
		err := a.AssemblyToChange(ctx, st, arg, func(id string) (err error) {
			as, err = f(ctx, st, id)
			return err
		})
		if err != nil {
			return aboutAssembly(arg, err)
		}
		tellWritten(a, &as, "%s has %s", cli.PrintableID(as.ID), cli.Count(len(as.MemoryIDs), "member", "members"))
		return nil
	})
}

func assemblyActivateCommand(a *cli.App) *cobra.Command {
	var boost float64
	c := &cobra.Command{
		Use:   "activate ID...",
		Short: "Activate assemblies",
		Long: `Activate assemblies: add --boost to the current activation of each, in the range 0 to 1, and count the
activation. An activation decays by half in a day, or in the time that activation_half_life sets.`,
		Example: "  memctl assembly activate rome\n  memctl assembly activate rome italy --boost 0.5",
		Args:    cli.AtLeastOne("the id of an assembly"),
		RunE: a.OnStore(cli.Write, func(ctx context.Context, st *varve.Store, args []string) error {
			a.Document.Begin("assemblies")
			return eachAssembly(ctx, a, st, args, func(id string) error {
				as, err := st.Assemblies().Activate(ctx, id, boost)
				if err == nil {
					tellWritten(a, &as, "%s: activation %.3f, activated %s", cli.PrintableID(id), as.ActivationLevel,
						cli.Count(int(as.ActivationCount), "time", "times"))
				}
				return err
			})
		}),
	}
	c.Flags().Float64Var(&boost, "boost", 0.1, "number to add; may be negative")
	return c
}

func assemblyRmCommand(a *cli.App) *cobra.Command {
	return a.Deletes("assembly", &cobra.Command{
		Short:   "Delete assemblies",
		Long:    `Delete assemblies, not their members. A missing id does not keep the others from being deleted.`,
		Example: "  memctl assembly rm rome",
	}, a.AssemblyToChange, func(ctx context.Context, st *varve.Store, id string, conds []varve.Cond) error {
		return aboutAssembly(id, st.Assemblies().Delete(ctx, id, conds...))
	})
}
