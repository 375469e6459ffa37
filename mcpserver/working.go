package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/project"
	"github.com/varve-db/varve/working"
)

// workingCall is a call of a tool of the group working, with the working memory that it uses.
type workingCall struct {
	m    *working.Memory
	args args
}

// working opens the working memory that the arguments name, calls f with it, and returns the result of f as the
// answer. If the scope does not exist, it is created.
func (s *server) working(ctx context.Context, a args,
	f func(ctx context.Context, w *workingCall) (any, error)) (*answer, error) {
	within, err := workingProject(ctx, a.text("project"))
	if err != nil {
		return nil, err
	}
	scope, err := working.ForSession(a.text("session"), within, a.text("agent"))
	if err != nil {
		return nil, err
	}
	m, err := s.st.Working().Open(ctx, scope, &working.Options{AsWritten: true})
	if err != nil {
		return nil, err
	}
	v, err := f(ctx, &workingCall{m, a})
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	structured, err := json.Marshal(v)
	return &answer{text: ready(text), structured: ready(structured)}, err
}

// workingProject returns the project to which a scope of working memory belongs. given is the project name in a call.
// If the client has a project, the result is within this project, so that no name in a call can reach the scopes of
// another project.
func workingProject(ctx context.Context, given string) (string, error) {
	var of Project
	if c, ok := ctx.Value(callerKey{}).(*caller); ok {
		of = c.of()
	}
	switch first, _, _ := strings.Cut(given, "/"); {
	case project.IsID(first):
		return "", fmt.Errorf("project: %q is the id of a project: omit it", clipped(given))
	case of.ID == "" || given == "":
		return of.ID + given, nil
	}
	return of.ID + "/" + given, nil
}

func (w *workingCall) set(ctx context.Context) (any, error) {
	var v any = w.args.text("value")
	if w.args.flag("json") {
		if err := within([]byte(w.args.text("value"))); err != nil {
			return nil, fmt.Errorf("the value is %w", err)
		}
		d := json.NewDecoder(strings.NewReader(w.args.text("value")))
		d.UseNumber()
		if err := d.Decode(&v); err != nil || d.More() {
			return nil, fmt.Errorf("the value is not one JSON text: %v", err)
		}
	}
	var opts []working.SetOption
	if _, ok := w.args["ttl"]; ok {
		opts = append(opts, working.Expires(time.Duration(w.args.number("ttl", 0))*time.Second))
	}
	done, err := true, error(nil)
	if w.args.flag("if_absent") {
		done, err = w.m.SetIfAbsent(ctx, w.args.text("key"), v, opts...)
	} else {
		err = w.m.Set(ctx, w.args.text("key"), v, opts...)
	}
	return map[string]any{"set": done}, err
}

// workingValue is a value of working memory in an answer.
type workingValue struct {
	Key     string  `json:"key"`
	Value   string  `json:"value"`
	JSON    bool    `json:"json"`
	Expires float64 `json:"expires_in,omitempty"`
}

func (w *workingCall) get(ctx context.Context) (any, error) {
	keys := w.args.texts("keys")
	pattern := w.args.text("pattern")
	if pattern == "" {
		pattern = "*"
	}
	if _, err := working.Match(pattern, ""); err != nil {
		return nil, err
	}
	now, err := w.m.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	all := []workingValue{}
	for key, value := range now.Values {
		if fits, _ := working.Match(pattern, key); !fits || len(keys) > 0 && !slices.Contains(keys, key) {
			continue
		}
		v := workingValue{Key: key}
		if text, ok := value.(string); ok {
			v.Value = text
		} else {
			raw, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			v.Value, v.JSON = string(raw), true
		}
		if left, ok := now.TTL[key]; ok {
			v.Expires = left.Seconds()
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b workingValue) int { return strings.Compare(a.Key, b.Key) })
	return map[string]any{"values": all}, nil
}

