package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/queryargs"
)

// filterFlags are the flags that select memories, for list, search and export.
type filterFlags struct {
	session, category, key, prefix, after string
	writer                                string
	tags, where                           []string
	// list --sort is set to another key than the id: then --after is a place in that order, not an id
	sorted bool
	timed  bool // --after is a time
	// number of filters that are not conditions on metadata; these come first
	plain int
}

func (f *filterFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.session, "session", "", "only memories of this `session`")
	fl.StringVar(&f.writer, "by", "",
		"only memories whose newest version was written by this writer: its `name`, its number in memctl log, or "+
			"unknown")
	fl.StringVar(&f.category, "category", "", "only memories of this `category`")
	fl.StringVar(&f.key, "key", "", "only memories with this `key` (metadata.key)")
	fl.StringVar(&f.prefix, "prefix", "", "only memories whose id begins with this `prefix`")
	fl.StringArrayVar(&f.tags, "tag", nil,
		"only memories with this `tag` (metadata.tags); if repeated, only memories with all of the tags")
	fl.StringArrayVar(&f.where, "where", nil,
		"only memories whose metadata satisfies a condition, `name=value`: source=desk, source!=desk, priority>=3, "+
			"path^=docs/, tags=a,b (one of them), source (is present), !source (is absent); may be repeated")
	fl.String("since", "",
		"only memories whose event was at this `time` or later: 2026-01-31, 31 Jan 2026, 2026-01, 2026-01-31T15:04, "+
			"yesterday, last week, 7d, 3 days ago; a time without a zone is in the local zone")
	fl.String("until", "",
		"only memories whose event was before this `time`, or in it if it is a day, week, month or year")
	fl.String("before", "",
		"only memories whose event was before this `time`, or before it begins if it is a day, week, month or year")
	fl.String("created-since", "", "only memories first written at this `time` or later")
	fl.String("created-until", "", "only memories first written before this `time`, or in it if it is a day, week, "+
		"month or year")
	fl.String("updated-since", "", "only memories last written at this `time` or later")
	fl.String("updated-until", "", "only memories last written before this `time`, or in it if it is a day, week, "+
		"month or year")
}

// addAfter adds the flag --after, whose value is a time. The command list does not use addAfter: the value of its own
// --after is the place in the list at which the list continues.
func (f *filterFlags) addAfter(c *cobra.Command) {
	f.timed = true
	c.Flags().String("after", "",
		"only memories whose event was after this `time`, or after it ends if it is a day, week, month or year")
}

// filters returns the filters that the flags of the command line select.
func (f *filterFlags) filters(cmd *cobra.Command, now time.Time) ([]varve.Filter, error) {
	switch {
	case cmd.Flags().Changed("session") && f.session == "":
		return nil, cli.Usagef(cmd.CommandPath(),
			"--session is empty: give the name of a session, or omit it; --where '!session_id' selects memories "+
				"without one")
	case cmd.Flags().Changed("category") && f.category == "":
		return nil, cli.Usagef(cmd.CommandPath(),
			"--category is empty: give a category, or omit it; --where '!category' selects memories without one")
	case cmd.Flags().Changed("key") && f.key == "":
		return nil, cli.Usagef(cmd.CommandPath(),
			"--key is empty: give a key, or omit it; --where '!key' selects memories without one")
	case cmd.Flags().Changed("prefix") && f.prefix == "":
		return nil, cli.Usagef(cmd.CommandPath(), "--prefix is empty: give the beginning of an id, or omit it")
	case f.timed && slices.Contains([]string{byBoth, byMeaning, byWords}, f.writer):
		return nil, cli.Usagef(cmd.CommandPath(), "--by %s: --by names a writer; for the mode of the search, give "+
			"--mode %s", f.writer, f.writer)
	case cmd.Flags().Changed("by") && f.writer == "":
		return nil, cli.Usagef(cmd.CommandPath(), "--by is empty: give the number or the name of a writer, or omit it")
	case slices.Contains(f.tags, ""):
		return nil, cli.Usagef(cmd.CommandPath(),
			"--tag is empty: give a tag, or omit it; --where '!tags' selects memories without one")
	}
	all, err := queryargs.ByTime(now, func(name string) (string, bool) {
		value, err := cmd.Flags().GetString(name)
		return value, err == nil && cmd.Flags().Changed(name) && (name != "after" || f.timed)
	}, func(name string) string { return "--" + name })
	if err != nil {
		return nil, cli.Usage(cmd.CommandPath(), err)
	}
	for _, s := range []struct {
		flag, value string
		filter      func(string) varve.Filter
	}{
		{"session", f.session, func(s string) varve.Filter { return varve.InSession(s) }},
		{"category", f.category, varve.InCategory}, {"key", f.key, varve.WithKey}, {"prefix", f.prefix, varve.WithPrefix},
		{"by", f.writer, varve.WrittenBy},
	} {
		if cmd.Flags().Changed(s.flag) {
			all = append(all, s.filter(s.value))
		}
	}
	for _, tag := range f.tags {
		all = append(all, varve.WithTag(tag))
	}
	f.plain = len(all)
	for _, condition := range f.where {
		w, err := varve.Where(condition)
		if err != nil {
			return nil, cli.Usagef(cmd.CommandPath(), "--where: %w", err)
		}
		all = append(all, w)
	}
	if f.after != "" && !f.sorted {
		all = append(all, varve.After(f.after))
	}
	return all, nil
}

const noMemory = "no memory found"

// noMatchMessage returns the message for a list or a search that found nothing: noMemory, followed by the likely
// reason if a reason is known.
func (f *filterFlags) noMatchMessage(ctx context.Context, st *varve.Store, filters []varve.Filter) string {
	if n, err := st.Count(ctx); err == nil && n == 0 {
		return noMemory + ": the store has none; memctl put TEXT stores one"
	}
	if why := noWriter(ctx, st, f.writer); why != "" {
		return noMemory + ": " + why
	}
	if why := queryargs.Nothing(ctx, st, f.where, filters[:f.plain]...); why != "" {
		return noMemory + ": " + why
	}
	return noMemory
}
