package mcpserver

import (
	"strings"
	"testing"
)

func TestWorking(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), nil)
	offered, err := connect(t, st, Options{}, nil).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range offered.Tools {
		if strings.HasPrefix(tool.Name, "working_") {
			t.Errorf("%s is offered though nobody asked for it", tool.Name)
		}
	}
	c := connect(t, st, Options{Groups: []string{Working}}, nil)
	type values struct{ Values []workingValue }
	type set struct{ Set bool }
	for _, args := range []string{
		`{"session":"s","key":"draft","value":"to be done","ttl":3600}`,
		`{"session":"s","key":"n","value":"[1, 2.10]","json":true}`,
		`{"session":"s","project":"p","key":"n","value":"another scope"}`,
	} {
		if !as[set](t, c, "working_set", args).Set {
			t.Errorf("%s: not set", args)
		}
	}
	if as[set](t, c, "working_set", `{"session":"s","key":"n","value":"x","if_absent":true}`).Set {
		t.Error("it was there, and was replaced")
	}
	got := as[values](t, c, "working_get", `{"session":"s"}`).Values
	if len(got) != 2 || got[0].Value != "to be done" || got[0].JSON || got[0].Expires < 3000 || got[1].Value != "[1,2.10]" || !got[1].JSON {
		t.Errorf("%+v", got)
	}
	if got := as[values](t, c, "working_get", `{"session":"s","keys":["n","gone"]}`).Values; len(got) != 1 {
		t.Errorf("%+v", got)
	}
	if task := as[workingTask](t, c, "working_task", `{"session":"s"}`); task.Set {
		t.Errorf("%+v", task)
	}
	as[workingTask](t, c, "working_task", `{"session":"s","description":"d","steps":3}`)
	if task := as[workingTask](t, c, "working_task", `{"session":"s","step":1,"progress":30}`); !task.Set || task.Description != "d" || task.Steps != 3 || task.Step != 1 || task.Progress != 30 {
		t.Errorf("%+v", task)
	}
	as[workingNote](t, c, "working_note", `{"session":"s","text":"one"}`)
	as[workingNote](t, c, "working_note", `{"session":"s","text":"two"}`)
	if notes := as[struct{ Notes []workingNote }](t, c, "working_notes", `{"session":"s","last":1}`).Notes; len(notes) != 1 || notes[0].Text != "two" {
		t.Errorf("%+v", notes)
	}
	cp := as[workingCheckpoint](t, c, "working_checkpoint", `{"session":"s","description":"before"}`)
	if cp.Keys != 2 || cp.Notes != 2 {
		t.Errorf("%+v", cp)
	}
	as[struct{ Deleted, Missing []string }](t, c, "working_delete", `{"session":"s","keys":["n","draft","gone"]}`)
	undo := as[workingCheckpoint](t, c, "working_restore", `{"session":"s","id":"`+cp.ID+`"}`)
	if got := as[values](t, c, "working_get", `{"session":"s","pattern":"d*"}`).Values; len(got) != 1 {
		t.Errorf("%+v", got)
	}
	list := as[struct{ Checkpoints []workingCheckpoint }](t, c, "working_checkpoints", `{"session":"s"}`).Checkpoints
	if len(list) != 2 || list[0].ID != cp.ID || list[1].ID != undo.ID {
		t.Errorf("%+v", list)
	}
	for tool, args := range map[string]string{
		"working_set":     `{"session":"s","key":"_k","value":""}`,
		"working_get":     `{"session":"s","pattern":"["}`,
		"working_restore": `{"session":"s","id":"nonsense"}`,
		"working_note":    `{"session":"","text":"x"}`,
	} {
		if text, _, isError := c.call(tool, args); !isError {
			t.Errorf("%s %s: %s", tool, args, text)
		}
	}
}
