package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/vfs/wrap"
)

// Place is a call site in the source and the kind of its operation.
type Place struct {
	Site string // "segment/file.go:120"
	Kind wrap.Kind
}

// Coverage counts events by place. The event "" is an operation; "switch", "stop" and "kill" are actions of the
// scheduler at that place; "cut lose-all", for example, is a power failure with the pattern LoseAll.
type Coverage map[Place]map[string]int

func (c Coverage) count(op *wrap.Op, event string) {
	at := Place{op.Site(), op.Kind}
	m := c[at]
	if m == nil {
		m = map[string]int{}
		c[at] = m
	}
	m[event]++
}

// Add adds another run's coverage to c.
func (c Coverage) Add(other Coverage) {
	for at, m := range other {
		if c[at] == nil {
			c[at] = map[string]int{}
		}
		for what, n := range m {
			c[at][what] += n
		}
	}
}

// Missing returns the places that have an operation that changes the disk, and at which event has never happened.
func (c Coverage) Missing(event string) []Place {
	var list []Place
	for at, m := range c {
		if at.Kind.Changes() && m[event] == 0 {
			list = append(list, at)
		}
	}
	sortPlaces(list)
	return list
}

// String returns a table with one line per place.
func (c Coverage) String() string {
	places := slices.Collect(maps.Keys(c))
	sortPlaces(places)
	var b strings.Builder
	for _, at := range places {
		fmt.Fprintf(&b, "%s %s %d", at.Site, at.Kind, c[at][""])
		for _, what := range slices.Sorted(maps.Keys(c[at])) {
			if what != "" {
				fmt.Fprintf(&b, ", %s %d", what, c[at][what])
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func sortPlaces(list []Place) {
	slices.SortFunc(list, func(a, b Place) int {
		return cmp.Or(strings.Compare(a.Site, b.Site), cmp.Compare(a.Kind, b.Kind))
	})
}
