package notes

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/note"
)

// noteAdopted says that a link leads to a folder of notes, as memctl note adopt does.
func noteAdopted(t testing.TB, dir, folder, state string) {
	t.Helper()
	line, err := json.Marshal(note.AdoptedFolder{Link: filepath.Join(dir, "link"), Folder: folder, State: state,
		Time: time.Now()})
	must(t, err)
	f, err := os.OpenFile(filepath.Join(dir, "wal", "adopted"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	must(t, err)
	_, err = f.Write(append(line, '\n'))
	must(t, errors.Join(err, f.Close()))
}

// aged makes the folders of notes ones in which nothing has happened for a while.
func aged(t testing.TB, dir string) {
	t.Helper()
	past := time.Now().Add(-time.Minute)
	must(t, filepath.WalkDir(filepath.Join(dir, "notes"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chtimes(path, past, past)
	}))
}

// TestRootVanished: an adopted folder that is gone as a whole is an accident, also while other notes are there: nothing
// is deleted, Health says so, and the next read restores the files. A folder in it that is gone was deleted, and so was
// the folder itself once it is released. An adopted folder without notes stays.
func TestRootVanished(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir)
	for _, path := range []string{"other/a.md", "claude/app/MEMORY.md", "claude/app/x/b.md", "claude/application.md"} {
		write(t, st, path, "text of "+path)
	}
	_, err := st.Notes().SetProperties(t.Context(), "claude/app/x/b.md", varve.NoteProperties{Tags: []string{"tag"}})
	must(t, err)
	must(t, st.Flush(t.Context()))
	noteAdopted(t, dir, "claude/app", note.Adopted)
	all := map[string]string{}
	for _, path := range []string{"other/a.md", "claude/app/MEMORY.md", "claude/app/x/b.md", "claude/application.md"} {
		all[path] = "text of " + path
	}
	root := filepath.Join(dir, "notes", "claude", "app")
	must(t, os.RemoveAll(root))
	must(t, os.RemoveAll(filepath.Join(dir, "notes", ".varve")))
	aged(t, dir)
	h := st.Health(t.Context())
	const gone = "notes/claude/app, an adopted folder, is missing, with 2 files"
	if h.OK || !strings.Contains(errors.Join(h.Problems...).Error(), gone) {
		t.Errorf("%+v", h.Problems)
	}
	expect(t, st, all)
	if n, err := st.Notes().Read(t.Context(), "claude/app/x/b.md"); err != nil || len(n.Properties.Tags) != 1 {
		t.Errorf("%+v, %v", n, err)
	}
	if h := st.Health(t.Context()); !h.OK {
		t.Errorf("%+v", h.Problems)
	}
	clean(t, st)

	must(t, st.Close()) // nobody is there when it vanishes
	must(t, os.RemoveAll(root))
	aged(t, dir)
	st = opened(t, dir)
	expect(t, st, all)
	clean(t, st)

	must(t, os.RemoveAll(filepath.Join(root, "x")))
	aged(t, dir)
	all["claude/app/x/b.md"] = none
	expect(t, st, all)
	must(t, st.Notes().Delete(t.Context(), "claude/app/MEMORY.md"))
	all["claude/app/MEMORY.md"] = none
	must(t, st.Flush(t.Context()))
	if _, err := os.Stat(root); err != nil {
		t.Errorf("the adopted folder goes with its last note: %v", err)
	}
	write(t, st, "claude/app/c.md", "c")
	must(t, st.Flush(t.Context()))
	noteAdopted(t, dir, "claude/app", note.Released)
	all["claude/app/c.md"] = none
	must(t, os.RemoveAll(root))
	aged(t, dir)
	expect(t, st, all)
	clean(t, st)
}

// TestRootVanishedWatched: a watcher restores the files of an adopted folder that vanishes.
func TestRootVanishedWatched(t *testing.T) {
	dir := t.TempDir()
	st := watched(t, dir)
	write(t, st, "vault/a.md", "one")
	write(t, st, "vault/b/c.md", "two")
	write(t, st, "keep.md", "three")
	must(t, st.Flush(t.Context()))
	noteAdopted(t, dir, "vault", note.Adopted)
	must(t, os.RemoveAll(filepath.Join(dir, "notes", "vault")))
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		_, aerr := os.Stat(at(dir, "vault/a.md"))
		_, cerr := os.Stat(at(dir, "vault/b/c.md"))
		if aerr == nil && cerr == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(aerr, cerr)
		}
	}
	expect(t, st, map[string]string{"vault/a.md": "one", "vault/b/c.md": "two", "keep.md": "three"})
	if list := versions(t, st, "vault/a.md"); len(list) != 1 {
		t.Errorf("%q", list)
	}
}
