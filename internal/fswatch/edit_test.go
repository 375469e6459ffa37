package fswatch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
)

// TestSaved verifies that a save is adopted while the host runs: in place, by renaming, again at once, as a new file;
// of memories and of assemblies. The previous content stays in the history, and nothing is set aside. FAILURES 24, 67,
// 73 with a real watcher.
func TestSaved(t *testing.T) {
	t.Parallel()
	h := watched(t, quick, "a", "one", "b", "two")
	before, err := h.st.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	for i, save := range []func(path, text string){h.save, h.saveByRename, h.save, h.saveByRename} {
		was := []string{"one", "edit 0", "edit 1", "edit 2"}[i]
		save(h.path("a"), h.edited("a", was, fmt.Sprint("edit ", i)))
		h.await(varve.EventAdopted, "a", nil)
		h.want("a", fmt.Sprint("edit ", i))
		h.flush()
	}
	v, err := h.st.GetAt(t.Context(), "a", before.Version)
	if err != nil || !strings.Contains(string(v.Document), "one") {
		t.Errorf("the version before the edits: %v", err)
	}
	h.save(h.path("made"), `{"id":"made","content":"by hand","metadata":{"session_id":"s"},"mine":[1,2]}`)
	h.await(varve.EventAdopted, "made", nil)
	h.want("made", "by hand")
	h.flush()
	if text := h.text("made"); !strings.Contains(text, `"mine":[1,2]`) {
		t.Errorf("its bytes were changed: %s", text)
	}
	h.save(filepath.Join(h.dir, "assemblies", "g.json"), `{"assembly_id":"g","name":"made by hand","memory_ids":["a"]}`)
	h.await(varve.EventAdopted, "g", nil)
	if g, err := h.st.Assemblies().Get(t.Context(), "g"); err != nil || g.Name != "made by hand" {
		t.Errorf("%+v, %v", g, err)
	}
	h.want("b", "two")
	h.nothingElse()
}

// TestSavedAtOnce verifies that a second save is adopted too, if it happens before the flusher has rewritten the file
// of the first save.
func TestSavedAtOnce(t *testing.T) {
	t.Parallel()
	h := watched(t, quick, "a", "one")
	was := "one"
	for i := range 8 {
		text := h.edited("a", was, fmt.Sprintf("edit %02d", i))
		was = fmt.Sprintf("edit %02d", i)
		h.save(h.path("a"), text)
		for end := time.Now().Add(deadline); h.content("a") != was; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				h.want("a", was)
			}
		}
		for end := time.Now().Add(deadline); !strings.Contains(h.text("a"), was); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%q is not in its file", was)
			}
		}
	}
}

// FAILURES 74 with a real watcher: an editor saves the version that it opened an hour ago over a newer
// one. The newer version stays, in its file as well, and the edit is set aside and reported.
func TestStale(t *testing.T) {
	t.Parallel()
	h := watched(t, quick, "a", "one")
	stale := h.edited("a", "one", "one, and more")
	h.put("a", "two")
	h.flush()
	h.saveByRename(h.path("a"), stale)
	h.await(varve.EventEdit, "a", func(e varve.Event) bool { return e.Err != nil })
	h.want("a", "two")
	for end := time.Now().Add(deadline); !strings.Contains(h.text("a"), "two"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the newer version is not in its file")
		}
	}
	q := h.quarantined()
	if len(q) != 1 {
		t.Fatalf("in quarantine: %q", q)
	}
	b, err := os.ReadFile(filepath.Join(h.dir, "quarantine", q[0]))
	if err != nil || string(b) != stale {
		t.Errorf("%q, %v", b, err)
	}
	if n := h.count(varve.EventAdopted); n > 0 {
		t.Errorf("%d adopted", n)
	}
}

