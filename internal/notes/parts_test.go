package notes_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/internal/adopt"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/notes"
	"github.com/varve-db/varve/internal/parts"
)

// TestDisk: what was written to a file by hand is adopted before it is read and before it is replaced, also while the
// newest version is not in the file yet.
func TestDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := parts.New(t, dir)
	a := adopt.New(p.Engine, p.Vectors, p.Committer, p.Flusher)
	p.Host.Judge, p.Host.Aside = a.JudgeEdit, a.AdoptAside
	h := history.New(p.Engine)
	ns := notes.New(p.Engine, p.Committer, h, adopt.NewFiles(a), p.Scopes)
	write := func(text string) {
		t.Helper()
		if _, err := ns.Write(t.Context(), "a.md", []byte(text), commit.Conditions{}); err != nil {
			t.Fatal(err)
		}
	}
	save := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "notes", "a.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	p.Flush(t)
	write("two") // not in the file yet
	save("by hand")
	n, err := ns.Read(t.Context(), "a.md")
	if err != nil || string(n.Content) != "by hand" {
		t.Errorf("%q, %v", n.Content, err)
	}
	write("three")
	save("by hand again")
	write("four")
	want := []string{"one", "two", "by hand", "three", "by hand again", "four"}
	var has []string
	if _, err := ns.History(t.Context(), "a.md", func(v history.Version, err error) bool {
		if err != nil {
			t.Fatal(err)
		}
		has = append(has, string(v.Document))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if len(has) != len(want) {
		t.Fatalf("%q, want %q", has, want)
	}
	for i := range want {
		if has[i] != want[i] {
			t.Errorf("%q, want %q", has, want)
		}
	}
}
