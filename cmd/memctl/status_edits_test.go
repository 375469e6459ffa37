package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/upkeep"
)

// status names the edits that cannot be adopted, though nobody watches and nobody was
// told, and changes nothing; a file that is only touched, or can be taken over, is none.
func TestStatusOfRefusedEdits(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	for i := range 7 {
		c.ok("put", fmt.Sprint("memory ", i), "--id", fmt.Sprint("m", i))
	}
	path := func(id string) string { return filepath.Join(c.store(), "memories", id+".json") }
	text := func(id string) string {
		b, err := os.ReadFile(path(id))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	writeFile(t, path("m5"), strings.Replace(text("m5"), "memory 5", "by hand", 1))
	writeFile(t, path("m6"), text("m6"))
	if out := c.ok("status"); !strings.Contains(out, "none known") {
		t.Errorf("of what can be taken over: %s", out)
	}
	var marked []string
	for i := range 4 {
		id := fmt.Sprint("m", i)
		marked = append(marked, "<<<<<<< HEAD\n"+text(id))
		writeFile(t, path(id), marked[i])
	}
	writeFile(t, path("copy"), text("m4"))
	code, out, _ := c.run("", "status", "--json")
	var s upkeep.State
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != cli.CodeDamage {
		t.Fatalf("exit code %d, %s, %v", code, out, err)
	}
	if s.Refused == nil || s.Refused.Count != 5 || !s.Refused.Complete || len(s.Refused.Files) != 3 || s.Refused.Files[0].Path != "memories/copy.json" && s.Refused.Files[0].Path != "memories/m0.json" {
		t.Errorf("%+v", s.Refused)
	}
	if len(s.Problems) != 4 || !strings.Contains(s.Problems[3], "2 more") || s.Next != "memctl verify" {
		t.Errorf("%q, next %q", s.Problems, s.Next)
	}
	for i, was := range marked {
		if text(fmt.Sprint("m", i)) != was {
			t.Errorf("m%d was touched", i)
		}
	}
}

// TestStatusOfNotesOnly verifies that status recommends the list of notes for a store without memories.
func TestStatusOfNotesOnly(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	next := func() string {
		t.Helper()
		var s upkeep.State
		if err := json.Unmarshal([]byte(c.ok("status", "--json")), &s); err != nil {
			t.Fatal(err)
		}
		return s.Next
	}
	if code, _, errOut := c.run("text", "note", "write", "a.md"); code != 0 {
		t.Fatal(errOut)
	}
	if got := next(); got != "memctl note ls" {
		t.Errorf("with a note only: %q", got)
	}
	c.ok("put", "a memory", "--id", "m")
	if got := next(); got != "memctl list" {
		t.Errorf("with a memory and a note: %q", got)
	}
}
