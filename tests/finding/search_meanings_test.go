package finding

import (
	"bytes"
	"context"
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
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/storetest"
)

// topics is an embedder whose vectors have the number of times that a text has each of some words. It records the
// texts.
type topics struct {
	mu    sync.Mutex
	asked []string
	last  string // the word of the last dimension
}

func (e *topics) vector(text string) []float32 {
	v := []float32{0.01, 0.01, 0.01, 0.01}
	for i, word := range []string{"train", "food", "money", e.last} {
		v[i] += float32(strings.Count(strings.ToLower(text), word))
	}
	return v
}

func (e *topics) embed(_ context.Context, texts []string) (list [][]float32, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, text := range texts {
		e.asked = append(e.asked, text)
		list = append(list, e.vector(text))
	}
	return list, nil
}

// texts returns how many texts were embedded since the last call.
func (e *topics) texts() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.asked)
	e.asked = nil
	return n
}

func (e *topics) options() *varve.Options {
	return &varve.Options{NoBackground: true, Embed: e.embed, EmbedModel: "topics-" + e.last}
}

const travel = "# Travel\n\nBy train, train and train.\n\n# Kitchen\n\nGood food there.\n"

func pending(t *testing.T, st *varve.Store) {
	t.Helper()
	if _, err := st.Vectors().EmbedPending(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// near returns the hits of a search by meaning.
func near(t *testing.T, st *varve.Store, e *topics, text string, filters ...varve.Filter) string {
	t.Helper()
	return find(t, st, varve.Query{Vector: e.vector(text), MinScore: 0.6}, filters...)
}

func expectNear(t *testing.T, st *varve.Store, e *topics, text, want string) {
	t.Helper()
	if has := near(t, st, e, text); has != want {
		t.Errorf("near %q: %s, want %s", text, has, want)
	}
}

// TestMeanings: sections of notes are found by meaning, in one ranking with memories, before and behind a flush, by
// another handle, and after the store is opened again. An edit of one section embeds that section, a rename none.
func TestMeanings(t *testing.T) {
	dir, e := t.TempDir(), &topics{last: "sea"}
	st := opened(t, dir, e.options())
	other := opened(t, dir, nil)
	write(t, st, "a/travel.md", travel)
	write(t, st, "money.md", "# Bank\n\nmoney money\n")
	_, err := st.Put(t.Context(), varve.Memory{ID: "memory", Content: "a train and food"})
	if err != nil {
		t.Fatal(err)
	}
	if has := near(t, st, e, "train"); has != "memory" {
		t.Errorf("before: %s", has)
	}
	e.texts()
	pending(t, st)
	if n := e.texts(); n != 3 {
		t.Errorf("%d texts of 3 sections were embedded", n)
	}
	all := func() {
		t.Helper()
		for _, st := range []*varve.Store{st, other} {
			expectNear(t, st, e, "train", "a/travel.md:1-3 Travel, memory")
			expectNear(t, st, e, "food", "a/travel.md:5-7 Kitchen, memory")
			expectNear(t, st, e, "money", "money.md:1-3 Bank")
		}
	}
	all()
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	all()
	if err := st.Admin().Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	all()
	both := varve.Query{Vector: e.vector("food"), Text: "kitchen", Limit: 1}
	if has := find(t, st, both); has != "a/travel.md:5-7 Kitchen" {
		t.Errorf("by both: %s", has)
	}
	if has := find(t, st, varve.Query{Vector: e.vector("train"), Kinds: []varve.Kind{varve.KindMemory}}); has != "memory" {
		t.Errorf("memories: %s", has)
	}
	if has := near(t, st, e, "train", varve.WithPrefix("a/")); has != "a/travel.md:1-3 Travel" {
		t.Errorf("below a/: %s", has)
	}
	if n := e.texts(); n != 0 {
		t.Errorf("%d texts were embedded again", n)
	}

	if _, err := st.Notes().Edit(t.Context(), "a/travel.md", "Good food", "Good money"); err != nil {
		t.Fatal(err)
	}
	expectNear(t, st, e, "food", "memory")
	pending(t, st)
	if n := e.texts(); n != 1 {
		t.Errorf("%d texts were embedded for an edit of one section", n)
	}
	expectNear(t, other, e, "money", "a/travel.md:5-7 Kitchen, money.md:1-3 Bank")
	if _, err := st.Notes().Rename(t.Context(), "a/travel.md", "b.md"); err != nil {
		t.Fatal(err)
	}
	expectNear(t, st, e, "money", "b.md:5-7 Kitchen, money.md:1-3 Bank")
	pending(t, st)
	if n := e.texts(); n != 0 {
		t.Errorf("%d texts were embedded for a rename", n)
	}
	if err := st.Notes().Delete(t.Context(), "money.md"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		expectNear(t, st, e, "money", "b.md:5-7 Kitchen")
		expectNear(t, other, e, "money", "b.md:5-7 Kitchen")
		storetest.AllWell(t, st.Admin().Verify(t.Context(), varve.VerifyOptions{}))
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		st = opened(t, dir, e.options())
	}
}

// TestMeaningsInBackground: a store with an embedder gives vectors to sections by itself, also to those that another
// process writes.
func TestMeaningsInBackground(t *testing.T) {
	dir, e := t.TempDir(), &topics{last: "sea"}
	other := opened(t, dir, nil)
	write(t, other, "travel.md", travel)
	o := e.options()
	o.NoBackground = false
	st := opened(t, dir, o)
	wait := func(text, want string) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); near(t, other, e, text) != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("near %q: %s, want %s", text, near(t, other, e, text), want)
			}
		}
	}
	wait("train", "travel.md:1-3 Travel")
	write(t, other, "sea.md", "the sea")
	wait("sea", "sea.md:1-1")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMeaningsOfModel: with another model no vector of the one before counts, and all sections get new ones.
