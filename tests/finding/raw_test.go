package finding

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
)

// rawAll returns what ScanRaw yields, by id.
func rawAll(t *testing.T, st *varve.Store, filters ...varve.Filter) (docs map[string]string, errs []error) {
	t.Helper()
	docs = map[string]string{}
	var mu sync.Mutex
	err := st.Admin().ScanRaw(t.Context(), func(r varve.Raw, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.ID, err))
			return
		}
		if _, ok := docs[r.ID]; ok {
			t.Errorf("%s came twice", r.ID)
		}
		docs[r.ID] = string(r.Doc)
	}, filters...)
	if err != nil {
		t.Fatal(err)
	}
	return docs, errs
}

// ScanRaw yields what GetRaw returns, wherever the document is: in files that the index names, in the
// log, or edited by hand since.
func TestScanRaw(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx, dir := t.Context(), t.TempDir()
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := fixture.ClockAt(began)
	o := &varve.Options{NoBackground: true, Clock: clock.Now}
	st := fixture.Open(t, dir, o)
	put := func(from, to int, text string) {
		b := new(varve.Batch)
		for i := from; i < to; i++ {
			b.Put(varve.Memory{ID: fmt.Sprintf("m%04d", i), Content: text + strings.Repeat("long ", i%7*300),
				Metadata: map[string]any{"session_id": fmt.Sprint("s", i%3), "category": fmt.Sprint(i % 5)}})
		}
		if err := st.Apply(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	put(0, 1200, "first")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = fixture.Open(t, dir, o)
	put(300, 500, "second, in the file and in the log")
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	put(100, 150, "third, in the log alone")
	if err := st.Delete(ctx, "m0007"); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "m0008", Content: "over", ExpiresAt: began.Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	clock.Add(time.Hour)
	edited := filepath.Join(dir, "memories", "m0900.json")
	text, err := os.ReadFile(edited)
	if err == nil {
		err = os.WriteFile(edited, []byte(strings.Replace(string(text), "first", "by hand", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	rotten := filepath.Join(dir, "memories", "m0901.json") // of the same size and time
	info, err := os.Stat(rotten)
	if err == nil {
		text, err = os.ReadFile(rotten)
	}
	if err == nil {
		err = os.WriteFile(rotten, []byte(strings.Replace(string(text), "first", "thirs", 1)), 0o600)
	}
	if err == nil {
		err = os.Chtimes(rotten, info.ModTime(), info.ModTime())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, filters := range [][]varve.Filter{nil, {varve.InSession("s1")}, {varve.InCategory("2")},
		{varve.WithPrefix("m00"), varve.InSession("s0")}, {varve.After("m0500")}} {
		docs, errs := rawAll(t, st, filters...)
		if errs != nil {
			t.Error(errs)
		}
		n := 0
		for m, err := range st.Memories(ctx, filters...) {
			if err != nil {
				t.Fatal(err)
			}
			raw, err := st.Admin().GetRaw(ctx, m.ID)
			if n++; err != nil || docs[m.ID] != string(raw) {
				t.Fatalf("%s: %q, want %q, %v", m.ID, docs[m.ID], raw, err)
			}
		}
		if n != len(docs) {
			t.Errorf("%d filters: %d, want %d", len(filters), len(docs), n)
		}
	}
	if docs, _ := rawAll(t, st); len(docs) != 1198 || !strings.Contains(docs["m0900"],
		"by hand") || !strings.Contains(docs["m0901"], "first") {
		t.Errorf("%d, %s, %s", len(docs), docs["m0900"], docs["m0901"])
	}
}

// A document that cannot be read is named, and the others follow. The scan ends with its context, and
// with the store.
func TestScanRawBesideTheUnreadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	b := new(varve.Batch)
	for i := range 1001 { // so many are in the index after Close
		b.Put(varve.Memory{ID: fmt.Sprint("m", i), Content: "word"})
	}
	if err := st.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if strings.HasSuffix(op.Path, "memories/m7.json") {
			return syscall.EIO
		}
		return nil
	})
	st = fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: fsys}}))
	docs, errs := rawAll(t, st)
	if len(docs) != 1000 || len(errs) != 1 || !errors.Is(errs[0], syscall.EIO) ||
		!strings.HasPrefix(errs[0].Error(), "m7: ") {
		t.Errorf("%d, %v", len(docs), errs)
	}
	ctx, stop := context.WithCancel(t.Context())
	var once sync.Once
	if err := st.Admin().ScanRaw(ctx, func(varve.Raw, error) { once.Do(stop) }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := st.Admin().ScanRaw(t.Context(), func(varve.Raw, error) {}); !errors.Is(err, varve.ErrClosed) {
		t.Error(err)
	}
}

// A memory that is moved to another session while its previous session is listed is not in that listing.
func TestListedSessionIsLeft(t *testing.T) {
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	put := func(id, session string) {
		if _, err := st.Put(t.Context(),
			varve.Memory{ID: id, Content: "word", Metadata: map[string]any{"session_id": session}}); err != nil {
			t.Error(err)
		}
	}
	listed := func(list func(each func(id string, doc string))) {
		t.Helper()
		put("m1", "a")
		put("m2", "a")
		first := true
		var mu sync.Mutex
		list(func(id, doc string) {
			mu.Lock()
			defer mu.Unlock()
			if first {
				first = false
				put("m1", "b")
				put("m2", "b")
				return
			}
			if strings.Contains(doc, `"b"`) {
				t.Errorf("%s: %s", id, doc)
			}
		})
	}
	listed(func(each func(id, doc string)) {
		for m, err := range st.Memories(t.Context(), varve.InSession("a")) {
			if err != nil {
				t.Error(err)
			}
			each(m.ID, fmt.Sprintf("%q", m.Session()))
		}
	})
	old := runtime.GOMAXPROCS(1) // one reader: the second memory is read behind the first
	defer runtime.GOMAXPROCS(old)
	listed(func(each func(id, doc string)) {
		if err := st.Admin().ScanRaw(t.Context(), func(r varve.Raw, err error) { each(r.ID, string(r.Doc)) },
			varve.InSession("a")); err != nil {
			t.Error(err)
		}
	})
}
