package wal

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve/errs"
)

// grouping is a model with groups: an entry of a group is also the newest entry of the group's keys.
type grouping struct {
	*model
	groups map[string][]string
}

func (g *grouping) Also(e *Entry) []string {
	if e.Delete {
		return nil
	}
	return g.groups[e.Key]
}

func (g *grouping) Current(key string) (LSN, error) {
	if !strings.HasPrefix(key, "r") {
		return g.model.Current(key)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var newest LSN
	for group, keys := range g.groups {
		if slices.Contains(keys, key) {
			newest = max(newest, g.at[group])
		}
	}
	return newest, nil
}

// As long as an entry is not applied, preconditions on the further keys of the entry (Machine.Also) see it, in the
// process that wrote it and in a process that has read it. Afterwards Machine.Current answers for these keys.
func TestAlso(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	groups := map[string][]string{"a1": {"rx", "ry"}, "a2": {"rx"}}
	open := func() (*FileLog, *model) {
		m := &model{}
		o := m.options(dir)
		o.Machine = &grouping{m, groups}
		l, err := Open(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l, m
	}
	one, _ := open()
	two, _ := open()
	put := func(l *FileLog, key string, ps ...Precondition) (LSN, error) {
		return l.Append(ctx, &Batch{Entries: []Entry{{Key: key, Kind: 16, Value: []byte("x")}}, Preconditions: ps})
	}
	first, err := put(one, "a1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := put(two, "mx", Precondition{Key: "rx", LSN: 0}); !errors.Is(err, errs.ErrConflict) {
		t.Errorf("x was taken in, and nobody said so: %v", err)
	}
	if _, err := put(two, "mx", Precondition{Key: "rx", LSN: first}); err != nil {
		t.Error(err)
	}
	if _, err := put(two, "mz", Precondition{Key: "rz", LSN: 0}); err != nil {
		t.Error(err)
	}
	second, err := put(two, "a2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := put(one, "mx", Precondition{Key: "rx", LSN: first}); !errors.Is(err, errs.ErrConflict) {
		t.Errorf("x was taken in once more: %v", err)
	}
	if _, err := put(one, "my", Precondition{Key: "ry", LSN: first}, Precondition{Key: "rx", LSN: second}); err != nil {
		t.Error(err)
	}
	for _, l := range []*FileLog{one, two} {
		if err := l.CatchUp(ctx); err != nil {
			t.Fatal(err)
		}
		if s := &l.state; len(s.pending) > 0 || len(s.beside) > 0 {
			t.Errorf("left: %v, %v", s.pending, s.beside)
		}
	}
	// Within one group, the batches before count.
	answers := together(t, one,
		&Batch{Entries: []Entry{{Key: "a1", Kind: 16, Value: []byte("again")}}},
		&Batch{Entries: []Entry{{Key: "my", Kind: 16, Value: []byte("y")}}, Preconditions: []Precondition{{Key: "ry", LSN: first}}})
	if answers[0] != nil || !errors.Is(answers[1], errs.ErrConflict) {
		t.Errorf("in one group: %v", answers)
	}
}
