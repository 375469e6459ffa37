package fuzz

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// TestModel does random operations by several handles of several processes, with losses of power, kills
// and reopenings between them, and compares the store with a plain map. No operation is in progress when
// the power is lost, so the map is exact at every step. A failure prints the operations, shrunk, and
// rapid's command for them.
func TestModel(t *testing.T) {
	proofs.OneGoroutine(t)
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine()
		if rapid.Bool().Draw(t, "lacking") {
			m.disk.SetLacks(crash.Lacks{Exchange: true, Link: true, Lease: true, Barrier: true})
		}
		type handle struct {
			st   *varve.Store
			name string
		}
		var open []handle
		is, seen := map[string]string{}, map[string]string{}
		before := map[uint64]map[string]string{} // what was before each commit
		n := 0
		start := func() handle {
			n++
			name := fmt.Sprint("p", n)
			_, o := m.process(name)
			if n%3 == 0 {
				o.CacheBytes = -1
			}
			st, err := varve.Open(ctx, dir, o)
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			if r := st.Admin().OpenReport(); r.Damage != nil || r.Rebuilt != nil {
				t.Fatalf("open: %+v", r)
			}
			open = append(open, handle{st, name})
			return open[len(open)-1]
		}
		any := func(t *rapid.T) handle {
			if len(open) == 0 {
				return start()
			}
			return open[rapid.IntRange(0, len(open)-1).Draw(t, "handle")]
		}
		id := rapid.SampledFrom([]string{"a", "b", "c", "A", "x:y"})
		size := rapid.SampledFrom([]int{1, 40, 5000, 18000})
		value := func(t *rapid.T) string {
			n++
			return content(fmt.Sprintf("w%06d", n), size.Draw(t, "size"))
		}
		drop := func(h handle) { open = slices.DeleteFunc(open, func(o handle) bool { return o == h }) }
		check := func(what string, err error) {
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		defer func() {
			for _, h := range open {
				h.st.Close()
			}
		}()
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, v := id.Draw(t, "id"), value(t)
				_, err := any(t).st.Put(ctx, varve.Memory{ID: k, Content: v})
				check("put", err)
				is[k] = v
			},
			"put absent": func(t *rapid.T) {
				k, v := id.Draw(t, "id"), value(t)
				_, err := any(t).st.Put(ctx, varve.Memory{ID: k, Content: v}, varve.IfAbsent())
				if _, there := is[k]; there != errors.Is(err, varve.ErrConflict) || !there && err != nil {
					t.Fatalf("put if absent: there %v, %v", there, err)
				}
				if err == nil {
					is[k] = v
				}
			},
			"replace": func(t *rapid.T) {
				k, v := id.Draw(t, "id"), value(t)
				_, err := any(t).st.Update(ctx, k, func(m *varve.Memory) error {
					if m.Content != is[k] {
						t.Fatalf("update of %q begins with %.20q, not %.20q", k, m.Content, is[k])
					}
					m.Content = v
					return nil
				})
				if _, there := is[k]; there != (err == nil) || !there && !errors.Is(err, varve.ErrNotFound) {
					t.Fatalf("update: there %v, %v", there, err)
				} else if there {
					is[k] = v
				}
			},
			"delete": func(t *rapid.T) {
				k := id.Draw(t, "id")
				err := any(t).st.Delete(ctx, k)
				if _, there := is[k]; there != (err == nil) || !there && !errors.Is(err, varve.ErrNotFound) {
					t.Fatalf("delete: there %v, %v", there, err)
				}
				delete(is, k)
			},
			"batch": func(t *rapid.T) {
				h, next := any(t), maps.Clone(is)
				b := new(varve.Batch)
				for _, k := range rapid.SliceOfNDistinct(id, 1, 4, func(s string) string { return s }).Draw(t, "ids") {
					if _, there := next[k]; there && rapid.Bool().Draw(t, "delete") {
						b.Delete(k)
						delete(next, k)
						continue
					}
					v := value(t)
					b.Put(varve.Memory{ID: k, Content: v})
					next[k] = v
				}
				if err := h.st.Apply(ctx, b); errors.Is(err, varve.ErrBatchTooLarge) {
					return
				} else if err != nil {
					t.Fatalf("batch: %v", err)
				}
				is = next
			},
			"undo": func(t *rapid.T) {
				h := any(t)
				at := newestCommit(t, h.st)
				if at == 0 {
					t.Skip("nothing to undo")
				}
				_, err := h.st.Undo(ctx, varve.UndoOptions{Position: at})
				check("undo", err)
				is = maps.Clone(before[at])
			},
			"flush":   func(t *rapid.T) { check("flush", any(t).st.Flush(ctx)) },
			"compact": func(t *rapid.T) { check("compact", any(t).st.Admin().Compact(ctx)) },
			"open": func(t *rapid.T) {
				if len(open) > 3 {
					t.Skip("four are enough")
				}
				start()
			},
			"close": func(t *rapid.T) {
				h := any(t)
				drop(h)
				check("close", h.st.Close())
			},
			"kill": func(t *rapid.T) {
				h := any(t)
				drop(h)
				m.disk.Kill(m.views[h.name])
				h.st.Close() // what a dead process does has no effect
			},
			"lose power": func(t *rapid.T) {
				p := rapid.SampledFrom(crash.Patterns()).Draw(t, "pattern")
				next := m.future(p, uint64(n))
				for _, h := range open {
					m.disk.Kill(m.views[h.name])
					h.st.Close()
				}
				m, open = next, nil
			},
			"": func(t *rapid.T) {
				h := any(t)
				if at := newestCommit(t, h.st); at != 0 && before[at] == nil {
					before[at] = seen
				}
				seen = maps.Clone(is)
				for _, k := range []string{"a", "b", "c", "A", "x:y"} {
					got, err := h.st.Get(ctx, k)
					want, there := is[k]
					if there != (err == nil) || !there && !errors.Is(err, varve.ErrNotFound) || there && got.Content != want {
						t.Fatalf("%s: %q is %.20q (%v), not %.20q", h.name, k, got.Content, err, want)
					}
				}
				var listed []string
				for m, err := range h.st.Memories(ctx) {
					check("list", err)
					listed = append(listed, m.ID)
				}
				if want := slices.Sorted(maps.Keys(is)); !slices.Equal(listed, want) {
					t.Fatalf("%s lists %q, not %q", h.name, listed, want)
				}
			},
		})
	})
}

// newestCommit returns the position of the newest commit, 0 if there is none.
func newestCommit(t *rapid.T, st *varve.Store) uint64 {
	for c, err := range st.Log(ctx, varve.LogOptions{}) {
		if err != nil {
			t.Fatalf("log: %v", err)
		}
		return c.LSN
	}
	return 0
}
