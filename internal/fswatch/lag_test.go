package fswatch_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/working"
)

// An edit or a deletion of a memory that was put while the file of a large scope lags is adopted as
// usual: it need not wait until that file is written.
func TestWhileAScopeLags(t *testing.T) {
	t.Parallel()
	h := watched(t, quick)
	w, err := h.st.Working().Open(t.Context(), working.Scope{Session: "large"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mib := 40 // and seconds
	if proofs.Race() {
		mib = 20
	}
	for i := range mib {
		if err := w.Set(t.Context(), fmt.Sprint("k", i), strings.Repeat("x", 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	h.flush()
	lagging := func() bool { s := h.st.Admin().Stats(); return s.Flushed < s.Durable }
	put := func(id string) {
		t.Helper()
		if err := w.Set(t.Context(), "small", id); err != nil {
			t.Fatal(err)
		}
		h.put(id, "one")
		for end := time.Now().Add(deadline); ; time.Sleep(5 * time.Millisecond) {
			if _, err := os.Stat(h.path(id)); err == nil {
				break
			} else if !errors.Is(err, fs.ErrNotExist) || time.Now().After(end) {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * quick.Quiet) // the files that the flusher wrote are checked
		if !lagging() {
			t.Fatal("the scope does not lag")
		}
	}
	put("a")
	h.save(h.path("a"), h.edited("a", "one", "edited"))
	h.await(varve.EventAdopted, "a", nil)
	h.want("a", "edited")
	put("b")
	if err := os.Remove(h.path("b")); err != nil {
		t.Fatal(err)
	}
	h.await(varve.EventDeleted, "b", nil)
	if _, err := h.st.Get(t.Context(), "b"); !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
}
