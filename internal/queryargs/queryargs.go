package queryargs

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/filter"
	"github.com/varve-db/varve/internal/timearg"
)

// Times returns the names of the filters by time. since and until include the day, month or year of their value; before
// and after exclude it.
func Times() []string {
	return []string{"since", "until", "before", "after", "created-since", "created-until", "updated-since",
		"updated-until"}
}

// ByTime returns the filters for the time arguments of a query. Relative times are relative to now. lookup returns the
// value of an argument; ok is false if the query does not have the argument. spelling returns the name of an argument
// as the caller spells it, for error messages.
func ByTime(now time.Time, lookup func(name string) (value string, ok bool),
	spelling func(name string) string) (all []varve.Filter, err error) {
	type end struct {
		at   time.Time
		name string
	}
	var first, last [3]end // by happened, created, updated: the latest beginning and the earliest end
	for i, name := range Times() {
		value, ok := lookup(name)
		if !ok {
			continue
		}
		span, err := timearg.Parse(value, now.Local())
		if err != nil {
			return nil, fmt.Errorf("%s %w", spelling(name), err)
		}
		about, at := max(0, i/2-1), span.From
		begins := name == "after" || strings.HasSuffix(name, "since")
		switch {
		case name == "after":
			at = span.After()
		case strings.HasSuffix(name, "until"):
			at = span.To
		}
		one, other := &first[about], &last[about]
		if !begins {
			one, other = other, one
		}
		if one.name == "" || begins == at.After(one.at) {
			*one = end{at, name}
		}
		if other.name != "" && !first[about].at.Before(last[about].at) {
			return nil, fmt.Errorf("%s and %s: the time ranges do not overlap, so no memory can match",
				strings.TrimSuffix(spelling(first[about].name), ":"),
				strings.TrimSuffix(spelling(last[about].name), ":"))
		}
		all = append(all, timeFilter(about, begins, at))
	}
	return all, nil
}

func timeFilter(about int, begins bool, at time.Time) varve.Filter {
	since, until := at, time.Time{}
	if !begins {
		since, until = until, since
	}
	switch {
	case about == 1:
		return varve.Created(since, until)
	case about == 2:
		return varve.Updated(since, until)
	case begins:
		return varve.Since(at)
	}
	return varve.Until(at)
}

// mostLooked is the maximum number of memories that Nothing examines.
const mostLooked = 1000

// Lister lists the memories of a *varve.Store, or of a part of one.
type Lister interface {
	Memories(ctx context.Context, filters ...varve.Filter) iter.Seq2[varve.Memory, error]
}

// Nothing returns the reason why no memory satisfies the conditions: a condition is on a member that no memory has, or
// on a member whose values have another type. It examines the first memories that pass the other filters. It returns ""
// if it finds no reason.
func Nothing(ctx context.Context, st Lister, conditions []string, filters ...varve.Filter) string {
	var all []*filter.Tally
	for _, s := range conditions {
		if c, err := filter.Parse(s); err == nil {
			all = append(all, c.Tally())
		}
	}
	if len(all) == 0 {
		return ""
	}
	n := 0
	for m, err := range st.Memories(ctx, filters...) {
		if ctx.Err() != nil || n == mostLooked {
			break
		}
		if err != nil {
			continue
		}
		n++
		for _, t := range all {
			t.Add(m.Metadata)
		}
	}
	for _, t := range all {
		if why := t.String(); why != "" {
			if n == mostLooked {
				why += " (among the first 1,000 memories examined)"
			}
			return why
		}
	}
	return ""
}
