package fswatch

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestEventsHaveTheirTime: a file that was saved while others were checked is checked at once afterwards, if it has
// been quiet since.
func TestEventsHaveTheirTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &fsnotify.Watcher{Events: make(chan fsnotify.Event), Errors: make(chan error)}
		src := &notified{w: w, folders: map[string]string{"/m": "m"}, inner: map[string]event{},
			events: make(chan event), done: make(chan struct{}), stopped: make(chan struct{})}
		go src.run()
		o := New(Options{}).o
		f := &noted{began: time.Now(), absent: map[string]bool{}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			newSession(&o, f, src, f.Folders()).run(ctx)
		}()
		w.Events <- fsnotify.Event{Name: "/m/slow", Op: fsnotify.Write} // from 300 ms to 2300 ms
		time.Sleep(500 * time.Millisecond)
		for range 3 {
			w.Events <- fsnotify.Event{Name: "/m/a", Op: fsnotify.Write}
			time.Sleep(500 * time.Millisecond)
		}
		time.Sleep(250 * time.Millisecond)
		w.Events <- fsnotify.Event{Name: "/m/b", Op: fsnotify.Write} // at 2250 ms
		time.Sleep(5 * time.Second)
		cancel()
		<-ended
		close(src.done)
		<-src.stopped
		want := []string{"300 ms: look m slow", "2400 ms: look m a", "2600 ms: look m b"}
		if !slices.Equal(f.log, want) {
			t.Errorf("%q, want %q", f.log, want)
		}
	})
}

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
		e, _, ok := n.eventOf(fsnotify.Event{Name: in, Op: fsnotify.Remove})
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
	n.eventOf(fsnotify.Event{Name: in, Op: fsnotify.Remove})
	if len(n.inner) != 0 {
		t.Errorf("%d folders are watched", len(n.inner))
	}
}

// TestFolderGoneBeforeItIsWatched: if a folder was created and is gone when the source receives the event, the session
// must look for files that it had: their removal has no event. An event of a file in a watched folder is no reason for
// that.
func TestFolderGoneBeforeItIsWatched(t *testing.T) {
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
	e, _, ok := n.eventOf(fsnotify.Event{Name: filepath.Join(notes, "gone"), Op: fsnotify.Create})
	if !ok || !e.entered || e.name != "gone" {
		t.Errorf("%+v, %v", e, ok)
	}
	if e, _, ok := n.created(filepath.Join(notes, "gone"), event{folder: "notes", name: "gone"}); !ok || !e.entered {
		t.Errorf("%+v, %v", e, ok)
	}
	if e, _, ok := n.eventOf(fsnotify.Event{Name: in, Op: fsnotify.Create}); !ok || !e.entered {
		t.Errorf("%+v, %v", e, ok)
	}
	if e, _, ok := n.eventOf(fsnotify.Event{Name: filepath.Join(in, "a.md"), Op: fsnotify.Write}); !ok || e.entered ||
		e.name != "in/a.md" {
		t.Errorf("%+v, %v", e, ok)
	}
}
