package cli

import (
	"context"
	"iter"
	"testing"

	"github.com/varve-db/varve"
)

// Only what can be an ending has the ids listed: a whole UUID that is missing costs no more than a
// lookup.
func TestNamedWithoutLooking(t *testing.T) {
	const id = "0190f3a5-0000-7000-8000-00000000aa01"
	asked := 0
	lines := func(context.Context, ...varve.Filter) iter.Seq2[varve.Line, error] {
		asked++
		return func(yield func(varve.Line, error) bool) { yield(varve.Line{ID: id}, nil) }
	}
	for _, typed := range []string{id, "0190f3a5-0000-7000-8000-00000000aa02", "a01", "note", "deadbeef.md"} {
		if whole, err := named(t.Context(), "memory", lines, typed); whole != "" || err != nil || asked > 0 {
			t.Errorf("%s: %q, %v, asked %d times", typed, whole, err, asked)
		}
	}
	for n, typed := range []string{"aa01", "…" + id} {
		if whole, err := named(t.Context(), "memory", lines, typed); whole != id || err != nil || asked != n+1 {
			t.Errorf("%s: %q, %v, asked %d times", typed, whole, err, asked)
		}
	}
}
