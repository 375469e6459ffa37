package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoteLogSaysWho: the versions of a note are listed with who wrote them, and edits of the file as such.
func TestNoteLogSaysWho(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	if code, _, errs := c.run("one", "note", "write", "a.md"); code != 0 {
		t.Fatal(errs)
	}
	if err := os.WriteFile(filepath.Join(c.store(), "notes", "a.md"), []byte("two by hand"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.ok("note", "cat", "a.md")
	lines := strings.Split(strings.TrimSpace(c.ok("note", "log", "a.md")), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[0], " memctl note write") ||
		!strings.HasSuffix(lines[1], " (edited)") {
		t.Errorf("%q", lines)
	}
}
