package notes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/adopt"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/storetest"
)

// awaitMoved waits until the note at a path is the one that was created at another path, and compares
// its history.
func awaitMoved(t *testing.T, st *varve.Store, from, to string, history ...string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		n, err := st.Notes().Read(t.Context(), to)
		if err == nil && n.ID == note.ID(from) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%s was not moved from %s: id %s, %v; files %q", to, from, n.ID, err, files(t, st))
		}
	}
	if has := versions(t, st, to); !slices.Equal(has, history) {
		t.Errorf("the history of %s is %q, want %q", to, has, history)
	}
	await(t, st, from, none)
}

// files returns the paths of all notes.
func files(t *testing.T, st *varve.Store) (list []string) {
	t.Helper()
	for e, err := range st.Notes().List(t.Context(), "", 0) {
		must(t, err)
		list = append(list, e.Path)
	}
	return list
}

// TestMovedByHand: a file that is renamed by hand keeps id, properties and history: it is recognized by
// its inode, even if another file has the same content or if it was edited, or by its content, if that
// is unique. A file that was written at the inode of a deleted one is another note.
func TestMovedByHand(t *testing.T) {
	dir := t.TempDir()
	st := watched(t, dir)
	write(t, st, "a.md", "first\n")
	const lines = "one line\nand another one\nand a third\n"
	write(t, st, "a.md", lines)
	write(t, st, "same/1.md", "equal")
	write(t, st, "same/2.md", "equal")
	write(t, st, "deep/er/x.md", "in a folder")
	write(t, st, "deep/y.md", "also in it")
	write(t, st, "gone.md", "this one is removed")
	_, err := st.Notes().SetProperties(t.Context(), "a.md", varve.NoteProperties{Tags: []string{"tag"}})
	must(t, err)
	must(t, st.Flush(t.Context()))
	var names []string // as the watcher sees the files that the flush has placed
	for _, path := range files(t, st) {
		names = append(names, note.System().Path(path))
	}
	_, err = adopt.NewFiles(storetest.Inner(st).Adopter).Look(t.Context(), "notes", names)
	must(t, err)

	must(t, os.MkdirAll(filepath.Join(dir, "notes", "sub"), 0o700))
	was, err := os.Stat(at(dir, "a.md"))
	must(t, err)
	must(t, os.Rename(at(dir, "a.md"), at(dir, "sub/b.md")))
	awaitMoved(t, st, "a.md", "sub/b.md", "first\n", lines, lines)
	must(t, st.Flush(t.Context()))
	untouched(t, at(dir, "sub/b.md"), was, lines)
	n, err := st.Notes().Read(t.Context(), "sub/b.md")
	if err != nil || !slices.Equal(n.Properties.Tags, []string{"tag"}) {
		t.Errorf("%+v, %v", n, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes", ".varve", ".a.md.json")); !os.IsNotExist(err) {
		t.Errorf("the properties of the old path are there: %v", err)
	}

	must(t, os.Rename(at(dir, "same/1.md"), at(dir, "same/3.md"))) // two have the content: by the inode
	awaitMoved(t, st, "same/1.md", "same/3.md", "equal", "equal")

	b, err := os.ReadFile(at(dir, "same/2.md")) // a program that copies and removes: by the content
	must(t, err)
	must(t, os.WriteFile(at(dir, "same/4.md"), b, 0o600))
	must(t, os.Remove(at(dir, "same/2.md")))
	awaitMoved(t, st, "same/2.md", "same/4.md", "equal", "equal")

	must(t, os.Rename(filepath.Join(dir, "notes", "deep"), filepath.Join(dir, "notes", "other"))) // a folder
	awaitMoved(t, st, "deep/er/x.md", "other/er/x.md", "in a folder", "in a folder")
	awaitMoved(t, st, "deep/y.md", "other/y.md", "also in it", "also in it")

	must(t, os.Rename(at(dir, "sub/b.md"), at(dir, "c.md"))) // renamed and edited
	save(t, at(dir, "c.md"), "one line\nand another one\nedited\n")
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		n, err := st.Notes().Read(t.Context(), "c.md")
		if err == nil && n.ID == note.ID("a.md") && strings.HasSuffix(string(n.Content), "edited\n") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%+v, %v", n, err)
		}
	}
	if has := versions(t, st, "c.md"); has[0] != "first\n" || has[len(has)-1] != "one line\nand another one\nedited\n" {
		t.Errorf("%q", has)
	}

	must(t, os.Remove(at(dir, "gone.md")))
	save(t, at(dir, "new.md"), "nothing of the one before")
	await(t, st, "new.md", "nothing of the one before")
	await(t, st, "gone.md", none)
	if n, err := st.Notes().Read(t.Context(), "new.md"); err != nil || n.ID != note.ID("new.md") {
		t.Errorf("%+v, %v", n, err)
	}
	must(t, st.Flush(t.Context()))
	clean(t, st)
}

