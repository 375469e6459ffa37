package workingtest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/varve-db/varve/working"
)

// Mark makes a checkpoint of a working memory and returns its description. It fails the test on an error.
func (t *T) Mark(m *working.Memory, description string) working.CheckpointInfo {
	t.Helper()
	cp, err := m.Checkpoint(t.Ctx, description)
	t.OK(err)
	return cp
}

// Restore restores a checkpoint and returns the checkpoint that undoes this. It fails the test on an error.
func (t *T) Restore(m *working.Memory, id string) working.CheckpointInfo {
	t.Helper()
	undo, err := m.Restore(t.Ctx, id)
	t.OK(err)
	return undo
}

// Marks returns the ids of the checkpoints, the oldest first.
func (t *T) Marks(m *working.Memory) []string {
	t.Helper()
	list, err := m.Checkpoints(t.Ctx)
	t.OK(err)
	ids := []string{}
	for _, cp := range list {
		t.OK(cp.Err)
		ids = append(ids, cp.ID)
	}
	return ids
}

// Holds fails the test if the values in a checkpoint are not exactly those in want.
func (t *T) Holds(m *working.Memory, id string, want map[string]any) {
	t.Helper()
	s, err := m.LoadCheckpoint(t.Ctx, id)
	t.OK(err)
	t.Equal("checkpoint", []any{s.Info.ID, s.Values}, []any{id, want})
}

