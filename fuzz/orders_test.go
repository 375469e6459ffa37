package fuzz

import (
	"cmp"
	"slices"
	"strings"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/memstore"
)

// orderKey returns a random order.
func (a *actor) orderKey() string {
	names := memstore.OrderNames()
	return []string{"", "-"}[a.rng.IntN(2)] + names[a.rng.IntN(len(names))]
}

// inOrder returns a filter that lists memories in an order.
func inOrder(key string) varve.Filter {
	o, err := memstore.ParseOrder(key, "")
	if err != nil {
		panic(err)
	}
	return varve.Sorted(o)
}

// ordered compares sorted listings and sums of sessions with the present memories.
func (a *actor) ordered(list []varve.Memory, sessions map[string]int64) {
	for _, o := range []struct {
		key string
		by  func(a, b varve.Memory) int
	}{
		{"timestamp", func(a, b varve.Memory) int { return a.Timestamp.Compare(b.Timestamp) }},
		{"created", func(a, b varve.Memory) int { return a.CreatedAt.Compare(b.CreatedAt) }},
		{"-updated", func(a, b varve.Memory) int { return b.UpdatedAt.Compare(a.UpdatedAt) }},
		{"score", func(a, b varve.Memory) int { return cmp.Compare(a.QuickRecalScore, b.QuickRecalScore) }},
	} {
		want := slices.Clone(list)
		slices.SortFunc(want, func(a, b varve.Memory) int {
			if o.key[0] == '-' {
				return cmp.Or(o.by(a, b), strings.Compare(b.ID, a.ID))
			}
			return cmp.Or(o.by(a, b), strings.Compare(a.ID, b.ID))
		})
		got := slices.DeleteFunc(a.list(inOrder(o.key)), func(m varve.Memory) bool { return a.h.harmed[m.ID] })
		same := func(a, b varve.Memory) bool { return a.ID == b.ID && a.Version == b.Version }
		if !slices.EqualFunc(got, want, same) {
			a.h.bad("%s: %d memories are listed by %s, %d are there, or in another order", a.name, len(got), o.key, len(want))
		}
	}
	if len(a.h.harmed) > 0 {
		return
	}
	for s, err := range a.st.Sessions().All(ctx) {
		if is, ok := sessions[s.ID]; err != nil || ok && s.Memories != is {
			a.h.bad("%s: session %s has %d memories (%v), %d are there", a.name, s.ID, s.Memories, err, is)
		}
	}
}
