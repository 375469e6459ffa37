package assemblycmd

import (
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/span"
)

func assemblyListCommand(a *cli.App) *cobra.Command {
	var (
		containing, after, prefix string
		active                    bool
		limit                     int
	)
	c := &cobra.Command{
		Use:   "list",
		Short: "List assemblies",
		Long: `List assemblies by id: on a terminal as a table with the endings of ids, as in memctl list,
otherwise one per line with id, time of the last write (UTC), number of members, current activation
and name, separated by tabs.`,
		Example: "  memctl assembly list --containing notes\n  memctl assembly list --limit 0 --json",
		Args:    cli.NoArguments,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return cli.Usagef(cmd.CommandPath(), "--limit %d: must be 0 (all) or more", limit)
			}
			var filters []varve.Filter
			if cmd.Flags().Changed("after") {
				filters = append(filters, varve.After(after))
			}
			if cmd.Flags().Changed("prefix") {
				filters = append(filters, varve.WithPrefix(prefix))
			}
			return a.With(cmd.Context(), cli.Read, func(st *varve.Store) error {
				all := st.Assemblies().All(cmd.Context(), filters...)
				if cmd.Flags().Changed("containing") {
					id, err := a.WholeMemory(cmd.Context(), st, containing)
					if err != nil {
						return err
					}
					all = st.Assemblies().Containing(cmd.Context(), id)
				}
				return listAssemblies(cmd, a, st, all, func(as *varve.Assembly) bool { return !active || !as.Inactive }, limit)
			})
		}),
	}
	fl := c.Flags()
	fl.StringVar(&containing, "containing", "", "only assemblies that have the memory with this `id`, or ending of an id")
	fl.BoolVar(&active, "active", false, "only active assemblies")
	fl.StringVar(&prefix, "prefix", "", "only assemblies whose id begins with this `prefix`")
	fl.StringVar(&after, "after", "", "only assemblies after this `id`")
	fl.IntVarP(&limit, "limit", "n", 50, "list at most `N` assemblies; 0 means all")
	a.OutputFlag(c, cli.FormTable, cli.FormJSON, cli.FormJSONL, cli.FormID)
	c.MarkFlagsMutuallyExclusive("containing", "after")
	c.MarkFlagsMutuallyExclusive("containing", "prefix")
	return c
}

// Listed is an assembly in a list, without its members and the numbers of its embeddings.
type Listed struct {
	ID             string     `json:"id"`
	Version        uint64     `json:"version"`
	Name           string     `json:"name"`
	Description    string     `json:"description,omitempty"`
	Members        int        `json:"member_count"`
	Active         bool       `json:"is_active"`
	Activation     float64    `json:"activation"` // activation level at the time of the listing
	Activations    int64      `json:"activation_count"`
	LastActivation *time.Time `json:"last_activation,omitempty"`
	Dims           int        `json:"composite_dims"`
	Keywords       []string   `json:"keywords,omitempty"`
	Tags           []string   `json:"tags,omitempty"`
	Topics         []string   `json:"topics,omitempty"`
	MergedFrom     []string   `json:"merged_from,omitempty"`
	Created        *time.Time `json:"created_at,omitempty"`
	Updated        *time.Time `json:"updated_at,omitempty"`
}

func listAssemblies(cmd *cobra.Command, a *cli.App, st *varve.Store, all iter.Seq2[varve.Assembly, error],
	pass func(*varve.Assembly) bool, limit int) error {
	ctx := cmd.Context()
	l := a.List("assemblies", st.Assemblies().Lines, cli.Column{Name: "ID"}, cli.Column{Name: "AGE", Right: true},
		cli.Column{Name: "MEMBERS", Right: true}, cli.Column{Name: "ACTIVATION", Right: true}, cli.Column{Name: "NAME"})
	n, last, more := 0, "", false
	for as, err := range all {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			a.Fail(err)
			continue
		}
		if !pass(&as) {
			continue
		}
		if limit > 0 && n == limit {
			more = true
			break
		}
		n, last = n+1, as.ID
		level := st.Assemblies().Level(&as)
		if err := l.Add(ctx, assemblyItem(a, &as, level)); err != nil {
			return err
		}
	}
	if err := l.End(ctx); err != nil {
		return err
	}
	a.ListEnd(cmd, n, last, more, func() string { return "no assembly found" })
	return nil
}

func ListedOf(asm *varve.Assembly, level float64) Listed {
	return Listed{
		asm.ID, asm.Version, asm.Name, asm.Description, len(asm.MemoryIDs), !asm.Inactive, level, asm.ActivationCount,
		cli.OrNil(asm.LastActivation),
		len(asm.CompositeEmbedding), asm.Keywords, asm.Tags, asm.Topics, asm.MergedFrom, cli.OrNil(asm.CreatedAt),
		cli.OrNil(asm.UpdatedAt),
	}
}

func assemblyItem(a *cli.App, asm *varve.Assembly, level float64) cli.Item {
	id, members, activation, name := cli.PrintableID(asm.ID), strconv.Itoa(len(asm.MemoryIDs)),
		strconv.FormatFloat(level, 'f', 3, 64), cli.Printable(asm.Name)
	return cli.Item{
		ID: asm.ID, JSON: ListedOf(asm, level),
		Text: func() string {
			return strings.Join([]string{id, asm.UpdatedAt.Format(time.RFC3339), members, activation, name}, "\t")
		},
		Cells: func() []string {
			return []string{id, span.Age(a.Clock().Sub(asm.UpdatedAt)), members, activation, name}
		},
	}
}
