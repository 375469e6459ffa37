package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/when"
)

// filterFlags choose memories, for list, search and export.
type filterFlags struct {
	session, category, key, prefix, after string
	since, until, before, behind          string
	createdSince, createdUntil            string
	updatedSince, updatedUntil            string
	tags, where                           []string
	sorted                                bool // by another key than the id: after is a place in that order
	timed                                 bool // --after is a time
}

func (f *filterFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.session, "session", "", "only memories of this `session`")
	fl.StringVar(&f.category, "category", "", "only memories of this `category`")
	fl.StringVar(&f.key, "key", "", "only memories with this `key` (metadata.key)")
	fl.StringVar(&f.prefix, "prefix", "", "only memories whose id begins with this `prefix`")
	fl.StringArrayVar(&f.tags, "tag", nil, "only memories with this `tag` (metadata.tags); may be repeated: with all of them")
	fl.StringArrayVar(&f.where, "where", nil, "only memories whose metadata is as a condition says, `name=value`: source=desk, source!=desk, priority>=3, path^=docs/, tags=a,b (one of them), source (has it), !source; may be repeated")
	fl.StringVar(&f.since, "since", "", "only memories of what happened at this `time` or later: 2026-01-31, 31 Jan 2026, 2026-01, 2026-01-31T15:04, yesterday, last week, 7d, 3 days ago; in the local zone if it names none")
	fl.StringVar(&f.until, "until", "", "only memories of what happened before this `time`, or in it if it is a day, week, month or year")
	fl.StringVar(&f.before, "before", "", "only memories of what happened before this `time`, also before the beginning of a day, week, month or year")
	fl.StringVar(&f.createdSince, "created-since", "", "only memories first written at this `time` or later")
	fl.StringVar(&f.createdUntil, "created-until", "", "only memories first written before this `time`, or in it, as --until")
	fl.StringVar(&f.updatedSince, "updated-since", "", "only memories last written at this `time` or later")
	fl.StringVar(&f.updatedUntil, "updated-until", "", "only memories last written before this `time`, or in it, as --until")
}

// addAfter adds --after as a time; that of list is a place in it.
func (f *filterFlags) addAfter(c *cobra.Command) {
	f.timed = true
	c.Flags().StringVar(&f.behind, "after", "", "only memories of what happened after this `time`, also after the end of a day, week, month or year")
}

// filters are the flags as the store wants them.
func (f *filterFlags) filters(cmd *cobra.Command, now time.Time) ([]varve.Filter, error) {
	var all []varve.Filter
	for _, t := range []struct {
		flag, value string
		filter      func(when.Span) varve.Filter
	}{
		{"since", f.since, func(at when.Span) varve.Filter { return varve.Since(at.From) }},
		{"until", f.until, func(at when.Span) varve.Filter { return varve.Until(at.To) }},
		{"before", f.before, func(at when.Span) varve.Filter { return varve.Until(at.From) }},
		{"after", f.behind, func(at when.Span) varve.Filter { return varve.Since(at.After()) }},
		{"created-since", f.createdSince, func(at when.Span) varve.Filter { return varve.Created(at.From, time.Time{}) }},
		{"created-until", f.createdUntil, func(at when.Span) varve.Filter { return varve.Created(time.Time{}, at.To) }},
		{"updated-since", f.updatedSince, func(at when.Span) varve.Filter { return varve.Updated(at.From, time.Time{}) }},
		{"updated-until", f.updatedUntil, func(at when.Span) varve.Filter { return varve.Updated(time.Time{}, at.To) }},
	} {
		if !cmd.Flags().Changed(t.flag) || t.flag == "after" && !f.timed {
			continue
		}
		at, err := when.Parse(t.value, now.Local())
		if err != nil {
			return nil, cli.Usagef(cmd.CommandPath(), "--%s %w", t.flag, err)
		}
		all = append(all, t.filter(at))
	}
	for _, s := range []struct {
		flag, value string
		filter      func(string) varve.Filter
	}{
		{"session", f.session, func(s string) varve.Filter { return varve.InSession(s) }},
		{"category", f.category, varve.InCategory}, {"key", f.key, varve.WithKey}, {"prefix", f.prefix, varve.WithPrefix},
	} {
		if cmd.Flags().Changed(s.flag) {
			all = append(all, s.filter(s.value))
		}
	}
	if f.after != "" && !f.sorted {
		all = append(all, varve.After(f.after))
	}
	for _, tag := range f.tags {
		all = append(all, varve.WithTag(tag))
	}
	for _, condition := range f.where {
		w, err := varve.Where(condition)
		if err != nil {
			return nil, cli.Usagef(cmd.CommandPath(), "--where: %w", err)
		}
		all = append(all, w)
	}
	return all, nil
}
