package varve

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// A file whose bytes have rotted is found by the read, put back, and both are told.
func TestEventsOfAFilePutBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	var mu sync.Mutex
	var kinds []EventKind
	st := openTest(t, dir, &Options{NoBackground: true, CacheBytes: -1, Listener: func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.ID == "a" {
			kinds = append(kinds, e.Kind)
		}
	}})
	if _, err := st.Put(ctx, Memory{ID: "a", Content: "prefers short answers"}); err != nil {
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
	if want := []EventKind{EventCorruption, EventRestored}; !slices.Equal(kinds, want) {
		t.Errorf("told %q, want %q", kinds, want)
	}
}

// events are what a store has told, by any of its goroutines.
type events struct {
	mu   sync.Mutex
	list []Event
}

func (l *events) hear(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, e)
}

func (l *events) all() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// Merges of the index of words are told.
func TestEventsOfMerges(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var merged []Event
	st := openTest(t, t.TempDir(), &Options{NoBackground: true, Listener: func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind == EventMerged {
			merged = append(merged, e)
		}
	}})
	rounds := 0
	for told := 0; told == 0; rounds++ {
		if rounds == 20 {
			t.Fatal("no merge in 20 rounds")
		}
		if _, err := st.Put(t.Context(), Memory{Content: "one of a few"}); err != nil {
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
	if e := merged[0]; len(merged) != 1 || e.Count != rounds || e.Path != filepath.Join("view_index", "words") || e.LSN == 0 {
		t.Errorf("after %d rounds: %+v", rounds, merged)
	}
}
