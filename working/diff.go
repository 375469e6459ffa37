package working

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"
)

// Difference is the difference between two states. It does not include lifetimes, because they differ at any two
// moments.
type Difference struct {
	Added   map[string]any    // keys that only the second state has
	Removed map[string]any    // keys that only the first state has
	Changed map[string][2]any // for each key with different values: the value in the first state, and in the second
	Task    *[2]*Task         // the task states, if they differ; nil: equal

	NotesAdded   []Note // entries of the scratchpad that only the second state has
	NotesRemoved []Note // entries of the scratchpad that only the first state has
}

// Empty reports whether the two states are equal.
func (d *Difference) Empty() bool {
	return len(d.Added)+len(d.Removed)+len(d.Changed)+len(d.NotesAdded)+len(d.NotesRemoved) == 0 && d.Task == nil
}

// Diff compares two checkpoints. An empty id means the current state.
func (m *Memory) Diff(ctx context.Context, from, to string) (*Difference, error) {
	var both [2]*Snapshot
	for i, id := range []string{from, to} {
		if id != "" {
			if err := checkCheckpoint(id); err != nil {
				return nil, err
			}
		}
		s, err := m.load(ctx, id)
		if err != nil {
			return nil, err
		}
		both[i] = s
	}
	return Compare(both[0], both[1]), nil
}

// Compare returns the difference between two states.
func Compare(from, to *Snapshot) *Difference {
	d := &Difference{Added: map[string]any{}, Removed: map[string]any{}, Changed: map[string][2]any{}}
	for key, was := range from.Values {
		if is, ok := to.Values[key]; !ok {
			d.Removed[key] = was
		} else if !reflect.DeepEqual(was, is) {
			d.Changed[key] = [2]any{was, is}
		}
	}
	for key := range maps.Keys(to.Values) {
		if _, ok := from.Values[key]; !ok {
			d.Added[key] = to.Values[key]
		}
	}
	if !sameTask(from.Task, to.Task) {
		d.Task = &[2]*Task{from.Task, to.Task}
	}
	d.NotesAdded, d.NotesRemoved = without(to.Notes, from.Notes), without(from.Notes, to.Notes)
	return d
}

func sameTask(a, b *Task) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.UpdatedAt, y.UpdatedAt, x.StartedAt, y.StartedAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return a.StartedAt.Equal(b.StartedAt) && reflect.DeepEqual(x, y)
}

func without(list, other []Note) []Note {
	seen := make(map[uint64]bool, len(other))
	for _, n := range other {
		seen[n.Seq] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(n Note) bool { return seen[n.Seq] })
}
