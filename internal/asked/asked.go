package asked

import (
	"context"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/when"
	"github.com/varve-db/varve/internal/where"
)

// Times returns the names of the filters by time. since and until take in the day, month or year that they are
// given, before and after do not.
func Times() []string {
	return []string{"since", "until", "before", "after", "created-since", "created-until", "updated-since", "updated-until"}
}

// Time is the filter of this name, of a time as people write it.
func Time(name, text string, now time.Time) (varve.Filter, error) {
	at, err := when.Parse(text, now.Local())
	if err != nil {
		return nil, err
	}
	var none time.Time
	switch name {
	case "since":
		return varve.Since(at.From), nil
	case "until":
		return varve.Until(at.To), nil
	case "before":
		return varve.Until(at.From), nil
	case "after":
		return varve.Since(at.After()), nil
	case "created-since":
		return varve.Created(at.From, none), nil
	case "created-until":
		return varve.Created(none, at.To), nil
	case "updated-since":
		return varve.Updated(at.From, none), nil
	}
	return varve.Updated(none, at.To), nil // updated-until
}

// mostLooked is how many memories Nothing looks at.
const mostLooked = 1000

// Nothing says of which condition nothing came: one about a member that no memory has, or whose values are of
// another kind. The filters are the others; it looks at the first memories that pass them, and returns "" where it
// sees nothing odd.
func Nothing(ctx context.Context, st *varve.Store, conditions []string, filters ...varve.Filter) string {
	var all []*where.Tally
	for _, s := range conditions {
		if c, err := where.Parse(s); err == nil {
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
