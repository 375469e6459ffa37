package fswatch_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
)

// in returns the path of a file in a folder of the store.
func (h *host) in(folder, name string) string { return filepath.Join(h.dir, folder, name) }

func (h *host) rename(from, to string) {
	h.t.Helper()
	if err := os.Rename(from, to); err != nil {
		h.t.Fatal(err)
	}
}

// told returns how often a file was reported.
func (h *host) told(path string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		if e.Kind == varve.EventDrift && e.Path == path {
			n++
		}
	}
	return n
}

// A file that is renamed is not deleted: the memory stays, in its own file again, and the other file is
// reported once, with what to do; whatever name and folder it was given, and whether or not a watcher
// was running.
func TestRenamed(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]string{
		"another name": "memories/dd.json",
		"not a name":   "memories/d (old).json",
		"its capitals": "memories/D.json",
		"over another": "memories/b.json",
		"other folder": "assemblies/d.json",
		"there too":    "assemblies/dd.json",
	} {
		for _, when := range []string{"live", "before", "edited", "copied"} {
			t.Run(name+"/"+when, func(t *testing.T) {
				t.Parallel()
				h := watched(t, quick, "b", "two", "c", "three", "d", "four")
				if _, err := os.Stat(filepath.Join(h.dir, to)); err == nil && name == "its capitals" {
					t.Skip("the names are of one file here") // macOS, Windows
				}
				was, other := h.text("d"), filepath.Join(h.dir, to)
				stays := was
				switch when {
				case "live":
					h.rename(h.path("d"), other)
				case "edited":
					stays = h.edited("d", "four", "edited")
					h.saveByRename(other, stays) // while written in place it is empty for a moment, which is damage
					h.remove("d")
				case "copied":
					h.save(other, was)
					h.await(varve.EventDrift, "", func(e varve.Event) bool { return e.Path == to })
					h.want("d", "four")
					h.remove("d")
				case "before":
					dir := h.dir
					if err := h.st.Close(); err != nil {
						t.Fatal(err)
					}
					h.rename(h.path("d"), other)
					h = openHost(t, dir, quick)
				}
				h.until("d is in its file again", func() bool { return h.exists("d") })
				h.until("the other is told of", func() bool { return h.told(to) > 0 })
				if h.text("d") != was {
					t.Errorf("it is not what it was: %s", h.text("d"))
				}
				h.want("d", "four")
				h.want("b", "two")
				if text, err := os.ReadFile(other); err != nil || string(text) != stays {
					t.Errorf("the other file was touched: %q, %v", text, err)
				}
				e := h.first(to)
				if err := fmt.Sprint(e.Err); !strings.Contains(err, `"d"`) || !strings.Contains(err, "memories/d.json") {
					t.Errorf("told: %v", e.Err)
				}
				h.put("e", "five") // and a round later
				h.flush()
				if n := h.told(to); n != 1 {
					t.Errorf("told %d times", n)
				}
				if n := h.count(varve.EventDeleted) + h.count(varve.EventAdopted); n > 0 {
					t.Errorf("%d adopted or deleted", n)
				}
				if _, err := h.st.Assemblies().Get(t.Context(), "d"); !errors.Is(err, varve.ErrNotFound) {
					t.Errorf("an assembly: %v", err)
				}
			})
		}
	}
}

// first returns the first report of a file.
func (h *host) first(path string) varve.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		if e.Kind == varve.EventDrift && e.Path == path {
			return e
		}
	}
	return varve.Event{}
}

// TestRenamedAssembly verifies the same as TestRenamed for an assembly that is moved among the memories.
func TestRenamedAssembly(t *testing.T) {
	t.Parallel()
	h := watched(t, quick, "a", "one")
	if _, err := h.st.Assemblies().Put(t.Context(), varve.Assembly{ID: "g", Name: "of one", MemoryIDs: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	h.flush()
	h.rename(h.in("assemblies", "g.json"), h.in("memories", "g.json"))
	h.await(varve.EventRestored, "g", nil)
	if g, err := h.st.Assemblies().Get(t.Context(), "g"); err != nil || g.Name != "of one" {
		t.Errorf("%+v, %v", g, err)
	}
	h.until("told", func() bool { return h.told("memories/g.json") == 1 })
	const where = "belongs in assemblies/g.json; move the file there"
	if err := fmt.Sprint(h.first("memories/g.json").Err); !strings.Contains(err, where) {
		t.Error(err)
	}
}

// The backup that an editor leaves beside a file does not prevent a deletion: deleting the file deletes
// the memory.
func TestDeletedBesideBackups(t *testing.T) {
	t.Parallel()
	h := watched(t, quick, "a", "one", "d", "four")
	for _, name := range []string{"d.json~", ".d.json.swp", "#d.json#", "d.json.orig", ".d.json"} {
		h.save(h.in("memories", name), h.text("d"))
	}
	h.remove("d")
	h.await(varve.EventDeleted, "d", nil)
	h.nothingElse()
}

// With a new id in it, the renamed file is a memory of its own; once it is removed, nothing is reported
// anymore.
func TestRenamedAndCorrected(t *testing.T) {
	t.Parallel()
	h := watched(t, quick, "a", "one", "d", "four")
	h.rename(h.path("d"), h.path("dd"))
	h.await(varve.EventRestored, "d", func(e varve.Event) bool { return strings.Contains(e.Note, "memories/dd.json") })
	h.save(h.path("dd"), strings.Replace(h.text("dd"), `"id": "d"`, `"id": "dd"`, 1))
	h.await(varve.EventAdopted, "dd", nil)
	h.want("dd", "four")
	h.want("d", "four")
	h.remove("d")
	h.await(varve.EventDeleted, "d", nil)
	h.want("dd", "four")
}
