package assemblycmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/intake"
)

// assemblyFlags are the flags of memctl assembly put.
type assemblyFlags struct {
	id, name, description  string
	keywords, tags, topics []string
	inactive               bool
	input                  string
	ifAbsent, allowMissing bool
	ifVersion              uint64
}

func assemblyPutCommand(a *cli.App) *cobra.Command {
	var f assemblyFlags
	c := &cobra.Command{
		Use:   "put [MEMORY...] | --json-input FILE|-",
		Short: "Store an assembly",
		Long: `Store an assembly of the named memories, and print its id. An assembly with the same id is
replaced; add and remove change its members.

--json-input reads whole assemblies: one object, an array of objects, or one object per line. All
are validated before any is written, and they are written in one commit.`,
		Example: `  memctl assembly put --id rome --name "the trip to Rome" --tag travel m1 m2
  memctl assembly put --json-input assemblies.json --allow-missing`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.input != "" && len(args) > 0 {
				return cli.Usagef(cmd.CommandPath(), "with --json-input the members are in the JSON: omit %q", args[0])
			}
			if f.input == "" && len(args) == 0 && f.name == "" {
				return cli.Usagef(cmd.CommandPath(), "the assembly is empty: give the ids of memories, or a --name")
			}
			return nil
		},
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("id") && f.id == "" {
				return fmt.Errorf("--id: %w", intake.NoID("assembly_id", assembly.DefaultLimits().IDBytes))
			}
			return a.With(cmd.Context(), cli.Write, func(st *varve.Store) error {
				all := []varve.Assembly{{
					ID: f.id, Name: f.name, Description: f.description, MemoryIDs: args,
					Keywords: f.keywords, Tags: f.tags, Topics: f.topics, Inactive: f.inactive,
				}}
				if f.input != "" {
					var err error
					limits := cli.AssemblyLimitsOf(st.Admin().Config())
					all, err = intake.ReadEach(cmd.Context(), a.In, f.input, "assembly", func(raw []byte) (varve.Assembly, error) {
						return intake.DecodeAssembly(raw, limits, a.NewID)
					})
					if err != nil {
						return err
					}
				}
				if f.input != "" {
					return putAssemblies(cmd.Context(), a, st, all, f.options(cmd))
				}
				return withMembers(cmd.Context(), a, st, args, func(ids []string) error {
					all[0].MemoryIDs = ids
					return putAssemblies(cmd.Context(), a, st, all, f.options(cmd))
				})
			})
		}),
	}
	fl := c.Flags()
	fl.StringVar(&f.id, "id", "", "`id` of the assembly; generated if omitted")
	fl.StringVar(&f.name, "name", "", "`name` of the assembly")
	fl.StringVar(&f.description, "description", "", "description of the assembly, as `text`")
	fl.StringArrayVar(&f.keywords, "keyword", nil, "a `keyword`; may be repeated")
	fl.StringArrayVar(&f.tags, "tag", nil, "a `tag`; may be repeated")
	fl.StringArrayVar(&f.topics, "topic", nil, "a `topic`; may be repeated")
	fl.BoolVar(&f.inactive, "inactive", false, "store the assembly as not active")
	fl.StringVar(&f.input, "json-input", "", "read whole assemblies as JSON from a `file`; - is stdin")
	fl.BoolVar(&f.ifAbsent, "if-absent", false, "only if no assembly has this id")
	fl.Uint64Var(&f.ifVersion, "if-version", 0, "only if this `version` is the newest one")
	allowMissing(c, &f.allowMissing)
	c.MarkFlagsMutuallyExclusive("if-absent", "if-version")
	for _, other := range []string{"id", "name", "description", "keyword", "tag", "topic", "inactive", "if-version"} {
		c.MarkFlagsMutuallyExclusive("json-input", other)
	}
	return c
}

// allowMissing adds the flag --allow-missing of put and add.
func allowMissing(c *cobra.Command, v *bool) {
	c.Flags().BoolVar(v, "allow-missing", false, "also accept ids of memories that do not exist")
}

func (f *assemblyFlags) options(cmd *cobra.Command) []varve.PutOption {
	var options []varve.PutOption
	if f.allowMissing {
		options = append(options, varve.AllowMissing())
	}
	switch {
	case f.ifAbsent:
		options = append(options, varve.IfAbsent())
	case cmd.Flags().Changed("if-version"):
		options = append(options, varve.IfVersion(f.ifVersion))
	}
	return options
}

// putAssemblies writes assemblies in one commit.
func putAssemblies(ctx context.Context, a *cli.App, st *varve.Store, all []varve.Assembly,
	options []varve.PutOption) error {
	if len(all) == 1 {
		as, err := st.Assemblies().Put(ctx, all[0], options...)
		if err != nil {
			return aboutAssembly(all[0].ID, err)
		}
		all[0] = as
	} else {
		b := new(varve.Batch)
		for _, as := range all {
			b.PutAssembly(as, options...)
		}
		if err := st.Apply(ctx, b); err != nil {
			return aboutAssembly("", err)
		}
	}
	a.Document.Begin("assemblies")
	for _, as := range all {
		if a.Document != nil {
			a.Document.Item(storedAssembly{as.ID, as.Version, len(as.MemoryIDs)})
		} else {
			fmt.Fprintln(a.Out, cli.PrintableID(as.ID))
		}
	}
	return nil
}
