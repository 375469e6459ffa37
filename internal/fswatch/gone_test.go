package fswatch_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fswatch"
	"github.com/varve-db/varve/internal/storetest"
)

func (h *host) remove(ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		if err := os.Remove(h.path(id)); err != nil {
			h.t.Fatal(err)
		}
	}
}

// until waits for a condition that no event reports.
func (h *host) until(what string, is func() bool) {
	h.t.Helper()
	for end := time.Now().Add(deadline); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("not within %s: %s", deadline, what)
		}
	}
}

func (h *host) exists(id string) bool {
	_, err := os.Stat(h.path(id))
	return err == nil
}

// Deleting a file deletes the memory; the history keeps it, and its assemblies no longer contain it. A
// read before the deletion is adopted does not restore the file.
func TestDeleted(t *testing.T) {
	t.Parallel()
	h := watched(t, quick, "a", "one", "b", "two", "c", "three")
	if _, err := h.st.Put(t.Context(), varve.Memory{ID: "Ünï/cødé", Content: "its name is a hash"}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.st.Assemblies().Put(t.Context(), varve.Assembly{ID: "g", MemoryIDs: []string{"a", "b"}}); err != nil {
		t.Fatal(err)
	}
	h.flush()
	before, err := h.st.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	h.remove("a")
	if m, err := h.st.Get(t.Context(), "a"); err == nil && m.Content != "one" || err != nil && !errors.Is(err,
		varve.ErrNotFound) {
		t.Errorf("just deleted: %+v, %v", m, err)
	}
	h.await(varve.EventDeleted, "a", nil)
	if _, err := h.st.Get(t.Context(), "a"); !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("deleted: %v", err)
	}
	if v, err := h.st.GetAt(t.Context(), "a", before.Version); err != nil || !strings.Contains(string(v.Document), "one") {
		t.Errorf("its history: %v", err)
	}
	if g, err := h.st.Assemblies().Get(t.Context(), "g"); err != nil || len(g.MemoryIDs) != 1 {
		t.Errorf("its assembly: %+v, %v", g, err)
	}
	names, err := filepath.Glob(filepath.Join(h.dir, "memories", "*~*.json"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	if err := os.Remove(names[0]); err != nil {
		t.Fatal(err)
	}
	h.await(varve.EventDeleted, "Ünï/cødé", nil)
	// Restored from the trash, it is a memory again.
	h.save(h.path("a"), `{"id":"a","content":"out of the bin"}`)
	h.await(varve.EventAdopted, "a", nil)
	h.want("a", "out of the bin")
	h.nothingElse()
}

// A file that is deleted and created again, as some editors save, is an edit.
func TestDeletedAndSaved(t *testing.T) {
	t.Parallel()
	h := watched(t, fswatch.Options{Quiet: 50 * time.Millisecond, Gone: time.Second}, "a", "one", "b", "two")
	text := h.edited("a", "one", "edited")
	h.remove("a")
	h.put("c", "something else goes on")
	h.flush()
	h.save(h.path("a"), text)
	h.await(varve.EventAdopted, "a", nil)
	h.want("a", "edited")
	h.nothingElse(varve.EventDeleted)
}

// With adopt_deletions off the file is restored.
func TestRestored(t *testing.T) {
	t.Parallel()
	h := watched(t, quick, "a", "one", "b", "two")
	c, off := h.st.Admin().Config(), false
	c.AdoptDeletions = &off
	if err := h.st.Admin().SetConfig(c); err != nil {
		t.Fatal(err)
	}
	text := h.text("a")
	h.remove("a")
	h.await(varve.EventRestored, "a", nil)
	if h.text("a") != text {
		t.Error("it is not what it was")
	}
	h.want("a", "one")
	if n := h.count(varve.EventDeleted); n > 0 {
		t.Errorf("%d deleted", n)
	}
}

// If most of a folder is gone at once, or the folder itself, it is an accident: everything is restored.
func TestEmptied(t *testing.T) {
	t.Parallel()
	var puts []string
	for i := range 12 {
		puts = append(puts, fmt.Sprint("k", i), fmt.Sprint("content ", i))
	}
	all := func(h *host) {
		h.t.Helper()
		h.until("all files are back", func() bool {
			for i := range 12 {
				if !h.exists(fmt.Sprint("k", i)) {
					return false
				}
			}
			return true
		})
		for i := range 12 {
			h.want(fmt.Sprint("k", i), fmt.Sprint("content ", i))
		}
		if n := h.count(varve.EventDeleted); n > 0 {
			h.t.Errorf("%d deleted", n)
		}
	}
	t.Run("files", func(t *testing.T) {
		h := watched(t, quick, puts...)
		for i := range 10 {
			h.remove(fmt.Sprint("k", i))
		}
		h.await(varve.EventDrift, "", func(e varve.Event) bool { return e.Count == 10 })
		all(h)
		h.until("the restoring has ended", func() bool { // what is missing before that belongs to the accident
			return !storetest.Inner(h.st).Engine.Layout().Restores()
		})
		// Four of twelve are intended.
		h.remove("k1", "k2", "k3", "k4")
		for range 4 {
			h.await(varve.EventDeleted, "", nil)
		}
	})
	t.Run("folder", func(t *testing.T) {
		h := watched(t, quick, puts...)
		if err := os.RemoveAll(filepath.Join(h.dir, "memories")); err != nil {
			t.Fatal(err)
		}
		all(h)
		// And the folder is watched again.
		h.save(h.path("k1"), h.edited("k1", "content 1", "edited"))
		h.await(varve.EventAdopted, "k1", nil)
		h.want("k1", "edited")
	})
}

// git stash -u removes empty folders. A missing folder is created again, and the watch continues with
// notifications.
func TestEmptyFolderRemoved(t *testing.T) {
	t.Parallel()
	h := watched(t, quick, "a", "one")
	folder := filepath.Join(h.dir, "assemblies")
	h.until("the folder can be removed", func() bool { return os.Remove(folder) == nil })
	h.until("the folder is made again", func() bool {
		_, err := os.Stat(folder)
		return err == nil
	})
	e := h.await(varve.EventWatching, "", nil)
	if e.Err != nil || !strings.Contains(e.Note, "notifications") {
		t.Errorf("%+v", e)
	}
	h.save(h.path("a"), h.edited("a", "one", "told"))
	h.await(varve.EventAdopted, "a", nil)
}

// A host whose log was removed by a cleaner is idle, and stays open. The host that opens the store then
// watches it, and the first one no longer checks files that are not its own.
func TestWatchAfterReplaced(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	watching, looked := make(chan struct{}, 1), atomic.Int64{}
	first, err := varve.Open(t.Context(), dir, storetest.In(&varve.Options{Listener: func(e varve.Event) {
		if e.Kind != varve.EventWatching {
			return
		}
		if e.Err != nil {
			looked.Add(1)
		}
		select {
		case watching <- struct{}{}:
		default:
		}
	}}, storetest.Environment{Watcher: fswatch.New(quick)}))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	<-watching
	if _, err := first.Put(t.Context(), varve.Memory{ID: "a", Content: "one"}); err != nil {
		t.Fatal(err)
	}
	if err := first.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
	for _, name := range segments {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		t.Fatal(err)
	}
	h := openHost(t, dir, quick)
	h.await(varve.EventWatching, "", nil)
	h.save(h.path("a"), h.edited("a", "one", "by hand"))
	h.await(varve.EventAdopted, "a", nil)
	if n := looked.Load(); n > 0 {
		t.Errorf("the first host has failed to look at files %d times", n)
	}
}
