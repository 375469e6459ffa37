package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/upkeep"
	"github.com/varve-db/varve/memstore"
)

// mayLose asks the user to confirm the deletions that a change of the settings would cause. before and after are
// the settings before and after the change. mayLose returns an error if the user does not confirm the deletions.
func mayLose(cmd *cobra.Command, a *cli.App, st *varve.Store, before, after *varve.Config) error {
	if what := historyLoss(st, before, after, a.Clock()); what != "" {
		if err := agree(cmd, a, what); err != nil {
			return err
		}
	}
	if !stricter(before, after) {
		return nil
	}
	gone, all, err := losses(cmd.Context(), st, after, a.Clock())
	if err != nil || len(gone) == 0 {
		return err
	}
	names := make([]string, 0, 3)
	for _, l := range gone[:min(len(gone), cap(names))] {
		names = append(names, cli.PrintableID(l.ID))
	}
	if len(gone) > len(names) {
		names = append(names, "…")
	}
	what := fmt.Sprintf("With this setting, the next writes would delete %d of %s; the first are %s", len(gone),
		cli.Count(all, "memory", "memories"), strings.Join(names, ", "))
	return agree(cmd, a, what)
}

// historyLoss returns a description of the history that a change of the settings would remove, or "" if the change
// removes no history. before and after are the settings before and after the change.
func historyLoss(st *varve.Store, before, after *varve.Config, now time.Time) string {
	bytes := func(c *varve.Config) int64 { return *c.Resolved().HistoryBytes }
	fewer := bytes(after) < bytes(before)
	shorter := after.HistoryDays > 0 && (before.HistoryDays == 0 || after.HistoryDays < before.HistoryDays)
	if !fewer && !shorter {
		return ""
	}
	s := st.Admin().Stats()
	if s.HistoryBytes == 0 {
		return ""
	}
	day := func(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }
	since := ""
	if !s.HistorySince.IsZero() {
		since = ", which begins at " + day(s.HistorySince) + ","
	}
	if fewer && s.HistoryBytes > bytes(after) {
		return fmt.Sprintf("With this setting, the next flush of the index would remove the oldest %s of the %s of "+
			"history%s: deleted memories and older versions in this part cannot be restored",
			cli.Size(s.HistoryBytes-bytes(after)),
			cli.Size(s.HistoryBytes), since)
	}
	until := now.AddDate(0, 0, -after.HistoryDays)
	if shorter && (s.HistorySince.IsZero() || s.HistorySince.Before(until)) {
		return fmt.Sprintf("With this setting, the next flush of the index would remove, from the %s of history%s, "+
			"the part older than %s: deleted memories and older versions in this part cannot be restored",
			cli.Size(s.HistoryBytes), since,
			day(until))
	}
	return ""
}

// agree asks the user to confirm a loss, and returns an error unless the user confirms. If the input is not a
// terminal, agree does not ask and returns an error. loss is the description of the loss: a sentence without its full
// stop.
func agree(cmd *cobra.Command, a *cli.App, loss string) error {
	if _, ok := cli.Terminal(a.In); !ok {
		return cli.WithFix(fmt.Errorf("%w: nothing was changed: %s", varve.ErrInvalid,
			strings.ToLower(loss[:1])+loss[1:]), "confirm the change with --yes")
	}
	return upkeep.Confirm(cmd.Context(), a, loss+".",
		fmt.Errorf("%w: nothing was changed: the loss was not confirmed", varve.ErrInvalid))
}

func evicts(c *varve.Config) bool {
	return c.AtLimit == varve.AtLimitEvictOldest || c.AtLimit == varve.AtLimitEvictLowest
}

// stricter reports whether a change of the settings can delete memories. before and after are the settings before
// and after the change.
func stricter(before, after *varve.Config) bool {
	lower := func(was, is int64) bool { return is > 0 && (was == 0 || is < was) }
	switch {
	case lower(before.MaxAge, after.MaxAge):
		return true
	case !evicts(after):
		return false
	case !evicts(before):
		return true
	}
	return lower(before.MaxMemories, after.MaxMemories) || lower(before.MaxBytes, after.MaxBytes) ||
		lower(before.MaxSessionMemories, after.MaxSessionMemories) ||
		lower(before.MaxSessionBytes, after.MaxSessionBytes)
}

// room has the limits on the number and the size of memories, in the store or in one session; 0 means unlimited.
type room struct{ n, bytes int64 }

// over reports whether n memories with a total of bytes exceed the limits.
func (r room) over(n, bytes int64) bool {
	return r.n > 0 && n > r.n || r.bytes > 0 && bytes > r.bytes
}

// losses returns the memories that the settings in c would delete, in the order of deletion, and the number of all
// memories.
func losses(ctx context.Context, st *varve.Store, c *varve.Config,
	now time.Time) (gone []varve.Line, all int, err error) {
	var list []varve.Line
	type sum struct{ n, bytes int64 }
	var whole sum
	sessions := map[string]sum{}
	for l, err := range st.Admin().Lines(ctx) {
		if err != nil {
			return nil, 0, err
		}
		all++
		stays := l.ID == memstore.TakeOverID
		if !stays && c.MaxAge > 0 && l.UpdatedAt.Before(now.Add(-time.Duration(c.MaxAge)*time.Second)) {
			gone = append(gone, l)
			continue
		}
		if !stays {
			list = append(list, l)
		}
		whole = sum{whole.n + 1, whole.bytes + l.Size}
		in := sessions[l.Session]
		sessions[l.Session] = sum{in.n + 1, in.bytes + l.Size}
	}
	older := func(a, b varve.Line) int { return a.UpdatedAt.Compare(b.UpdatedAt) }
	slices.SortFunc(gone, older)
	if !evicts(c) {
		return gone, all, nil
	}
	slices.SortFunc(list, func(a, b varve.Line) int {
		if c.AtLimit == varve.AtLimitEvictLowest && a.Score != b.Score {
			return cmp.Compare(a.Score, b.Score)
		}
		return older(a, b)
	})
	total, each := room{c.MaxMemories, c.MaxBytes}, room{c.MaxSessionMemories, c.MaxSessionBytes}
	for pass, limit := range []room{each, total} {
		left := list[:0:0]
		for _, l := range list {
			in := sessions[l.Session]
			over := limit.over(whole.n, whole.bytes)
			if pass == 0 {
				over = l.Session != "" && limit.over(in.n, in.bytes)
			}
			if !over {
				left = append(left, l)
				continue
			}
			gone = append(gone, l)
			whole = sum{whole.n - 1, whole.bytes - l.Size}
			sessions[l.Session] = sum{in.n - 1, in.bytes - l.Size}
		}
		list = left
	}
	return gone, all, nil
}