// TestFoundAtOpen: files that were written, renamed and deleted while no process had the store open are
// adopted by the next process that opens it, without a watcher.
func TestFoundAtOpen(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir)
	write(t, st, "a.md", "one")
	write(t, st, "b.md", "two")
	write(t, st, "c.md", "three")
	must(t, st.Close())
	save(t, at(dir, "a.md"), "edited")
	save(t, at(dir, "new/d.md"), "four")
	must(t, os.Rename(at(dir, "b.md"), at(dir, "moved.md")))
	past := time.Now().Add(-time.Minute)
	must(t, os.Chtimes(filepath.Join(dir, "notes"), past, past))
	must(t, os.Chtimes(filepath.Join(dir, "notes", "new"), past, past))
	st, err := varve.Open(t.Context(), dir, nil)
	must(t, err)
	defer st.Close()
	await(t, st, "new/d.md", "four")
	awaitMoved(t, st, "b.md", "moved.md", "two", "two")
	expect(t, st, map[string]string{"a.md": "edited", "moved.md": "two", "c.md": "three", "new/d.md": "four"})
	clean(t, st)
}

// TestIgnored: files that editors leave are not adopted, and verify does not ask for it. A note that the
// API wrote at such a path is a note. The setting replaces the patterns.
func TestIgnored(t *testing.T) {
	dir := t.TempDir()
	st := watched(t, dir)
	write(t, st, "written.tmp", "by the API")
	leavings := []string{"a.md~", "x/.#b.md", "#c.md#", ".d.md.swp", "4913", "e.tmp", ".DS_Store", "x/~$f.docx", "g.swp"}
	for _, name := range leavings {
		save(t, filepath.Join(dir, "notes", name), "left")
	}
	save(t, at(dir, "h.md"), "a note")
	await(t, st, "h.md", "a note")
	must(t, st.Flush(t.Context()))
	save(t, at(dir, "written.tmp"), "by hand")
	await(t, st, "written.tmp", "by hand")
	expect(t, st, map[string]string{"h.md": "a note", "written.tmp": "by hand"})
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		must(t, err)
		if f.Next != "" {
			t.Errorf("%+v", f)
		}
	}
	must(t, st.Admin().UpdateConfig(t.Context(), func(c *varve.Config) error {
		c.NotesIgnore = []string{"*.bak", "private/**"}
		return nil
	}))
	for i, name := range []string{"k.bak", "private/x/y.md", "l.tmp", "x/private/z.md"} {
		save(t, at(dir, name), fmt.Sprint(i))
	}
	await(t, st, "l.tmp", "2")
	await(t, st, "x/private/z.md", "3")
	await(t, st, "k.bak", none)
	await(t, st, "private/x/y.md", none)
	if err := st.Admin().UpdateConfig(t.Context(), func(c *varve.Config) error {
		c.NotesIgnore = []string{"a[", "b"}
		return nil
	}); err == nil {
		t.Error("a pattern that is none was taken")
	}
}

// TestFormD: a file whose name is in Unicode's normal form D, as macOS writes it, is the note at the
// path in form C.
func TestFormD(t *testing.T) {
	dir := t.TempDir()
	st := watched(t, dir)
	save(t, filepath.Join(dir, "notes", "cafe\u0301", "re\u0301sume\u0301.md"), "from a Mac")
	write(t, st, "z.md", "a note")
	await(t, st, "caf\u00e9/r\u00e9sum\u00e9.md", "from a Mac")
	if _, err := os.Stat(filepath.Join(dir, "notes", "cafe\u0301", "re\u0301sume\u0301.md")); err == nil {
		if _, err := os.Stat(at(dir, "caf\u00e9/r\u00e9sum\u00e9.md")); err != nil {
			t.Error(err)
		}
	}
	must(t, st.Flush(t.Context()))
	expect(t, st, map[string]string{"caf\u00e9/r\u00e9sum\u00e9.md": "from a Mac", "z.md": "a note"})
	clean(t, st)
}

// TestListedWhileMoved: while a note is moved, a listing has it at most once, and with its own id; so has Read.
func TestListedWhileMoved(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, t.TempDir(), nil)
	write(t, st, "m", "moves")
	for i := range 30 {
		write(t, st, fmt.Sprintf("n%02d", i), "stays")
	}
	id := note.ID("m")
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		at := "m"
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			to := []string{"a", "z", "n15x"}[i%3]
			if _, err := st.Notes().Rename(t.Context(), at, to); err != nil {
				t.Error(err)
				return
			}
			at = to
		}
	})
	rounds, seen := 0, 0
	for end := time.Now().Add(time.Second); time.Now().Before(end) || rounds < 20; rounds++ {
		n := 0
		for e, err := range st.Notes().List(t.Context(), "", 0) {
			must(t, err)
			if strings.HasPrefix(e.Path, "n") && len(e.Path) == 3 {
				continue
			}
			if n++; e.ID != id {
				t.Fatalf("round %d: %s is listed with the id %s, want %s", rounds, e.Path, e.ID, id)
			}
			if r, err := st.Notes().Read(t.Context(), e.Path); err == nil {
				if seen++; r.ID != id {
					t.Fatalf("round %d: %s is read with the id %s, want %s", rounds, e.Path, r.ID, id)
				}
			} else if !errors.Is(err, varve.ErrNotFound) {
				t.Fatal(err)
			}
		}
		if n > 1 {
			t.Fatalf("the note is listed %d times", n)
		}
	}
	close(done)
	all.Wait()
	t.Logf("%d listings, read %d times", rounds, seen)
}
