package workingtest

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/varve-db/varve/working"
)

var seed = flag.Uint64("working.seed", 0, "replay the case \"any order of everything\" with this seed")

// model is the expected content of a scope in a simple form, in which each checkpoint is a complete copy.
type model struct {
	now   time.Duration
	state modelState
	marks []modelMark
}

type modelState struct {
	values map[string]modelValue
	task   string // status of the task, "" if none is set
	notes  []string
}

type modelValue struct {
	v    float64
	over time.Duration // 0: never
}

type modelMark struct {
	id    string
	at    time.Duration
	state modelState
}

func (s modelState) clone() modelState {
	return modelState{values: maps.Clone(s.values), task: s.task, notes: slices.Clone(s.notes)}
}

func (s modelState) at(now time.Duration) map[string]any {
	all := map[string]any{}
	for key, v := range s.values {
		if v.over == 0 || now < v.over {
			all[key] = v.v
		}
	}
	return all
}

// anyOrder applies random operations to a scope and to a model of the scope. After each operation it compares the two,
// including all checkpoints. Lifetimes are whole minutes, so that they do not end by the real clock of a server while
// the case runs.
func anyOrder(t *T) {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay: go test -run '%s' -working.seed %d", t.Name(), s)
		}
	})
	r := rand.New(rand.NewPCG(s, 0))
	const notes, keep = 3, 6
	m := t.Open(&working.Options{MaxNotes: notes, Checkpoints: keep})
	is := &model{state: modelState{values: map[string]modelValue{}}}
	for i := range 300 {
		what := is.step(t, m, r, i, notes, keep)
		is.compare(t, m, fmt.Sprintf("step %d, %s", i, what))
		if t.Failed() {
			return
		}
	}
}

func (want *model) step(t *T, m *working.Memory, r *rand.Rand, i, notes, keep int) string {
	key := string(rune('a' + r.IntN(8)))
	switch n := r.IntN(100); {
	case n < 25:
		t.Set(m, key, i)
		want.state.values[key] = modelValue{v: float64(i)}
		return "set " + key
	case n < 40:
		d := time.Duration(1+r.IntN(90)) * time.Minute
		t.Set(m, key, i, working.Expires(d))
		want.state.values[key] = modelValue{float64(i), want.now + d}
		return fmt.Sprint("set ", key, " for ", d)
	case n < 50:
		_, err := m.Delete(t.Ctx, key)
		t.OK(err)
		delete(want.state.values, key)
		return "delete " + key
	case n < 60:
		d := time.Duration(r.IntN(30))*time.Minute + 30*time.Second
		t.Advance(d)
		want.now += d
		return fmt.Sprint("advance ", d)
	case n < 70:
		_, err := m.Append(t.Ctx, fmt.Sprint(i))
		t.OK(err)
		want.state.notes = append(want.state.notes, fmt.Sprint(i))
		want.state.notes = want.state.notes[max(0, len(want.state.notes)-notes):]
		return "append"
	case n < 73:
		_, err := m.SetTask(t.Ctx, working.Task{Status: fmt.Sprint("s", i)})
		t.OK(err)
		want.state.task = fmt.Sprint("s", i)
		return "task"
	case n < 75:
		_, err := m.ClearTask(t.Ctx)
		t.OK(err)
		want.state.task = ""
		return "clear task"
	case n < 77:
		_, err := m.Clear(t.Ctx)
		t.OK(err)
		want.state.values = map[string]modelValue{}
		return "clear"
	case n < 79:
		_, err := m.ClearScratchpad(t.Ctx)
		t.OK(err)
		want.state.notes = nil
		return "clear scratchpad"
	case n < 88 || len(want.marks) == 0:
		want.mark(t.Mark(m, "").ID, keep, "")
		return "checkpoint"
	case n < 94:
		at := r.IntN(len(want.marks))
		was := want.marks[at]
		want.mark(t.Restore(m, was.id).ID, keep, was.id)
		want.state = was.state.clone()
		for key, v := range want.state.values {
			if v.over != 0 && v.over <= was.at {
				delete(want.state.values, key)
			} else if v.over != 0 {
				v.over += want.now - was.at
				want.state.values[key] = v
			}
		}
		return fmt.Sprint("restore ", at)
	default:
		at := r.IntN(len(want.marks))
		_, err := m.DeleteCheckpoint(t.Ctx, want.marks[at].id)
		t.OK(err)
		want.marks = slices.Delete(want.marks, at, at+1)
		return fmt.Sprint("delete checkpoint ", at)
	}
}

func (want *model) mark(id string, keep int, spare string) {
	want.marks = append(want.marks, modelMark{id, want.now, want.state.clone()})
	for i := 0; len(want.marks) > keep && i < len(want.marks)-1; {
		if want.marks[i].id == spare {
			i++
			continue
		}
		want.marks = slices.Delete(want.marks, i, i+1)
	}
}

func (want *model) compare(t *T, m *working.Memory, label string) {
	t.Helper()
	now, err := m.Snapshot(t.Ctx)
	t.OK(err)
	checkState(t, label, now, want.state, want.now)
	ids := []string{}
	for i, mark := range want.marks {
		ids = append(ids, mark.id)
		s, err := m.LoadCheckpoint(t.Ctx, mark.id)
		t.OK(err)
		checkState(t, fmt.Sprintf("%s: checkpoint %d", label, i), s, mark.state, mark.at)
	}
	t.Equal(label+": checkpoints", t.Marks(m), ids)
	c := t.Stats(m)
	t.Equal(label+": counts", []int{c.UserKeys, c.Notes, c.Checkpoints},
		[]int{len(want.state.at(want.now)), len(want.state.notes), len(ids)})
}

func checkState(t *T, label string, got *working.Snapshot, want modelState, now time.Duration) {
	t.Helper()
	t.Equal(label+": values", got.Values, want.at(now))
	for key, d := range got.TTL {
		t.About(label+": lifetime of "+key, d, want.values[key].over-now)
	}
	status := ""
	if got.Task != nil {
		status = got.Task.Status
	}
	t.Equal(label+": task", status, want.task)
	texts := []string{}
	for _, n := range got.Notes {
		texts = append(texts, n.Text)
	}
	t.Equal(label+": scratchpad", texts, append([]string{}, want.notes...))
}
