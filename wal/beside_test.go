package wal

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/varve-db/varve/errs"
)

// totals is a model with running totals of the keys that begin with m: their number and size.
type totals struct {
	*model
	total map[string]uint64
}

func (m *totals) Counts(e *Entry) []Amount {
	if e.Delete || e.Key[0] != 'm' {
		return nil
	}
	return []Amount{{"n", 1}, {"b", uint64(len(e.Value))}}
}

func (m *totals) Current(key string) (LSN, error) {
	if len(key) == 1 {
		return m.total[key], nil
	}
	return m.model.Current(key)
}

func (m *totals) Apply(list []Entry) error {
	for i := range list {
		for _, a := range m.Counts(&list[i]) {
			m.total[a.Key] += a.N
		}
	}
	return m.model.Apply(list)
}

// counting is a log with its totals.
type counting struct {
	*FileLog
	*totals
}

// A precondition on a running total fails if more was added to the total, since the caller read it, than the
// precondition allows. The total includes applied entries, entries that other processes have written and that are not
// durable yet, and earlier batches of the group.
func TestCounts(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	open := func(from uint64) *counting {
		m := &totals{model: &model{}, total: map[string]uint64{"n": from, "b": from}} // differs between processes
		o := m.options(dir)
		o.Machine = m
		l, err := Open(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return &counting{l, m}
	}
	one, two := open(1000), open(1<<63)
	put := func(l *counting, key string, size int, ps ...Precondition) error {
		_, err := l.Append(ctx, &Batch{Entries: []Entry{{Key: key, Kind: 16, Value: []byte(strings.Repeat("x", size))}}, Preconditions: ps})
		return err
	}
	most := func(l *counting, key string, most uint64) Precondition {
		return Precondition{Key: key, LSN: l.total[key], Most: most}
	}
	wants := func(what string, err error, conflict bool) {
		t.Helper()
		if conflict != errors.Is(err, errs.ErrConflict) || err != nil && !conflict {
			t.Errorf("%s: %v", what, err)
		}
	}
	none, some := most(one, "n", 0), most(one, "b", 10)
	wants("another key", put(two, "o1", 100), false)
	wants("nothing was put", put(one, "o2", 1, none, some), false)
	wants("by another", put(two, "m1", 10), false)
	wants("10 of at most 10", put(one, "o3", 1, some), false)
	wants("1 of at most 0", put(one, "o3", 1, none), true)
	wants("by another", put(two, "m2", 1), false)
	wants("11 of at most 10", put(one, "o3", 1, some), true)
	wants("since then none", put(one, "m3", 5, most(one, "b", 0), most(one, "n", 0)), false)
	for _, l := range []*counting{one, two} {
		if err := l.CatchUp(ctx); err != nil {
			t.Fatal(err)
		}
		if s := &l.state; len(s.beside) > 0 || len(s.totals) > 0 {
			t.Errorf("left: %v, %v", s.beside, s.totals)
		}
	}
	if one.total["b"] != 1016 || one.total["n"] != 1003 || two.total["b"] != 1<<63+16 {
		t.Errorf("%v, %v", one.total, two.total)
	}
	// Written by another process, and not durable yet.
	r, err := two.request(&Batch{Entries: []Entry{{Key: "mx", Kind: 16, Value: make([]byte, 7)}}})
	if err != nil {
		t.Fatal(err)
	}
	if lead, err := two.q.add(r); err != nil || !lead {
		t.Fatal(lead, err)
	}
	none, some = most(one, "n", 0), most(one, "b", 7)
	if _, err := two.write(ctx, r); err != nil {
		t.Fatal(err)
	}
	for i, p := range []Precondition{none, most(one, "b", 6), some} {
		r, err := one.request(&Batch{Entries: []Entry{{Key: "o4", Kind: 16}}, Preconditions: []Precondition{p}})
		if err != nil {
			t.Fatal(err)
		}
		if lead, err := one.q.add(r); err != nil || !lead {
			t.Fatal(lead, err)
		}
		g, err := one.write(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		wants("not durable", r.err, i < 2)
		if i < 2 && (g.need <= one.Durable() || one.total["n"] != 1003) {
			t.Errorf("a refusal that rests on what is not durable waits until %d, durable is %d", g.need, one.Durable())
		}
		one.q.pass()
	}
	two.settle(ctx, r)
	two.q.pass()
	if err := one.CatchUp(ctx); err != nil || one.total["n"] != 1004 || len(one.state.totals) > 0 {
		t.Error(err, one.total, one.state.totals)
	}
	// In one group: written while a sync of this process is running.
	none, some = most(one, "n", 2), most(one, "b", 100)
	var list []*Batch
	for i, size := range []int{50, 50, 0, 1} {
		list = append(list, &Batch{Entries: []Entry{{Key: "m" + string(rune('p'+i)), Kind: 16, Value: make([]byte, size)}}, Preconditions: []Precondition{some, none}})
	}
	for i, err := range together(t, one.FileLog, list...) {
		wants("in one group", err, i == 3)
	}
}
