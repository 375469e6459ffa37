package workingtest

import (
	"math"
	"sync"
	"time"

	"github.com/varve-db/varve/working"
)

var taskCases = []Case{
	{"none set is not an error", func(t *T) {
		m := t.Open(nil)
		task, set, err := m.Task(t.Ctx)
		t.OK(err)
		t.Equal("task", []any{task, set}, []any{working.Task{}, false})
		status := "busy"
		task, set, err = m.UpdateTask(t.Ctx, working.TaskUpdate{Status: &status})
		t.OK(err)
		t.Equal("task", []any{task, set}, []any{working.Task{}, false})
		existed, err := m.ClearTask(t.Ctx)
		t.OK(err)
		t.Equal("existed", existed, false)
		t.Equal("has task", t.Stats(m).HasTask, false)
	}},
	{"set, read, clear", func(t *T) {
		m := t.Open(nil)
		start := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.FixedZone("", 3600))
		in := working.Task{Description: "d", Status: "s", CurrentStep: 2, TotalSteps: 5, Progress: 40.5, StartedAt: start,
			Extra: map[string]any{"owner": "x", "list": []any{1.0, nil}}}
		_, err := m.SetTask(t.Ctx, in)
		t.OK(err)
		in.Extra["owner"] = "changed"
		got, set, err := m.Task(t.Ctx)
		t.OK(err)
		t.Equal("set", set, true)
		t.Equal("times", []bool{got.StartedAt.Equal(start), got.UpdatedAt.IsZero()}, []bool{true, false})
		want := in
		want.Extra, want.StartedAt, want.UpdatedAt = map[string]any{"owner": "x", "list": []any{1.0, nil}}, got.StartedAt,
			got.UpdatedAt
		t.Equal("task", got, want)
		t.Equal("has task", t.Stats(m).HasTask, true)
		t.Keys(m)
		existed, err := m.ClearTask(t.Ctx)
		t.OK(err)
		t.Equal("existed", existed, true)
		_, set, err = m.Task(t.Ctx)
		t.OK(err)
		t.Equal("set", set, false)
	}},
	{"progress is clamped", func(t *T) {
		m := t.Open(nil)
		for in, want := range map[float64]float64{-5: 0, 0: 0, 55.5: 55.5, 100: 100, 150: 100, math.Inf(1): 100,
			math.Inf(-1): 0} {
			got, err := m.SetTask(t.Ctx, working.Task{Progress: in})
			t.OK(err)
			t.Equal("set", got.Progress, want)
			got, _, err = m.UpdateTask(t.Ctx, working.TaskUpdate{Progress: &in})
			t.OK(err)
			t.Equal("update", got.Progress, want)
		}
		nan, minus := math.NaN(), -1
		for _, u := range []working.TaskUpdate{{Progress: &nan}, {CurrentStep: &minus}, {TotalSteps: &minus},
			{Extra: map[string]any{"status": 1}}, {Extra: map[string]any{"x": math.NaN()}}} {
			_, _, err := m.UpdateTask(t.Ctx, u)
			t.Fails(err, working.ErrInvalid)
		}
	}},
	{"partial updates", func(t *T) {
		m := t.Open(nil)
		first, err := m.SetTask(t.Ctx,
			working.Task{Description: "d", Status: "s", TotalSteps: 3, Extra: map[string]any{"a": 1.0, "b": 2.0}})
		t.OK(err)
		if first.StartedAt.IsZero() {
			t.Error("not started")
		}
		step := 2
		got, set, err := m.UpdateTask(t.Ctx,
			working.TaskUpdate{CurrentStep: &step, Extra: map[string]any{"b": nil, "c": "x"}, Remove: []string{"a", "none"}})
		t.OK(err)
		want := first
		want.CurrentStep, want.Extra, want.UpdatedAt = 2, map[string]any{"b": nil, "c": "x"}, got.UpdatedAt
		t.Equal("task", []any{set, got}, []any{true, want})
		if got.UpdatedAt.Before(first.UpdatedAt) {
			t.Errorf("updated %v, before %v", got.UpdatedAt, first.UpdatedAt)
		}
		again, _, err := m.Task(t.Ctx)
		t.OK(err)
		t.Equal("read", again, got)
	}},
	{"F51 updates of different fields at once all arrive", func(t *T) {
		m := t.Open(nil)
		_, err := m.SetTask(t.Ctx, working.Task{Status: "start"})
		t.OK(err)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for n := range 10 {
					if _, _, err := m.UpdateTask(t.Ctx,
						working.TaskUpdate{Extra: map[string]any{string(rune('a' + i)): float64(n)}}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		got, _, err := m.Task(t.Ctx)
		t.OK(err)
		want := map[string]any{}
		for i := range 8 {
			want[string(rune('a'+i))] = 9.0
		}
		t.Equal("extra", got.Extra, want)
		t.Equal("status", got.Status, "start")
	}},
}