var checkpointCases = []Case{
	{"create, list, load", func(t *T) {
		m := t.Open(nil)
		t.Equal("none", t.Marks(m), []string{})
		t.Set(m, "a", 1)
		t.Set(m, "b", nil)
		_, err := m.SetTask(t.Ctx, working.Task{Status: "busy"})
		t.OK(err)
		_, err = m.Append(t.Ctx, "thought")
		t.OK(err)
		first := t.Mark(m, "the first")
		second := t.Mark(m, "")
		list, err := m.Checkpoints(t.Ctx)
		t.OK(err)
		t.Equal("list", list, []working.CheckpointInfo{first, second})
		t.Equal("first", []any{len(first.ID), first.Description, first.Keys, first.Notes, first.Created.IsZero()},
			[]any{36, "the first", 2, 1, false})
		s, err := m.LoadCheckpoint(t.Ctx, first.ID)
		t.OK(err)
		t.Equal("loaded", []any{s.Info, s.Values, s.Task.Status, len(s.Notes), s.Notes[0].Text, len(s.TTL)},
			[]any{first, map[string]any{"a": 1.0, "b": nil}, "busy", 1, "thought", 0})
		t.Fails(errOf(m.Checkpoint(t.Ctx, strings.Repeat("x", working.MaxDescription+1))), working.ErrTooLarge)
	}},
	{"F46 a checkpoint holds no checkpoints and costs what changed", func(t *T) {
		m := t.Open(nil)
		for i := range 100 {
			t.Set(m, fmt.Sprint("k", i), strings.Repeat("x", 100))
		}
		t.Equal("first", t.Mark(m, "").Changed, 100)
		for i := range 10 {
			t.Set(m, "k1", i)
			_, err := m.Append(t.Ctx, "x")
			t.OK(err)
			if n := t.Mark(m, "").Changed; n != 2 {
				t.Errorf("checkpoint %d stores %d items, want only the 2 that changed", i, n)
			}
		}
		t.Equal("nothing changed", t.Mark(m, "").Changed, 0)
	}},
	{"F47 restore keeps newer checkpoints and can be undone", func(t *T) {
		m := t.Open(nil)
		t.Set(m, "k", "one")
		t.Set(m, "gone later", 1)
		_, err := m.SetTask(t.Ctx, working.Task{Status: "one"})
		t.OK(err)
		_, err = m.Append(t.Ctx, "one")
		t.OK(err)
		one := t.Mark(m, "one")
		t.Set(m, "k", "two")
		t.Set(m, "new", 2)
		_, err = m.Delete(t.Ctx, "gone later")
		t.OK(err)
		_, err = m.ClearTask(t.Ctx)
		t.OK(err)
		_, err = m.Append(t.Ctx, "two")
		t.OK(err)
		two := t.Mark(m, "two")
		t.Set(m, "k", "three")
		before, err := m.Snapshot(t.Ctx)
		t.OK(err)

		undo := t.Restore(m, one.ID)
		t.Equal("keys", undo.Keys, 2)
		t.Keys(m, "gone later", "k")
		t.Has(m, "k", "one")
		task, set, err := m.Task(t.Ctx)
		t.OK(err)
		t.Equal("task", []any{set, task.Status}, []any{true, "one"})
		texts, err := m.Scratchpad(t.Ctx)
		t.OK(err)
		t.Equal("scratchpad", texts, []string{"one"})
		t.Equal("checkpoints", t.Marks(m), []string{one.ID, two.ID, undo.ID})
		t.Holds(m, two.ID, map[string]any{"k": "two", "new": 2.0})

		t.Restore(m, undo.ID)
		after, err := m.Snapshot(t.Ctx)
		t.OK(err)
		if d := working.Compare(before, after); !d.Empty() {
			t.Errorf("undone, but %+v", d)
		}
		t.Restore(m, two.ID)
		t.Has(m, "k", "two")
		texts, err = m.Scratchpad(t.Ctx)
		t.OK(err)
		t.Equal("scratchpad", texts, []string{"one", "two"})
	}},
	{"F48 lifetimes are kept and restored", func(t *T) {
		m := t.Open(nil)
		t.Set(m, "k", 1, working.Expires(time.Hour))
		t.Set(m, "forever", 1)
		t.Set(m, "expired", 1, working.Expires(time.Minute))
		t.Advance(40 * time.Minute)
		cp := t.Mark(m, "")
		s, err := m.LoadCheckpoint(t.Ctx, cp.ID)
		t.OK(err)
		t.Equal("values", s.Values, map[string]any{"k": 1.0, "forever": 1.0})
		t.About("lifetime in the checkpoint", s.TTL["k"], 20*time.Minute)
		t.Advance(10 * time.Hour)
		t.Lacks(m, "k")
		later := t.Mark(m, "")
		t.Holds(m, later.ID, map[string]any{"forever": 1.0})
		s, err = m.LoadCheckpoint(t.Ctx, cp.ID)
		t.OK(err)
		t.About("lifetime in the checkpoint, later", s.TTL["k"], 20*time.Minute)
		t.Restore(m, cp.ID)
		t.Lacks(m, "expired")
		t.About("restored", t.TTL(m, "k"), 20*time.Minute)
		t.Advance(20 * time.Minute)
		t.Lacks(m, "k")
		t.Has(m, "forever", 1.0)
		t.Restore(m, later.ID)
		t.Keys(m, "forever")
	}},
	{"an unchanged value that expires, over several checkpoints", func(t *T) {
		m := t.Open(nil)
		t.Set(m, "k", 1, working.Expires(time.Hour))
		var ids []string
		for range 4 {
			ids = append(ids, t.Mark(m, "").ID)
			t.Advance(20 * time.Minute)
		}
		for i, want := range []time.Duration{60, 40, 20} {
			s, err := m.LoadCheckpoint(t.Ctx, ids[i])
			t.OK(err)
			t.About(fmt.Sprint("checkpoint ", i), s.TTL["k"], want*time.Minute)
		}
		t.Holds(m, ids[3], map[string]any{})
	}},
	{"delete tells whether it was there and takes nothing from others", func(t *T) {
		for _, gone := range []int{0, 1, 2, 3} {
			m := t.OpenOn(t.Home, working.Scope{Session: fmt.Sprint("delete ", gone)}, nil)
			var ids []string
			want := map[string]map[string]any{}
			t.Set(m, "base", 1)
			for i := range 4 {
				t.Set(m, fmt.Sprint("k", i), 1)
				t.Set(m, "each", i)
				_, err := m.Delete(t.Ctx, fmt.Sprint("k", i-2))
				t.OK(err)
				id := t.Mark(m, "").ID
				ids = append(ids, id)
				if want[id], err = m.All(t.Ctx); err != nil {
					t.Fatal(err)
				}
			}
			existed, err := m.DeleteCheckpoint(t.Ctx, ids[gone])
			t.OK(err)
			t.Equal("existed", existed, true)
			existed, err = m.DeleteCheckpoint(t.Ctx, ids[gone])
			t.OK(err)
			t.Equal("existed", existed, false)
			t.Set(m, "after", 1)
			last := t.Mark(m, "")
			if want[last.ID], err = m.All(t.Ctx); err != nil {
				t.Fatal(err)
			}
			left := append(append(append([]string{}, ids[:gone]...), ids[gone+1:]...), last.ID)
			t.Equal("left", t.Marks(m), left)
			for _, id := range left {
				t.Holds(m, id, want[id])
			}
		}
	}},
	{"unknown ones", func(t *T) {
		m := t.Open(nil)
		t.Set(m, "k", 1)
		for _, id := range []string{"0198c5a1-0000-4000-8000-000000000000", "", "no uuid", "../x",
			"0198C5A1-0000-4000-8000-000000000000", "{0198c5a1-0000-4000-8000-000000000000}"} {
			_, err := m.Restore(t.Ctx, id)
			t.Fails(err, working.ErrNotFound)
			var ce *working.CheckpointError
			if !errors.As(err, &ce) || ce.ID != id {
				t.Errorf("the error %q does not contain the id %q", err, id)
			}
			_, err = m.LoadCheckpoint(t.Ctx, id)
			t.Fails(err, working.ErrNotFound)
			existed, err := m.DeleteCheckpoint(t.Ctx, id)
			t.OK(err)
			t.Equal("existed", existed, false)
			if id != "" {
				_, err = m.Diff(t.Ctx, id, "")
				t.Fails(err, working.ErrNotFound)
			}
		}
		t.Equal("no checkpoint was made", t.Marks(m), []string{})
		t.Has(m, "k", 1.0)
	}},
	{"retention", func(t *T) {
		m := t.Open(&working.Options{Checkpoints: 3})
		var ids []string
		for i := range 5 {
			t.Set(m, "k", i)
			ids = append(ids, t.Mark(m, "").ID)
		}
		t.Equal("kept", t.Marks(m), ids[2:])
		for i, id := range ids[2:] {
			t.Holds(m, id, map[string]any{"k": float64(i + 2)})
		}
		undo := t.Restore(m, ids[2])
		t.Has(m, "k", 2.0)
		t.Equal("the restored checkpoint and the undo checkpoint are kept", t.Marks(m), []string{ids[2], ids[4],
			undo.ID})
		one := t.OpenOn(t.Home, working.Scope{Session: "one"}, &working.Options{Checkpoints: 1})
		t.Set(one, "k", 1)
		a := t.Mark(one, "")
		t.Set(one, "k", 2)
		undo = t.Restore(one, a.ID)
		t.Equal("both", t.Marks(one), []string{a.ID, undo.ID})
		t.Restore(one, undo.ID)
		t.Has(one, "k", 2.0)
		b := t.Mark(one, "")
		t.Equal("one", t.Marks(one), []string{b.ID})
		t.Holds(one, b.ID, map[string]any{"k": 2.0})
	}},
	{"diff", func(t *T) {
		m := t.Open(nil)
		t.OK(m.SetMany(t.Ctx, map[string]any{"same": 1, "changed": 1, "removed": nil}))
		_, err := m.Append(t.Ctx, "one")
		t.OK(err)
		a := t.Mark(m, "")
		d, err := m.Diff(t.Ctx, a.ID, "")
		t.OK(err)
		t.Equal("empty", d.Empty(), true)
		t.OK(m.SetMany(t.Ctx, map[string]any{"same": 1, "changed": []int{2}, "added": nil}))
		_, err = m.Delete(t.Ctx, "removed")
		t.OK(err)
		_, err = m.SetTask(t.Ctx, working.Task{Status: "new"})
		t.OK(err)
		two, err := m.Append(t.Ctx, "two")
		t.OK(err)
		d, err = m.Diff(t.Ctx, a.ID, "")
		t.OK(err)
		t.Equal("diff", []any{d.Added, d.Removed, d.Changed, d.NotesAdded, len(d.NotesRemoved), d.Task[0] == nil,
			d.Task[1].Status},
			[]any{map[string]any{"added": nil}, map[string]any{"removed": nil}, map[string][2]any{"changed": {1.0, []any{2.0}}},
				[]working.Note{two}, 0, true, "new"})
		b := t.Mark(m, "")
		back, err := m.Diff(t.Ctx, b.ID, a.ID)
		t.OK(err)
		t.Equal("back", []any{back.Added, back.Removed, back.NotesRemoved}, []any{d.Removed, d.Added, d.NotesAdded})
	}},
	{"scratchpad over restore, clear and eviction", func(t *T) {
		m := t.Open(&working.Options{MaxNotes: 2})
		note := func(text string) {
			t.Helper()
			_, err := m.Append(t.Ctx, text)
			t.OK(err)
		}
		is := func(want ...string) {
			t.Helper()
			texts, err := m.Scratchpad(t.Ctx)
			t.OK(err)
			t.Equal("scratchpad", texts, append([]string{}, want...))
		}
		note("1")
		note("2")
		a := t.Mark(m, "")
		note("3")
		b := t.Mark(m, "")
		t.Restore(m, a.ID)
		is("1", "2")
		note("4")
		c := t.Mark(m, "")
		_, err := m.ClearScratchpad(t.Ctx)
		t.OK(err)
		is()
		t.Restore(m, b.ID)
		is("2", "3")
		t.Restore(m, c.ID)
		is("2", "4")
		t.Restore(m, a.ID)
		is("1", "2")
		_, err = m.DeleteCheckpoint(t.Ctx, a.ID)
		t.OK(err)
		t.Restore(m, c.ID)
		is("2", "4")
		note("5")
		is("4", "5")
	}},
	{"any order of everything", anyOrder},
}

func errOf[T any](_ T, err error) error { return err }
