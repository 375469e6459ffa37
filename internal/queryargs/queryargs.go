package queryargs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/filter"
	"github.com/varve-db/varve/internal/timearg"
)

// Times returns the names of the filters by time. since and until take in the day, month or year that they are
// given, before and after do not.
func Times() []string {
	return []string{"since", "until", "before", "after", "created-since", "created-until", "updated-since",
		"updated-until"}
}

// ByTime are the filters by time that are given, of times as people write them; as is how the caller spells a name
// before what is wrong with it.
func ByTime(now time.Time, given func(name string) (value string, ok bool),
	as func(name string) string) (all []varve.Filter, err error) {
	type end struct {
		at   time.Time
		name string
	}
	var first, last [3]end // of what happened, was created, was updated: the latest beginning and the earliest end
	for i, name := range Times() {
		value, ok := given(name)
		if !ok {
			continue
		}
		span, err := timearg.Parse(value, now.Local())
		if err != nil {
			return nil, fmt.Errorf("%s %w", as(name), err)
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
			return nil, fmt.Errorf("%s and %s: no time is in both, so that no memory passes",
				strings.TrimSuffix(as(first[about].name), ":"), strings.TrimSuffix(as(last[about].name), ":"))
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

// mostLooked is how many memories Nothing looks at.
const mostLooked = 1000

// Nothing says of which condition nothing came: one about a member that no memory has, or whose values are of
// another kind. The filters are the others; it looks at the first memories that pass them, and returns "" where it
// sees nothing odd.
func Nothing(ctx context.Context, st *varve.Store, conditions []string, filters ...varve.Filter) string {
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
				why += ", of the first 1,000 that were looked at"
			}
			return why
		}
	}
	return ""
}
