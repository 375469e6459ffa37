package words_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// watched opens a store with a file system of which each operation passes through op.
func watched(t *testing.T, dir string, op func(op *wrap.Op, call func() error) error) *varve.Store {
	t.Helper()
	st, err := varve.Open(t.Context(), dir, storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: wrap.New(vfs.OS(), op)}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func writeNote(t *testing.T, st *varve.Store, path, text string) {
	t.Helper()
	if _, err := st.Notes().Write(t.Context(), path, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// placesOf returns path and lines of the hits in notes.
func placesOf(t *testing.T, st *varve.Store, text string) string {
	t.Helper()
	hits, err := st.Search(t.Context(), varve.Query{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, h := range hits {
		list = append(list, fmt.Sprintf("%s:%d-%d", h.Note.Path, h.Note.From, h.Note.To))
	}
	return strings.Join(list, " ")
}

// TestOnlyChangedNotesAreRead: neither a flush nor a search reads notes that have not changed since the files of
// sections were written, however many there are, nor does another process that opens the store.
func TestOnlyChangedNotesAreRead(t *testing.T) {
	dir := t.TempDir()
	var reads atomic.Int64
	count := func(op *wrap.Op, call func() error) error {
		if op.Kind == wrap.Open && strings.HasPrefix(op.Path, filepath.Join(dir, "notes")) {
			reads.Add(1)
		}
		return call()
	}
	st := watched(t, dir, count)
	for i := range 100 {
		writeNote(t, st, fmt.Sprintf("n%d.md", i), fmt.Sprintf("# Boat\nsail%d\n", i))
	}
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	writeNote(t, st, "n7.md", "# Boat\nanchor\n")
	reads.Store(0)
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := reads.Load(); n > 10 {
		t.Errorf("a flush of one note opens %d files of notes", n)
	}
	for i, st := range []*varve.Store{st, watched(t, dir, count)} {
		reads.Store(0)
		if got := placesOf(t, st, "anchor"); got != "n7.md:1-2" {
			t.Error(got)
		}
		if n := reads.Load(); n > 10 {
			t.Errorf("%d: a search with one hit opens %d files of notes", i, n)
		}
	}
}

// TestSectionsFail: whichever operation on the files of sections fails, a flush succeeds, searches of this process and
// of another one find what there is, and a later flush writes the files.
func TestSectionsFail(t *testing.T) {
	t.Parallel()
	for at, failed := int64(1), true; failed; at++ {
		if failed = false; at > 200 {
			t.Fatal("operations without end")
		}
		dir := t.TempDir()
		var n, on atomic.Int64
		folder := filepath.Join(dir, filepath.FromSlash(places.Sections))
		st := watched(t, dir, func(op *wrap.Op, call func() error) error {
			if on.Load() == 1 && (strings.HasPrefix(op.Path, folder) || strings.HasPrefix(op.To, folder)) && n.Add(1) == at {
				return syscall.EIO
			}
			return call()
		})
		for i := range 8 {
			writeNote(t, st, fmt.Sprintf("n%d.md", i), fmt.Sprintf("# Boat\nsail%d\n", i))
			if err := st.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		on.Store(1)
		writeNote(t, st, "n3.md", "# Boat\nanchor\n")
		if err := st.Notes().Delete(t.Context(), "n4.md"); err != nil {
			t.Fatal(err)
		}
		if err := st.Flush(t.Context()); err != nil {
			t.Fatalf("operation %d: %v", at, err)
		}
		failed = n.Load() >= at
		on.Store(0)
		look := func(when string, st *varve.Store) {
			t.Helper()
			for word, want := range map[string]string{"anchor": "n3.md:1-2", "sail3": "", "sail4": "", "sail5": "n5.md:1-2"} {
				if got := placesOf(t, st, "+"+word); got != want {
					t.Errorf("operation %d: %s: %s finds %q, want %q", at, when, word, got, want)
				}
			}
		}
		other := watched(t, dir, func(_ *wrap.Op, call func() error) error { return call() })
		look("behind the failure", st)
		look("another process", other)
		writeNote(t, other, "n9.md", "later")
		if err := errors.Join(other.Flush(t.Context()), st.Flush(t.Context())); err != nil {
			t.Fatal(err)
		}
		look("flushed again", st)
		for f := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
			t.Errorf("operation %d: %v", at, f)
		}
		if err := errors.Join(other.Close(), st.Close()); err != nil {
			t.Error(err)
		}
	}
}
