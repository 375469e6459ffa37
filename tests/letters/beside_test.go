package letters

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/internal/views"
	"github.com/varve-db/varve/wal"
)

// slow is a view that is slow to save.
type slow struct {
	view.View
	saves *atomic.Pointer[func()]
}

func (s slow) Save(ctx context.Context, f *view.Folder, at wal.Mark) error {
	if wait := s.saves.Load(); wait != nil {
		(*wait)()
	}
	return s.View.Save(ctx, f, at)
}

// TestFilesBesideView: while a view processes an index, documents continue to be put into files, and
// operations that need the files wait for both.
func TestFilesBesideView(t *testing.T) {
	var saves atomic.Pointer[func()]
	flushed := make(chan struct{}, 1000)
	o := storetest.In(&varve.Options{Listener: func(e varve.Event) {
		if e.Kind == varve.EventFlush { // sent after the marks are written; Count is 0 if there was only an index to write
			flushed <- struct{}{}
		}
	}}, storetest.Environment{System: vfs.System{SpillBytes: 4 << 10},
		Views: []views.Maker{func(eng *engine.Engine) view.View { return slow{New(eng), &saves} }}})
	st, err := varve.Open(t.Context(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	put(t, st, "anna")
	flush(t, st) // the first index with views writes to the checkpoint too, and nothing runs in parallel with it
	entered := make(chan struct{}, 1)
	hold := func() (leave chan struct{}) { // each save from here on waits until leave is closed
		leave = make(chan struct{})
		wait := func() {
			select {
			case entered <- struct{}{}:
			default:
			}
			<-leave
		}
		saves.Store(&wait)
		return leave
	}
	leave := hold()
	within := func(what string, c <-chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(time.Minute):
			if leave != nil {
				close(leave)
			}
			t.Fatal(what)
		}
	}
	put(t, st, "bert")
	within("the view was not asked to save", entered)
	put(t, st, "cleo", strings.Repeat("long id ", 100), strings.Repeat("longer id ", 100),
		strings.Repeat("a long id ", 99))
	for s := st.Admin().Stats(); s.Flushed != s.Durable; s = st.Admin().Stats() {
		within("no file was written while the view saved", flushed)
	}
	free := func() {}
	saves.Store(&free)
	close(leave)
	leave = nil
	// None could be written meanwhile, and no process writes anymore.
	for s := st.Admin().Stats(); s.Spilled != s.Durable; s = st.Admin().Stats() {
		within("the index that had become due was not written", flushed)
	}
	for len(entered) > 0 {
		<-entered
	}
	leave = hold()
	put(t, st, "dora")
	within("the view was not asked to save again", entered)
	purged := make(chan error, 1)
	go func() {
		_, err := st.Admin().Purge(t.Context(), "bert")
		purged <- err
	}()
	close(leave)
	if err := <-purged; err != nil {
		t.Fatal(err)
	}
	flush(t, st)
	for f := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Error(f)
	}
}
