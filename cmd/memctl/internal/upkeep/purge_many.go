package upkeep

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/mcpcmd"
)

// selection is the set of flags that select the memories of a purge.
type selection struct {
	session, by string
	where       []string
}

func (s *selection) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&s.session, "session", "", "purge the memories of this `session`, deleted ones too")
	fl.StringVar(&s.by, "by", "",
		"purge the memories whose newest version was written by the writer with this `name`, or number in "+
			"memctl log, and deleted ones that the writer wrote")
	fl.StringArrayVar(&s.where, "where", nil,
		"purge the memories whose metadata satisfies a condition, `name=value`, as in memctl list; may be repeated")
}

func (s *selection) flags(cmd *cobra.Command) bool {
	return slices.ContainsFunc([]string{"session", "by", "where"}, cmd.Flags().Changed)
}

// given reports whether the command line selects the memories with flags, or with ids from standard input (-).
func (s *selection) given(cmd *cobra.Command, args []string) bool {
	return s.flags(cmd) || len(args) == 1 && args[0] == "-"
}

// arguments returns a check of the arguments of a command line. The command line must have either ids or flags of
// a selection, not both. If *now is true and the flag --version is not set, the command line may have neither.
// noun describes the ids in the error.
func (s *selection) arguments(now *bool, noun string) cobra.PositionalArgs {
	ids := cli.AtLeastOne(noun)
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case s.flags(cmd) && len(args) > 0:
			return cli.Usagef(cmd.CommandPath(), "give ids, or choose memories with --session, --where and --by, not both")
		case s.flags(cmd), *now && len(args) == 0 && !cmd.Flags().Changed("version"):
			return nil
		case len(args) > 1 && slices.Contains(args, "-"):
			return cli.Usagef(cmd.CommandPath(), "the argument - reads the ids from standard input: give no other ids")
		}
		return ids(cmd, args)
	}
}

func (s *selection) filters(cmd *cobra.Command) (list []varve.Filter, err error) {
	for _, f := range []struct {
		name, value string
		filter      func(string) varve.Filter
	}{{"session", s.session, func(s string) varve.Filter { return varve.InSession(s) }}, {"by", s.by, varve.WrittenBy}} {
		if !cmd.Flags().Changed(f.name) {
			continue
		}
		if f.value == "" {
			return nil, cli.Usagef(cmd.CommandPath(), "--%s is empty", f.name)
		}
		list = append(list, f.filter(f.value))
	}
	for _, condition := range s.where {
		w, err := varve.Where(condition)
		if err != nil {
			return nil, cli.Usagef(cmd.CommandPath(), "--where: %w", err)
		}
		list = append(list, w)
	}
	return list, nil
}

// planned describes a planned purge in the JSON document of purge.
type planned struct {
	Memories int   `json:"memories"` // number of selected memories
	Deleted  int   `json:"deleted"`  // how many of them are already deleted
	Bytes    int64 `json:"bytes"`
}

// purgeSelected purges all selected memories together. The memories are those that match the flags sel or, without
// such flags, those whose ids are read from standard input. If yes is false, purgeSelected asks the user on a terminal
// to confirm the purge; if it cannot ask, it returns an error. now means that the purged data is also removed from the
// copy elsewhere at once.
func purgeSelected(cmd *cobra.Command, a *cli.App, st *varve.Store, sel *selection, now, yes bool) error {
	ctx := cmd.Context()
	plan := new(varve.PurgePlan)
	if sel.flags(cmd) {
		filters, err := sel.filters(cmd)
		if err != nil {
			return err
		}
		if plan, err = st.Admin().PlanPurge(ctx, filters...); err != nil {
			return err
		}
		for _, err := range plan.Unread {
			a.Note("a part of the history cannot be read, so its deleted memories are not found: %v", err)
		}
	} else {
		var err error
		if plan.IDs, err = idsFrom(a); err != nil {
			return err
		}
		if err := allKnown(ctx, st.Admin().Unknown, plan.IDs); err != nil {
			return err
		}
	}
	a.Document.Member("plan", planned{len(plan.IDs), plan.Deleted, plan.Bytes})
	if len(plan.IDs) == 0 {
		return cli.WithFix(fmt.Errorf("no memory is selected: %w", varve.ErrNotFound),
			"memctl list shows the memories that match the same conditions")
	}
	what := cli.Count(len(plan.IDs), "memory", "memories")
	if plan.Deleted > 0 {
		what += fmt.Sprintf(", of which %d are deleted already", plan.Deleted)
	}
	if plan.Bytes > 0 {
		what += fmt.Sprintf(" (%s)", cli.Size(plan.Bytes))
	}
	if _, ok := cli.Terminal(a.In); !yes && (!ok || !sel.flags(cmd)) { // standard input has the ids
		return cli.Usagef(cmd.CommandPath(),
			"%s would be purged, but nothing was: a purge cannot be undone, and without a terminal, or with ids from "+
				"standard input, it needs --yes", what)
	}
	mcpcmd.MarkGoes(ctx, a, st, plan.IDs)
	elsewhere := aboutCopy(ctx, a, st, plan.IDs, nil)
	if !yes {
		err := Confirm(ctx, a, fmt.Sprintf("Every version of %s will be removed. This cannot be undone.", what),
			fmt.Errorf("%w: the purge was not confirmed: %w", varve.ErrInvalid, errUnconfirmed))
		if err != nil {
			return err
		}
	}
	a.Note("purging %s", what)
	r, err := st.Admin().Purge(ctx, plan.IDs...)
	return elsewhere.end(ctx, now, tellResult(a, plan.IDs, r, err))
}

// mostIDLine is the maximum length of a line with an id, in bytes.
const mostIDLine = 64 << 10

// idsFrom reads ids from standard input, one per line.
func idsFrom(a *cli.App) (ids []string, err error) {
	in := bufio.NewScanner(a.In)
	in.Buffer(nil, mostIDLine)
	seen := map[string]bool{}
	for in.Scan() {
		id := strings.TrimSuffix(in.Text(), "\r")
		if id != "" && !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("%w: a line of standard input has more than %d bytes, so it is not an id", varve.ErrInvalid,
			mostIDLine)
	}
	return ids, in.Err()
}
