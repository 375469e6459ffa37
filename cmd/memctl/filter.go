package main

import (
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
}

func (f *filterFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.session, "session", "", "only memories of this `session`")
	fl.StringVar(&f.category, "category", "", "only memories of this `category`")
	fl.StringVar(&f.key, "key", "", "only memories with this `key` (metadata.key)")
	fl.StringVar(&f.prefix, "prefix", "", "only memories whose id begins with this `prefix`")
	fl.StringVar(&f.since, "since", "", "only memories written at this `time` or later: 2026-01-31, 2026-01-31T15:04:05Z, or 90m, 24h, 7d ago")
	fl.StringVar(&f.until, "until", "", "only memories written before this `time`")
}

// filters are the flags as the store wants them.
func (f *filterFlags) filters(cmd *cobra.Command, now time.Time) ([]varve.Filter, error) {
	var all []varve.Filter
	for _, t := range []struct {
		flag, value string
		filter      func(time.Time) varve.Filter
	}{{"since", f.since, varve.Since}, {"until", f.until, varve.Until}} {
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
		if cmd.Flags().Changed(s.flag) {
			all = append(all, s.filter(s.value))
		}
	}
	return all, nil
}
