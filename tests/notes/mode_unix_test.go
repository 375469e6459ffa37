//go:build linux || darwin

package notes

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// TestModeOfNotes verifies that a note which the store writes over a file keeps the permission bits of the file, also
// when an earlier version is written again, and that a new note has those of the store.
func TestModeOfNotes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	ns := st.Notes()
	path := func(note string) string { return filepath.Join(dir, "notes", note) }
	mode := func(note string, want fs.FileMode) {
		t.Helper()
		must(t, st.Flush(t.Context()))
		info, err := os.Stat(path(note))
		must(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, want %v", note, info.Mode(), want)
		}
	}
	write := func(note, text string) {
		t.Helper()
		_, err := ns.Write(t.Context(), note, []byte(text))
		must(t, err)
	}
	write("a.md", "one")
	mode("a.md", 0o600)
	must(t, os.WriteFile(path("hand.md"), []byte("by hand"), 0o600))
	must(t, os.Chmod(path("hand.md"), 0o644))
	must(t, os.Chmod(path("a.md"), 0o640))
	_, err := ns.AdoptFiles(t.Context(), "")
	must(t, err)
	write("hand.md", "by the store")
	write("a.md", "two")
	mode("hand.md", 0o644)
	mode("a.md", 0o640)

	write("a.md", "one") // as a restore of the first version
	mode("a.md", 0o640)

	must(t, os.Remove(path("hand.md")))
	write("hand.md", "again")
	mode("hand.md", 0o600) // no file was replaced
}
