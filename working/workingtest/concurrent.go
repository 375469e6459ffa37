package workingtest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/varve-db/varve/working"
)

// Memories opens the scope that the cases use, and returns the open working memory. If the fixture has Again, it also
// opens the scope through a second home, as another process would, and returns both.
func (t *T) Memories(opts *working.Options) []*working.Memory {
	t.Helper()
	all := []*working.Memory{t.Open(opts)}
	if t.Again != nil {
		all = append(all, t.OpenOn(t.Again(t.T), session, opts))
	}
	return all
}

func runWorkers(all []*working.Memory, workers, times int, f func(m *working.Memory, id, i int)) {
	var wg sync.WaitGroup
	for k, m := range all {
		for w := range workers {
			wg.Go(func() {
				for i := range times {
					f(m, k*workers+w, i)
				}
			})
		}
	}
	wg.Wait()
}

var concurrentCases = []Case{
	{"increments all arrive", func(t *T) {
		all := t.Memories(nil)
		runWorkers(all, 4, 50, func(m *working.Memory, _, _ int) {
			if _, err := m.Increment(t.Ctx, "n", 1); err != nil {
				t.Error(err)
			}
		})
		t.Has(all[0], "n", float64(len(all)*200))
	}},
	{"updates all arrive", func(t *T) {
		all := t.Memories(nil)
		runWorkers(all, 4, 20, func(m *working.Memory, _, _ int) {
			_, err := m.Update(t.Ctx, "n", func(v any, _ bool) (any, error) {
				n, _ := v.(float64)
				return n + 1, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		t.Has(all[0], "n", float64(len(all)*80))
	}},
	{"one of many sets what is absent", func(t *T) {
		all := t.Memories(nil)
		var won [20]atomic.Int32
		runWorkers(all, 4, len(won), func(m *working.Memory, id, i int) {
			ok, err := m.SetIfAbsent(t.Ctx, fmt.Sprint("k", i), id)
			if err != nil {
				t.Error(err)
			}
			if ok {
				won[i].Add(1)
			}
		})
		for i := range won {
			if n := won[i].Load(); n != 1 {
				t.Errorf("key k%d was set by %d callers, want 1", i, n)
			}
		}
	}},
	{"compare and set lets one through", func(t *T) {
		all := t.Memories(nil)
		t.Set(all[0], "turn", 0)
		var won atomic.Int32
		runWorkers(all, 4, 30, func(m *working.Memory, _, i int) {
			ok, err := m.CompareAndSet(t.Ctx, "turn", i, i+1)
			if err != nil {
				t.Error(err)
			}
			if ok {
				won.Add(1)
			}
		})
		v, _, err := all[0].Get(t.Ctx, "turn")
		t.OK(err)
		t.Equal("turns", float64(won.Load()), v)
	}},
	{"the capacity holds", func(t *T) {
		for _, evict := range []bool{false, true} {
			all := t.Memories(&working.Options{MaxKeys: 5, Evict: evict})
			runWorkers(all, 4, 25, func(m *working.Memory, id, i int) {
				if err := m.Set(t.Ctx, fmt.Sprint("k", id, "-", i), i); err != nil && (evict || !errors.Is(err, working.ErrLimit)) {
					t.Error(err)
				}
				if s, err := m.Stats(t.Ctx); err != nil || s.UserKeys > 5 {
					t.Errorf("%d keys, %v", s.UserKeys, err)
				}
			})
			t.Equal("keys", t.Stats(all[0]).UserKeys, 5)
		}
	}},
	{"nobody sees half of a write or of a restore", func(t *T) {
		all := t.Memories(nil)
		m := all[0]
		t.OK(m.SetMany(t.Ctx, map[string]any{"a": 0, "b": 0, "c": 0}))
		cp := t.Mark(m, "")
		runWorkers(all, 4, 25, func(m *working.Memory, id, i int) {
			switch id % 4 {
			case 0:
				if err := m.SetMany(t.Ctx, map[string]any{"a": i, "b": i, "c": i}); err != nil {
					t.Error(err)
				}
			case 1:
				if _, err := m.Restore(t.Ctx, cp.ID); err != nil {
					t.Error(err)
				}
			default:
				got, err := m.GetMany(t.Ctx, "a", "b", "c")
				if err != nil || len(got) != 3 || got["a"] != got["b"] || got["b"] != got["c"] {
					t.Errorf("%v, %v", got, err)
				}
			}
		})
		t.Holds(m, cp.ID, map[string]any{"a": 0.0, "b": 0.0, "c": 0.0})
	}},
	{"everything at once", func(t *T) {
		all := t.Memories(&working.Options{MaxKeys: 20, Evict: true, MaxNotes: 10, Checkpoints: 3})
		runWorkers(all, 4, 25, func(m *working.Memory, id, i int) {
			var err error
			switch (id + i) % 10 {
			case 0, 1:
				err = m.Set(t.Ctx, fmt.Sprint("k", i), i)
			case 2:
				_, err = m.Append(t.Ctx, "x")
			case 3:
				_, err = m.Checkpoint(t.Ctx, "")
			case 4:
				var list []working.CheckpointInfo
				if list, err = m.Checkpoints(t.Ctx); err == nil && len(list) > 0 {
					if _, err = m.Restore(t.Ctx, list[0].ID); errors.Is(err, working.ErrNotFound) {
						err = nil // another goroutine's retention was faster
					}
				}
			case 5:
				_, err = m.All(t.Ctx)
			case 6:
				_, err = m.Clear(t.Ctx)
			case 7:
				_, err = m.Snapshot(t.Ctx)
			case 8:
				_, err = m.Drop(t.Ctx)
			case 9:
				_, err = m.SetTask(t.Ctx, working.Task{})
			}
			if err != nil {
				t.Error(err)
			}
		})
		s := t.Stats(all[0])
		if s.UserKeys > 20 || s.Notes > 10 {
			t.Errorf("%+v", s)
		}
	}},
}
