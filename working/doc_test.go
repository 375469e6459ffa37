package working_test

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/working"
)

// The table of counterparts names every public method and setting of the Python interface, and every
// method of this package that it names exists.
func TestCounterparts(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "# Counterparts")
	for _, name := range []string{"create(", "for_session(", "scope ", "is_using_fallback", "set(", "get(", "delete(", "exists(", "list_keys(", "get_all(", "clear(",
		"set_task_state(", "get_task_state(", "update_task_progress(", "append_scratchpad(", "get_scratchpad(", "get_scratchpad_with_timestamps(", "clear_scratchpad(",
		"create_checkpoint(", "restore_checkpoint(", "list_checkpoints(", "delete_checkpoint(", "is_healthy(", "close(", "get_stats(",
		"default_ttl_seconds", "working_memory_backend", "working_memory_default_ttl_seconds", "working_memory_max_items_per_session"} {
		if !strings.Contains(table, "\t"+name) && !strings.Contains(table, ", "+name) {
			t.Errorf("the table lacks %s", name)
		}
	}
	m := reflect.TypeFor[*working.Memory]()
	for _, word := range strings.FieldsFunc(table, func(r rune) bool { return strings.ContainsRune(" \n\t,(;", r) }) {
		if name, ok := strings.CutPrefix(word, "Memory."); ok {
			if _, ok := m.MethodByName(name); !ok {
				t.Errorf("there is no method %s", word)
			}
		}
	}
}

func TestTaskJSON(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	got, err := json.Marshal(working.Task{Status: "s", Progress: 250, StartedAt: at, UpdatedAt: at, Extra: map[string]any{"owner": "x"}})
	const want = `{"current_step":0,"description":"","owner":"x","progress_percent":100,"started_at":"2026-01-02T03:04:05.000006Z","status":"s","total_steps":0,"updated_at":"2026-01-02T03:04:05.000006Z"}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

func TestScopeKey(t *testing.T) {
	for _, s := range []working.Scope{{}, {Session: "global"}, {Project: "a:b/c", Session: "%{}\n"}, {Project: "p", AgentType: "t", Agent: "ä", Session: " "}, {Agent: "a%2Fb"}} {
		got, err := working.ParseScope(s.Key())
		if err != nil || got != s {
			t.Errorf("%q became %+v, %v; want %+v", s.Key(), got, err, s)
		}
	}
	for _, key := range []string{"", "session:", "session", "x:y", "session:a/project:b", "session:a/session:b", "session:%", "session:%41", "session:%zz", "session:a{", "global:", "project:a//session:b", "session:\xff"} {
		if s, err := working.ParseScope(key); !errors.Is(err, working.ErrInvalid) {
			t.Errorf("%q is %+v, %v", key, s, err)
		}
	}
	if _, err := working.ForSession("", "p", ""); !errors.Is(err, working.ErrInvalid) {
		t.Errorf("a session without an id: %v", err)
	}
	var up []working.Level
	for s, ok := (working.Scope{Project: "p", AgentType: "t", Agent: "i", Session: "s"}), true; ok; s, ok = s.Parent() {
		up = append(up, s.Level())
	}
	if want := []working.Level{working.Session, working.Agent, working.AgentType, working.Project, working.Global}; !reflect.DeepEqual(up, want) {
		t.Errorf("%v, want %v", up, want)
	}
}
