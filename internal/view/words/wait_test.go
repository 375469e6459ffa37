package words_test

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// TestWaitsForFiles: the files of the words follow an index. A search that has much of what it took in goes
// on with that, and does not read it from the log again; once the files are there it uses them.
func TestWaitsForFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func(hook func(op *wrap.Op) error, clock func() time.Time) *varve.Store {
		o := storetest.In(&varve.Options{NoBackground: true, Clock: clock},
			storetest.Environment{System: vfs.System{FS: fault.New(vfs.OS(), hook)}})
		st, err := varve.Open(t.Context(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = st.Close() })
		return st
	}
	var full atomic.Bool
	var later atomic.Int64
	writer := start(func(op *wrap.Op) error {
		if full.Load() && op.Kind == wrap.Rename && strings.Contains(op.To, folder) {
			return syscall.ENOSPC
		}
		return nil
	}, func() time.Time { return time.Now().Add(time.Duration(later.Load())) })
	var fromLog, segments atomic.Int64
	reader := start(func(op *wrap.Op) error {
		switch {
		case op.Kind == wrap.Read && strings.Contains(op.Path, "wal"):
			fromLog.Add(int64(op.Size))
		case op.Kind == wrap.Open && filepath.Ext(op.Path) == ".seg":
			segments.Add(1)
		}
		return nil
	}, time.Now)
	finds := func(word string, id string) {
		t.Helper()
		if hits, err := reader.Search(t.Context(),
			varve.Query{Text: word}); err != nil || len(hits) == 0 || hits[0].ID != id {
			t.Fatal(hits, err)
		}
	}
	put(t, writer, 0, 10)
	flush(t, writer)
	put(t, writer, 10, 6000)
	finds("number5999", "m5999")
	full.Store(true)
	flush(t, writer)
	fromLog.Store(0)
	finds("number5998", "m5998")
	if n := fromLog.Load(); n > 200<<10 {
		t.Errorf("%d bytes of the log were read though nothing is new", n)
	}
	full.Store(false)
	later.Store(int64(2 * time.Minute))
	segments.Store(0)
	if err := writer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	finds("number5997", "m5997")
	if segments.Load() == 0 {
		t.Error("the files are there, and are not used")
	}
	put(t, writer, 6000, 6001)
	finds("number6000", "m6000")
	fresh := open(t, dir)
	if got, want := answers(t, reader), answers(t, fresh); got != want {
		t.Errorf("%s\n, and another process finds\n%s", got, want)
	}
}
