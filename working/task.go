package working

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/jsondoc"
)

// Task is the state of the agent's task. In JSON, the members of Extra are on the same level as the other members.
type Task struct {
	Description string
	Status      string
	CurrentStep int
	TotalSteps  int
	Progress    float64        // percent; clamped to 0..100 when written
	StartedAt   time.Time      // time at which the task started; if zero, SetTask sets it to the present time
	UpdatedAt   time.Time      // time of the last change, set by the home's clock
	Extra       map[string]any // other members that the user adds
}

// TaskUpdate describes changes of a Task. Fields that are nil change nothing.
type TaskUpdate struct {
	Description *string
	Status      *string
	CurrentStep *int
	TotalSteps  *int
	Progress    *float64
	Extra       map[string]any // members to set in Extra; the others are kept
	Remove      []string       // members to remove from Extra
}

var taskMembers = []string{"description", "status", "current_step", "total_steps", "progress_percent", "started_at",
	"updated_at"}

// SetTask replaces the state of the task.
func (m *Memory) SetTask(ctx context.Context, t Task) (Task, error) {
	if t.StartedAt.IsZero() {
		t.StartedAt = m.clock.Wall()
	}
	raw, err := encodeTask(&t)
	if err != nil {
		return Task{}, err
	}
	it, err := m.one(ctx, OpPut{Items: []PutItem{{Name: TaskName, Value: raw, TTL: Forever}}})
	if err != nil {
		return Task{}, err
	}
	it.Value = raw
	return m.numbers.task(it)
}

// Task returns the state of the task, or false if none is set.
func (m *Memory) Task(ctx context.Context) (Task, bool, error) {
	it, err := m.one(ctx, OpGet{Names: []string{TaskName}})
	if err != nil || !it.Found {
		return Task{}, false, err
	}
	t, err := m.numbers.task(it)
	return t, err == nil, err
}

// UpdateTask atomically changes some fields of the task state, and returns the new state. If no task state is set, it
// returns false and no error.
func (m *Memory) UpdateTask(ctx context.Context, u TaskUpdate) (Task, bool, error) {
	it, err := m.changeItem(ctx, TaskName, lifetime{ttl: Forever}, func(now []byte, found bool) ([]byte, error) {
		if !found {
			return nil, ErrSkip
		}
		t, err := asWritten.task(Item{Name: TaskName, Value: now})
		if err != nil {
			return nil, err
		}
		u.apply(&t)
		return encodeTask(&t)
	})
	if err != nil || !it.Found {
		return Task{}, false, err
	}
	t, err := m.numbers.task(it)
	return t, err == nil, err
}

// ClearTask removes the state of the task, and reports whether one was set.
func (m *Memory) ClearTask(ctx context.Context) (bool, error) {
	it, err := m.one(ctx, OpDelete{Names: []string{TaskName}})
	return it.Found, err
}

func (u *TaskUpdate) apply(t *Task) {
	assign(&t.Description, u.Description)
	assign(&t.Status, u.Status)
	assign(&t.CurrentStep, u.CurrentStep)
	assign(&t.TotalSteps, u.TotalSteps)
	assign(&t.Progress, u.Progress)
	for _, name := range u.Remove {
		delete(t.Extra, name)
	}
	if len(u.Extra) > 0 && t.Extra == nil {
		t.Extra = map[string]any{}
	}
	maps.Copy(t.Extra, u.Extra)
}

func assign[T any](to *T, v *T) {
	if v != nil {
		*to = *v
	}
}

// MarshalJSON encodes the task, with the members of Extra on the same level as the other members.
func (t Task) MarshalJSON() ([]byte, error) {
	all, err := t.members()
	if err != nil {
		return nil, err
	}
	if !t.UpdatedAt.IsZero() {
		all["updated_at"] = taskTime(t.UpdatedAt)
	}
	return encodeValue("task", all)
}

func taskTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

func encodeTask(t *Task) ([]byte, error) {
	all, err := t.members()
	if err != nil {
		return nil, err
	}
	return encodeValue("task", all)
}

func (t *Task) members() (map[string]any, error) {
	bad := func(field string, v any, why string) (map[string]any, error) {
		return nil, &errs.FieldError{Field: "task." + field, Value: fmt.Sprint(v), Err: errors.New(why)}
	}
	switch {
	case math.IsNaN(t.Progress):
		return bad("progress_percent", t.Progress, "not a number")
	case t.CurrentStep < 0:
		return bad("current_step", t.CurrentStep, "the step must not be negative")
	case t.TotalSteps < 0:
		return bad("total_steps", t.TotalSteps, "the number of steps must not be negative")
	}
	all := map[string]any{"description": t.Description, "status": t.Status, "current_step": t.CurrentStep,
		"total_steps":      t.TotalSteps,
		"progress_percent": min(100, max(0, t.Progress)), "started_at": taskTime(t.StartedAt)}
	for name, v := range t.Extra {
		if slices.Contains(taskMembers, name) {
			return bad("extra", name, "Extra must not have the name of another field of the task")
		}
		all[name] = v
	}
	return all, nil
}

func (d decoder) task(item Item) (Task, error) {
	o, err := jsondoc.Parse(item.Value, 0)
	if err != nil {
		return Task{}, notJSON(TaskName, err)
	}
	t := Task{UpdatedAt: item.Updated}
	fields := map[string]any{"description": &t.Description, "status": &t.Status, "current_step": &t.CurrentStep,
		"total_steps": &t.TotalSteps, "progress_percent": &t.Progress}
	for _, member := range o.Members() {
		switch into, known := fields[member.Name]; {
		case known:
			err = json.Unmarshal(member.Value, into)
		case member.Name == "started_at":
			t.StartedAt, err = jsondoc.DecodeTime(member.Value, nil)
		case member.Name == "updated_at": // the home sets it
		default:
			if t.Extra == nil {
				t.Extra = map[string]any{}
			}
			t.Extra[member.Name], err = d.text(member.Value)
		}
		if err != nil {
			return Task{}, notJSON(TaskName, err)
		}
	}
	return t, nil
}