func TestMeaningsOfModel(t *testing.T) {
	dir, e := t.TempDir(), &topics{last: "sea"}
	st := opened(t, dir, e.options())
	write(t, st, "travel.md", travel)
	write(t, st, "sea.md", "the sea and the sky")
	_, err := st.Put(t.Context(), varve.Memory{ID: "memory", Content: "sea"})
	if err != nil {
		t.Fatal(err)
	}
	pending(t, st)
	expectNear(t, st, e, "sea", "memory, sea.md:1-1")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	next := &topics{last: "sky"}
	st = opened(t, dir, next.options())
	if _, err := st.Vectors().Reembed(t.Context(), varve.ReembedOptions{}); err != nil {
		t.Fatal(err)
	}
	if has := near(t, st, next, "sky"); has != "" {
		t.Errorf("with vectors of the model before: %s", has)
	}
	next.texts()
	pending(t, st)
	if n := next.texts(); n != 3 {
		t.Errorf("%d texts were embedded", n)
	}
	expectNear(t, st, next, "sky", "sea.md:1-1")
	storetest.AllWell(t, st.Admin().Verify(t.Context(), varve.VerifyOptions{}))
}

// TestMeaningsRebuilt: files that are missing or damaged are made again, and the sections get their vectors again.
func TestMeaningsRebuilt(t *testing.T) {
	dir, e := t.TempDir(), &topics{last: "sea"}
	folder := filepath.Join(dir, filepath.FromSlash(places.Meanings))
	st := opened(t, dir, e.options())
	write(t, st, "travel.md", travel)
	pending(t, st)
	for _, hurt := range []func(name string, b []byte) error{
		func(name string, _ []byte) error { return os.Remove(name) },
		func(name string, b []byte) error { return os.WriteFile(name, b[:len(b)-1], 0o600) },
		func(name string, b []byte) error { b[len(b)-2] ^= 4; return os.WriteFile(name, b, 0o600) },
	} {
		for _, ending := range []string{"manifest.json", "*.st", "*.seg"} {
			if err := st.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(folder, ending))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			for _, name := range files {
				b, err := os.ReadFile(name)
				if err == nil {
					err = hurt(name, b)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			plan, err := varve.PlanRepair(t.Context(), dir, nil, varve.VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := plan.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			st = opened(t, dir, e.options())
			pending(t, st)
			expectNear(t, st, e, "train", "travel.md:1-3 Travel")
			storetest.AllWell(t, st.Admin().Verify(t.Context(), varve.VerifyOptions{}))
		}
	}
}

// TestMeaningsPurged: no file has the vector, or the hash, of a section of a purged note any more; the vectors of the
// others stay.
func TestMeaningsPurged(t *testing.T) {
	dir, e := t.TempDir(), &topics{last: "sea"}
	st := opened(t, dir, e.options())
	write(t, st, "travel.md", travel)
	write(t, st, "money.md", "# Bank\n\nmoney money\n")
	pending(t, st)
	before := contents(t, filepath.Join(dir, filepath.FromSlash(places.Meanings)))
	if _, err := st.Notes().Purge(t.Context(), "money.md"); err != nil {
		t.Fatal(err)
	}
	e.texts()
	pending(t, st)
	if n := e.texts(); n != 0 {
		t.Errorf("%d texts were embedded again after a purge", n)
	}
	expectNear(t, st, e, "money", "")
	expectNear(t, st, e, "train", "travel.md:1-3 Travel")
	after := contents(t, filepath.Join(dir, filepath.FromSlash(places.Meanings)))
	for name := range before {
		if after[name] != nil && strings.HasSuffix(name, ".seg") {
			t.Errorf("%s is still there", name)
		}
	}
	if len(after) != 3 {
		t.Errorf("%d files", len(after))
	}
	for name, b := range after {
		if want := 16 + 2*(32+4*4); strings.HasSuffix(name, ".seg") && len(b) != want {
			t.Errorf("%s has %d bytes, two vectors have %d", name, len(b), want)
		}
		if bytes.Contains(b, []byte("money")) {
			t.Errorf("%s has the path", name)
		}
	}
	storetest.AllWell(t, st.Admin().Verify(t.Context(), varve.VerifyOptions{}))
}

func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		if all[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestMeaningsMerge: many small additions are merged, and what was deleted leaves the files.
func TestMeaningsMerge(t *testing.T) {
	dir, e := t.TempDir(), &topics{last: "sea"}
	st := opened(t, dir, e.options())
	for i := range 40 {
		write(t, st, "n/"+strings.Repeat("x", i+1)+".md", strings.Repeat("food ", i+1)+"and a train")
		pending(t, st)
	}
	if n := e.texts(); n > 41 {
		t.Errorf("%d texts were embedded", n)
	}
	segments := func() (n int) {
		for name := range contents(t, filepath.Join(dir, filepath.FromSlash(places.Meanings))) {
			if strings.HasSuffix(name, ".seg") {
				n++
			}
		}
		return n
	}
	if n := segments(); n > 7 {
		t.Errorf("%d segments of 40 vectors", n)
	}
	for i := range 39 {
		if err := st.Notes().Delete(t.Context(), "n/"+strings.Repeat("x", i+1)+".md"); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Admin().Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := segments(); n != 1 {
		t.Errorf("%d segments of one vector", n)
	}
	expectNear(t, st, e, "food", "n/"+strings.Repeat("x", 40)+".md:1-1")
}

// TestMeaningsOfDimension: when the embedder of the same model makes vectors of another dimension, all sections get new
// ones, and are found by them.
func TestMeaningsOfDimension(t *testing.T) {
	dir, e := t.TempDir(), &topics{last: "sea"}
	st := opened(t, dir, e.options())
	write(t, st, "travel.md", travel)
	pending(t, st)
	expectNear(t, st, e, "train", "travel.md:1-3 Travel")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	wide := func(text string) []float32 { return append(e.vector(text), 0.01) }
	o, n := e.options(), 0
	o.Embed = func(_ context.Context, texts []string) (list [][]float32, err error) {
		for _, text := range texts {
			list, n = append(list, wide(text)), n+1
		}
		return list, nil
	}
	st = opened(t, dir, o)
	write(t, st, "sea.md", "the sea")
	pending(t, st)
	for text, want := range map[string]string{"train": "travel.md:1-3 Travel", "sea": "sea.md:1-1"} {
		if has := find(t, st, varve.Query{Vector: wide(text), MinScore: 0.6}); has != want {
			t.Errorf("near %q: %s, want %s", text, has, want)
		}
	}
	if n != 3 {
		t.Errorf("%d texts of 3 sections were embedded", n)
	}
	storetest.AllWell(t, st.Admin().Verify(t.Context(), varve.VerifyOptions{}))
}

// TestMeaningsRefused: sections that the embedder refuses do not hold up the others, and are not passed over silently.
// An embedder that is down is not asked for each section.
func TestMeaningsRefused(t *testing.T) {
	e := &topics{last: "sea"}
	tooLong, down, calls := errors.New("the text is too long"), errors.New("down"), 0
	var is error
	o := e.options()
	o.EmbedBatch = 4
	o.Embed = func(ctx context.Context, texts []string) ([][]float32, error) {
		calls++
		for _, text := range texts {
			if is == down || is == tooLong && strings.Contains(text, "long") {
				return nil, is
			}
		}
		return e.embed(ctx, texts)
	}
	st := opened(t, t.TempDir(), o)
	for i, text := range []string{"train", "long sea", "food", "long train", "food and food", "money"} {
		write(t, st, fmt.Sprint(i, ".md"), text)
	}
	is = tooLong
	_, err := st.Vectors().EmbedPending(t.Context())
	if !errors.Is(err, tooLong) || !strings.Contains(err.Error(), "refused 2 texts of sections") {
		t.Error(err)
	}
	expectNear(t, st, e, "train", "0.md:1-1")
	expectNear(t, st, e, "food", "2.md:1-1, 4.md:1-1")
	expectNear(t, st, e, "money", "5.md:1-1")
	is, calls = down, 0
	_, err = st.Vectors().EmbedPending(t.Context())
	if !errors.Is(err, down) || strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
	if calls != 2 {
		t.Errorf("an embedder that is down was called %d times", calls)
	}
	is = nil
	pending(t, st)
	expectNear(t, st, e, "train", "0.md:1-1, 3.md:1-1")
	expectNear(t, st, e, "sea", "1.md:1-1")
}

// TestMeaningsFitted: with VectorFit the vectors of sections get the store's dimension, as those of memories do.
func TestMeaningsFitted(t *testing.T) {
	e := &topics{last: "sea"}
	o := e.options()
	o.VectorFit = true
	st := opened(t, t.TempDir(), o)
	if _, err := st.Put(t.Context(), varve.Memory{ID: "memory", Embedding: []float32{0, 1}}); err != nil {
		t.Fatal(err)
	}
	write(t, st, "travel.md", travel)
	pending(t, st)
	if has := find(t, st, varve.Query{Vector: []float32{1, 0}, MinScore: 0.6}); has != "travel.md:1-3 Travel" {
		t.Errorf("near the first: %s", has)
	}
}

// TestMeaningsUnread: a note whose section cannot be read, here since a user has changed the file, does not hold up the
// others, however few are embedded at a time.
func TestMeaningsUnread(t *testing.T) {
	dir, e := t.TempDir(), &topics{last: "sea"}
	o := e.options()
	o.EmbedBatch = 1
	st := opened(t, dir, o)
	write(t, st, "money.md", "money")
	pending(t, st) // makes the files
	write(t, st, "a.md", "the train")
	write(t, st, "b.md", "the sea")
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes", "a.md"), []byte("some food"), 0o600); err != nil {
		t.Fatal(err)
	}
	pending(t, st)
	expectNear(t, st, e, "sea", "b.md:1-1")
	expectNear(t, st, e, "train", "")
}