// An invalid file stays where it is and is reported once; the previous version is served. Once
// corrected, the file is adopted.
func TestInvalid(t *testing.T) {
	t.Parallel()
	h := watched(t, quick, "a", "one", "b", "two", "c", "three")
	text := h.text("a")
	marked := "<<<<<<< HEAD\n" + text + "=======\n" + strings.Replace(text, "one", "theirs", 1) + ">>>>>>> other\n"
	h.save(h.path("a"), marked)
	h.await(varve.EventDrift, "a", nil)
	h.want("a", "one")
	if h.text("a") != marked {
		t.Error("the file with the marks of a merge was touched")
	}
	h.save(h.path("copy"), h.text("b"))
	e := h.await(varve.EventDrift, "", func(e varve.Event) bool { return e.Path == "memories/copy.json" })
	if !strings.Contains(fmt.Sprint(e.Err), "b.json") {
		t.Errorf("of the copy: %v", e.Err)
	}
	h.save(h.path("new"), "{")
	h.await(varve.EventDrift, "", func(e varve.Event) bool { return e.Path == "memories/new.json" })
	h.save(h.path("a"), strings.Replace(text, "one", "theirs", 1))
	h.await(varve.EventAdopted, "a", nil)
	h.want("a", "theirs")
	h.want("b", "two")
	if _, err := os.Stat(h.path("copy")); err != nil {
		t.Error(err)
	}
	if q := h.quarantined(); len(q) > 0 {
		t.Errorf("in quarantine: %q", q)
	}
}

// FAILURES 63 and 81 with a real watcher: an editor that has the file open, and saves into it after it
// was replaced, loses nothing, and neither does the memory whose file is there by now.
func TestSavedIntoDisplaced(t *testing.T) {
	t.Parallel()
	h := watched(t, quick, "a", "one")
	f, err := os.OpenFile(h.path("a"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := h.edited("a", "one", "one, in an editor that holds it open")
	h.put("a", "two")
	h.flush()
	for i := range 50 { // whose files would be reused
		h.put(fmt.Sprint("n", i), "x")
	}
	h.flush()
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	h.put("b", "starts a round")
	h.flush()
	h.await(varve.EventEdit, "", nil)
	h.want("a", "two")
	q := h.quarantined()
	if len(q) != 1 {
		t.Fatalf("in quarantine: %q", q)
	}
	if b, err := os.ReadFile(filepath.Join(h.dir, "quarantine", q[0])); err != nil || string(b) != text {
		t.Errorf("%q, %v", b, err)
	}
	for i := range 50 {
		h.want(fmt.Sprint("n", i), "x")
	}
	if n := h.count(varve.EventAdopted); n > 0 {
		t.Errorf("%d adopted", n)
	}
}

// FAILURES 69 with a real watcher: after an unclean end a file holds the bytes of another memory, as a
// loss of power may leave it. They are adopted neither for the one memory nor for the other.
func TestForeignBytesAfterUncleanEnd(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	cmd, out := startChild(t, "unclean", dir)
	for {
		if _, err := out.ReadString('\n'); err != nil {
			break
		}
	}
	_ = cmd.Wait()
	foreign := `{"id":"b","content":"an older b, in the place of a"}`
	if err := os.WriteFile(filepath.Join(dir, "memories", "a.json"), []byte(foreign), 0o600); err != nil {
		t.Fatal(err)
	}
	h := openHost(t, dir, quick)
	h.await(varve.EventWatching, "", nil)
	h.until("both are in their files", func() bool {
		return h.exists("a") && h.exists("b") && strings.Contains(h.text("a"), "acknowledged a") && strings.Contains(h.text("b"), "acknowledged b")
	})
	h.save(h.path("c"), `{"id":"c","content":"by hand"}`)
	h.await(varve.EventAdopted, "c", nil)
	h.want("a", "acknowledged a")
	h.want("b", "acknowledged b")
	if n := h.count(varve.EventAdopted); n != 1 {
		t.Errorf("%d adopted", n)
	}
}