func (w *workingCall) delete(ctx context.Context) (any, error) {
	deleted, missing := []string{}, []string{}
	for _, key := range w.args.texts("keys") {
		was, err := w.m.Delete(ctx, key)
		if err != nil {
			return nil, err
		}
		if was {
			deleted = append(deleted, key)
		} else {
			missing = append(missing, key)
		}
	}
	return map[string]any{"deleted": deleted, "missing": missing}, nil
}

// workingTask is the state of the task in an answer.
type workingTask struct {
	Set         bool    `json:"set"`
	Description string  `json:"description"`
	Status      string  `json:"status"`
	Step        int     `json:"step"`
	Steps       int     `json:"steps"`
	Progress    float64 `json:"progress"`
}

func (w *workingCall) task(ctx context.Context) (any, error) {
	var u working.TaskUpdate
	changes := false
	text := func(name string, to **string) {
		if v, ok := w.args[name].(string); ok {
			*to, changes = &v, true
		}
	}
	number := func(name string) (int, bool) {
		_, ok := w.args[name]
		changes = changes || ok
		return w.args.number(name, 0), ok
	}
	text("description", &u.Description)
	text("status", &u.Status)
	if n, ok := number("step"); ok {
		u.CurrentStep = &n
	}
	if n, ok := number("steps"); ok {
		u.TotalSteps = &n
	}
	if n, ok := number("progress"); ok {
		f := float64(n)
		u.Progress = &f
	}
	t, set, err := w.m.Task(ctx)
	if err == nil && changes {
		if set {
			t, set, err = w.m.UpdateTask(ctx, u)
		}
		if err == nil && !set {
			t, err = w.m.SetTask(ctx, working.Task{Description: w.args.text("description"), Status: w.args.text("status"),
				CurrentStep: w.args.number("step", 0), TotalSteps: w.args.number("steps", 0),
				Progress: float64(w.args.number("progress", 0))})
			set = err == nil
		}
	}
	return workingTask{set, t.Description, t.Status, t.CurrentStep, t.TotalSteps, t.Progress}, err
}

// workingNote is an entry of the scratchpad in an answer.
type workingNote struct {
	Seq     uint64    `json:"seq"`
	Text    string    `json:"text"`
	Written time.Time `json:"written"`
}

func (w *workingCall) note(ctx context.Context) (any, error) {
	n, err := w.m.Append(ctx, w.args.text("text"))
	return workingNote{n.Seq, n.Text, n.Time}, err
}

func (w *workingCall) notes(ctx context.Context) (any, error) {
	list, err := w.m.Notes(ctx, w.args.number("last", 50))
	all := make([]workingNote, len(list))
	for i, n := range list {
		all[i] = workingNote{n.Seq, n.Text, n.Time}
	}
	return map[string]any{"notes": all}, err
}

// workingCheckpoint is a checkpoint in an answer.
type workingCheckpoint struct {
	ID          string    `json:"id"`
	Description string    `json:"description"`
	Written     time.Time `json:"written"`
	Keys        int       `json:"keys"`
	Notes       int       `json:"notes"`
}

func shownCheckpoint(c *working.CheckpointInfo) workingCheckpoint {
	return workingCheckpoint{c.ID, c.Description, c.Created, c.Keys, c.Notes}
}

func (w *workingCall) checkpoint(ctx context.Context) (any, error) {
	c, err := w.m.Checkpoint(ctx, w.args.text("description"))
	return shownCheckpoint(&c), err
}

func (w *workingCall) checkpoints(ctx context.Context) (any, error) {
	list, err := w.m.Checkpoints(ctx)
	all := make([]workingCheckpoint, len(list))
	for i := range list {
		all[i] = shownCheckpoint(&list[i])
	}
	return map[string]any{"checkpoints": all}, err
}

func (w *workingCall) restore(ctx context.Context) (any, error) {
	c, err := w.m.Restore(ctx, w.args.text("id"))
	return shownCheckpoint(&c), err
}
