package memorystores

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve"
)

// TestTrimmed: versions are listed when the history that follows the last one that was read is gone.
func TestTrimmed(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), Options{})
	store := s.create("a")
	m := s.memory(store, "/a", "first")
	h, err := s.stores.use(t.Context(), store[1:])
	if err != nil {
		t.Fatal(err)
	}
	defer s.stores.release(h)
	if err := h.store.Admin().UpdateConfig(t.Context(), func(c *varve.Config) error {
		c.HistoryBytes = new(int64)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	log := h.store.Notes().Log()
	next := func() (versions, holes int) {
		t.Helper()
		for _, err := range log.Next(t.Context()) {
			switch {
			case err == nil:
				versions++
			case errors.Is(err, varve.ErrTruncated):
				holes++
			default:
				t.Error(err)
			}
		}
		return versions, holes
	}
	if versions, holes := next(); versions != 1 || holes != 0 {
		t.Fatal(versions, holes)
	}
	s.listed(store + "/memory_versions")
	b := make([]byte, 50_000)
	for range 60 {
		_, _ = rand.Read(b)
		s.want(200, "a", "POST", m, map[string]any{"content": hex.EncodeToString(b)})
	}
	if err := h.store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(s.want(200, "a", "POST", m, map[string]any{"content": "last"})["memory_version_id"])
	if versions, holes := next(); versions == 0 || versions > 60 || holes != 1 {
		t.Errorf("%d versions, %d holes", versions, holes)
	}
	if versions, holes := next(); versions != 0 || holes != 0 {
		t.Errorf("%d versions, %d holes in the second reading", versions, holes)
	}
	if list := s.listed(store + "/memory_versions"); len(list) == 0 || list[0]["id"] != want {
		t.Errorf("the newest of %d versions is not %s", len(list), want)
	}
}

// TestUnreadable: a history of which nothing can be read is an error, not a list without its newest versions.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), Options{})
	store := s.create("a")
	s.memory(store, "/a", "first")
	s.listed(store + "/memory_versions")
	h, err := s.stores.use(t.Context(), store[1:])
	if err != nil {
		t.Fatal(err)
	}
	defer s.stores.release(h)
	if err := h.store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := h.view.all(t.Context(), s.stores, h, func([]version, []varve.Writer) {
		t.Error("a list is answered")
	}); !errors.Is(err, varve.ErrClosed) {
		t.Error(err)
	}
}

// TestView: the paths of memories are made again when one is wrong, lose deleted memories, and versions that a purge
// removed are not listed.
func TestView(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), Options{})
	store := s.create("a")
	m := s.memory(store, "/a", "first")
	h, err := s.stores.use(t.Context(), store[1:])
	if err != nil {
		t.Fatal(err)
	}
	defer s.stores.release(h)
	id, _ := parseMemory(filepath.Base(m))
	s.want(200, "a", "GET", m, nil)
	h.view.mu.Lock()
	h.view.paths[id] = "elsewhere"
	h.view.mu.Unlock()
	s.want(200, "a", "GET", m, nil)
	s.want(200, "a", "DELETE", m, nil)
	s.want(404, "a", "GET", m, nil)
	h.view.mu.Lock()
	if _, ok := h.view.paths[id]; ok {
		t.Error("a deleted memory has a path")
	}
	h.view.mu.Unlock()
	s.memory(store, "/b", "1")
	purged := s.memory(store, "/c", "2")
	s.want(200, "a", "POST", purged, map[string]any{"content": "3"})
	versions := s.listed(store + "/memory_versions")
	if len(versions) != 5 {
		t.Fatalf("%v", versions)
	}
	if _, err := h.store.Notes().Purge(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"", "?view=full"} {
		list := s.listed(store + "/memory_versions" + query)
		if len(list) != 3 || list[0]["path"] != "/b" {
			t.Errorf("%s: %v", query, list)
		}
	}
	s.want(404, "a", "GET", fmt.Sprint(store, "/memory_versions/", versions[0]["id"]), nil)
	s.want(404, "a", "GET", fmt.Sprint(store, "/memory_versions/", versions[0]["id"], "?view=basic"), nil)
	if o := s.want(200, "a", "GET", store+"/memory_versions?limit=1", nil); o["next_page"] == nil {
		t.Errorf("%v", o)
	}
}

// TestFreshView: a memory that is moved while its store is read for the first time is found.
func TestFreshView(t *testing.T) {
	t.Parallel()
	s := newSite(t, t.TempDir(), Options{})
	store := s.create("a")
	m := s.memory(store, "/m", "moves")
	h, err := s.stores.use(t.Context(), store[1:])
	if err != nil {
		t.Fatal(err)
	}
	defer s.stores.release(h)
	for i := range 300 {
		if _, err := h.store.Notes().Write(t.Context(), fmt.Sprintf("n%03d", i), []byte("stays")); err != nil {
			t.Fatal(err)
		}
	}
	id, _ := parseMemory(filepath.Base(m))
	stop := s.moving(map[string][]string{m: {"/a", "/z"}})
	defer stop()
	for i := range 100 {
		var v view
		if path, ok, err := v.path(t.Context(), h.store, id); err != nil || !ok {
			t.Fatalf("round %d: %q, %t, %v", i, path, ok, err)
		}
	}
}
