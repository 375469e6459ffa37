package watching

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// A read finds a file with decayed bytes, and restores it; both are reported.
func TestEventsOfAFilePutBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	var mu sync.Mutex
	var kinds []varve.EventKind
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true, CacheBytes: -1, Listener: func(e varve.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.ID == "a" {
			kinds = append(kinds, e.Kind)
		}
	}})
	if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "prefers short answers"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "memories", "a.json")
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	good := slices.Clone(b)
	b[len(b)/2] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(name, time.Time{}, info.ModTime()); err != nil {
		t.Fatal(err)
	}
	m, err := st.Get(ctx, "a")
	if err != nil || m.Content != "prefers short answers" {
		t.Fatalf("got %+v, %v", m, err)
	}
	if b, err := os.ReadFile(name); err != nil || !slices.Equal(b, good) {
		t.Errorf("the file was not put back: %v\n%s", err, b)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []varve.EventKind{varve.EventCorruption, varve.EventRestored}; !slices.Equal(kinds, want) {
		t.Errorf("told %q, want %q", kinds, want)
	}
}

// Merges of the index of words are reported.
func TestEventsOfMerges(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var merged []varve.Event
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true, Listener: func(e varve.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind == varve.EventMerged {
			merged = append(merged, e)
		}
	}})
	rounds := 0
	for told := 0; told == 0; rounds++ {
		if rounds == 20 {
			t.Fatal("no merge in 20 rounds")
		}
		if _, err := st.Put(t.Context(), varve.Memory{Content: "one of a few"}); err != nil {
			t.Fatal(err)
		}
		if err := st.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		told = len(merged)
		mu.Unlock()
	}
	mu.Lock()
	defer mu.Unlock()
	if e := merged[0]; len(merged) != 1 || e.Count != rounds || e.Path != filepath.Join("view_index", "words") ||
		e.LSN == 0 {
		t.Errorf("after %d rounds: %+v", rounds, merged)
	}
}
