package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/span"
)

// filterFlags choose memories, for list, search and export.
type filterFlags struct {
	session, category, key, prefix, after string
	since, until                          string
	createdSince, createdUntil            string
	updatedSince, updatedUntil            string
	tags, where                           []string
	sorted                                bool // by another key than the id: after is a place in that order
}

func (f *filterFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.session, "session", "", "only memories of this `session`")
	fl.StringVar(&f.category, "category", "", "only memories of this `category`")
	fl.StringVar(&f.key, "key", "", "only memories with this `key` (metadata.key)")
	fl.StringVar(&f.prefix, "prefix", "", "only memories whose id begins with this `prefix`")
	fl.StringArrayVar(&f.tags, "tag", nil, "only memories with this `tag` (metadata.tags); may be repeated: with all of them")
	fl.StringArrayVar(&f.where, "where", nil, "only memories whose metadata is as a condition says, `name=value`: source=desk, source!=desk, priority>=3, path^=docs/, tags=a,b (one of them), source (has it), !source; may be repeated")
	fl.StringVar(&f.since, "since", "", "only memories of what happened at this `time` or later: 2026-01-31, 2026-01-31T15:04:05Z, yesterday, or 90m, 24h, 7d ago")
	fl.StringVar(&f.until, "until", "", "only memories of what happened before this `time`")
	fl.StringVar(&f.createdSince, "created-since", "", "only memories first written at this `time` or later")
	fl.StringVar(&f.createdUntil, "created-until", "", "only memories first written before this `time`")
	fl.StringVar(&f.updatedSince, "updated-since", "", "only memories last written at this `time` or later")
	fl.StringVar(&f.updatedUntil, "updated-until", "", "only memories last written before this `time`")
}

// filters are the flags as the store wants them.
func (f *filterFlags) filters(cmd *cobra.Command, now time.Time) ([]varve.Filter, error) {
	var all []varve.Filter
	for _, t := range []struct {
		flag, value string
		filter      func(time.Time) varve.Filter
	}{
		{"since", f.since, varve.Since}, {"until", f.until, varve.Until},
		{"created-since", f.createdSince, func(t time.Time) varve.Filter { return varve.Created(t, time.Time{}) }},
		{"created-until", f.createdUntil, func(t time.Time) varve.Filter { return varve.Created(time.Time{}, t) }},
		{"updated-since", f.updatedSince, func(t time.Time) varve.Filter { return varve.Updated(t, time.Time{}) }},
		{"updated-until", f.updatedUntil, func(t time.Time) varve.Filter { return varve.Updated(time.Time{}, t) }},
	} {
		if !cmd.Flags().Changed(t.flag) {
			continue
		}
		at, err := span.Time(t.value, now)
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
		{"category", f.category, varve.InCategory}, {"key", f.key, varve.WithKey}, {"prefix", f.prefix, varve.WithPrefix}, {"after", f.after, varve.After},
	} {
		if cmd.Flags().Changed(s.flag) && !(f.sorted && s.flag == "after") {
			all = append(all, s.filter(s.value))
		}
	}
	conditions := f.where
	for _, tag := range f.tags {
		conditions = append(conditions, "tags="+strconv.Quote(tag))
	}
	for _, condition := range conditions {
		w, err := varve.Where(condition)
		if err != nil {
			return nil, cli.Usagef(cmd.CommandPath(), "--where: %w", err)
		}
		all = append(all, w)
	}
	return all, nil
}
