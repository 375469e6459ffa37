package fswatch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fsnotify/fsnotify"
)

// TestFolderCreatedAgain: a folder that was removed and created again stays watched when the system tells of its
// removal after its creation, as it does while a process has the old folder open.
func TestFolderCreatedAgain(t *testing.T) {
	t.Parallel()
	notes := filepath.Join(t.TempDir(), "notes")
	in := filepath.Join(notes, "in")
	if err := os.MkdirAll(in, 0o700); err != nil {
		t.Fatal(err)
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	n := &notified{w: w, folders: map[string]string{notes: "notes"}, inner: map[string]event{}}
	if err := w.Add(notes); err != nil {
		t.Fatal(err)
	}
	if _, err := n.enter(notes, "notes", ""); err != nil {
		t.Fatal(err)
	}
	for range 2 { // of its creation, and then of its removal
		e, _, ok := n.told(fsnotify.Event{Name: in, Op: fsnotify.Remove})
		if !ok || !e.entered || e.name != "in" {
			t.Errorf("%+v, %v", e, ok)
		}
		if _, ok := n.inner[in]; !ok {
			t.Error("the folder is not watched")
		}
	}
	if err := os.Remove(in); err != nil {
		t.Fatal(err)
	}
	n.told(fsnotify.Event{Name: in, Op: fsnotify.Remove})
	if len(n.inner) != 0 {
		t.Errorf("%d folders are watched", len(n.inner))
	}
}
