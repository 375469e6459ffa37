package letters

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/adopt"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/internal/views"
)

// TestEditsBesideView: edits of files are adopted, and deletions settled, while a view processes an index, which may
// take minutes; the adoption leaves index and views to the background goroutine.
func TestEditsBesideView(t *testing.T) {
	var saves atomic.Pointer[func()]
	dir := t.TempDir()
	st, err := varve.Open(t.Context(), dir, storetest.In(&varve.Options{}, storetest.Environment{
		Views: []views.Maker{func(eng *engine.Engine) view.View { return slow{New(eng), &saves} }}}))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, path := range []string{"a.md", "b.md"} {
		if _, err := st.Notes().Write(t.Context(), path, []byte("first")); err != nil {
			t.Fatal(err)
		}
	}
	flush(t, st)
	entered, leave := make(chan struct{}, 100), make(chan struct{})
	wait := func() {
		entered <- struct{}{}
		<-leave
	}
	saves.Store(&wait)
	free := once(leave)
	defer free()
	within := func(what string, do func() error) {
		t.Helper()
		done := make(chan error, 1)
		go func() { done <- do() }()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(what, err)
			}
		case <-time.After(time.Minute):
			free()
			t.Fatal(what, "waits for the view")
		}
	}
	file := func(name string) string { return filepath.Join(dir, "notes", name) }
	files := adopt.NewFiles(storetest.Inner(st).Adopter)
	edit := func(text string) {
		t.Helper()
		if err := os.WriteFile(file("a.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		within("the adoption", func() error {
			_, _, err := files.LookNow(t.Context(), "notes", []string{"a.md"})
			return err
		})
	}
	edit("second")
	within("the background goroutine", func() error { <-entered; return nil })
	edit("third")
	if err := os.Remove(file("b.md")); err != nil {
		t.Fatal(err)
	}
	within("the deletion", func() error {
		gone, err := files.Gone(t.Context(), "notes", []string{"b.md"})
		if err != nil {
			return err
		}
		return files.Settle(t.Context(), "notes", gone)
	})
	has := map[string]bool{}
	for v, err := range st.Notes().History(t.Context(), "a.md") {
		if err != nil {
			t.Fatal(err)
		}
		has[fmt.Sprintf("%x", v.ContentHash)] = true
	}
	for _, text := range []string{"second", "third"} {
		if !has[fmt.Sprintf("%x", sha256.Sum256([]byte(text)))] {
			t.Errorf("the history lacks %q", text)
		}
	}
	if _, err := st.Notes().Read(t.Context(), "b.md"); !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
	free()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if s := st.Admin().Stats(); s.Spilled == s.Durable {
			break
		} else if time.Now().After(end) {
			t.Fatalf("the index that is due was not written: %+v", s)
		}
	}
	for f := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Error(f)
	}
}

// once returns a function that closes a channel once.
func once(c chan struct{}) func() {
	var done atomic.Bool
	return func() {
		if done.CompareAndSwap(false, true) {
			close(c)
		}
	}
}
