package places

import (
	"path"
	"slices"
	"testing"
)

// TestList verifies that each place is listed once, and after the folder that contains it if that folder is listed:
// folders are created and checked in this order.
func TestList(t *testing.T) {
	seen := map[string]bool{".": true}
	for _, p := range list {
		if seen[p.path] {
			t.Errorf("%s is listed twice", p.path)
		}
		if p.use&folder != 0 && !seen[path.Dir(p.path)] {
			t.Errorf("%s comes before its folder", p.path)
		}
		seen[p.path] = true
	}
	for _, p := range list {
		if dir := path.Dir(p.path); dir != "." && !isPlace(dir, folder) {
			t.Errorf("%s is in %s, which is not listed as a folder", p.path, dir)
		}
	}
}

// TestTop verifies the list of the parts of a store, and that of the other files that a store opens by name.
func TestTop(t *testing.T) {
	files := []string{".gitignore", "config.json", "checkpoint", "memory_index.json", "memory_index.delta.json"}
	if got := TopFiles(); !slices.Equal(got, files) {
		t.Error(got)
	}
	folders := []string{"assemblies", "backups", "memories", "notes", "quarantine", "tmp", "vector_index", "view_index",
		"wal", "working"}
	if got := TopFolders(); !slices.Equal(got, folders) {
		t.Error(got)
	}
	for rel, want := range map[string][2]bool{ // of the machine; beside segments
		"config.json":        {},
		"memories":           {},
		"quarantine":         {},
		"wal/archive":        {false, true},
		"wal/open.lock":      {true, true},
		"wal/other.lock":     {true, false},
		"wal/expiry":         {false, true},
		"wal/aged":           {false, true},
		SecondNote:           {},
		"elsewhere/own.lock": {},
	} {
		in := path.Dir(rel) == "wal" && InLog(path.Base(rel))
		if got := [2]bool{OfTheMachine(rel), in}; got != want {
			t.Errorf("%s: %v, want %v", rel, got, want)
		}
	}
	if Limit(MovedName) != NoteMost || Limit(SecondNote) != NoteMost || Limit("wal/shared") <= NoteMost {
		t.Error("only notes are bounded")
	}
}
