package logs

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/working"
)

// Close waits for a slow disk: it abandons nothing as long as the log makes progress.
func TestCloseOnSlowLog(t *testing.T) {
	t.Parallel()
	const wait, n = 2 * time.Second, 6
	var slow atomic.Bool
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if slow.Load() && op.Kind == wrap.Datasync && strings.Contains(op.Path, "wal") {
			time.Sleep(wait / (n - 2))
		}
		return nil
	})
	st, err := varve.Open(t.Context(), t.TempDir(),
		storetest.In(&varve.Options{NoBackground: true, LockWait: wait}, storetest.Environment{System: vfs.System{FS: fsys}}))
	if err != nil {
		t.Fatal(err)
	}
	slow.Store(true)
	var list []*varve.Pending
	for range n { // one after the other
		list = append(list, st.PutAsync(varve.Memory{ID: "m", Content: "x"}))
	}
	if err := st.Close(); err != nil {
		t.Errorf("Close says: %v", err)
	}
	for _, p := range list {
		if _, err := p.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A disk that accepts no sync anymore does not block Close forever: writes for which no caller waits are
// abandoned after LockWait, and named.
func TestCloseOnPoisonedLog(t *testing.T) {
	t.Parallel()
	// Once a sync has failed the log accepts nothing and reports that; what was written before waits,
	// here for the first outcome.
	t.Run("working", func(t *testing.T) {
		testCloseOnPoisonedLog(t, "working memory of session:a%3Ab: 1", func(st *varve.Store, w *working.Memory) {
			ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer stop()
			if err := w.Set(ctx, "k", 1); !errors.Is(err, varve.ErrOutcomeUnknown) {
				t.Errorf("the caller was told %v", err)
			}
			if _, err := st.Put(t.Context(), varve.Memory{ID: "m", Content: "x"}); !errors.Is(err, varve.ErrSyncFailed) {
				t.Errorf("put: %v", err)
			}
		})
	})
	t.Run("PutAsync", func(t *testing.T) {
		var p *varve.Pending
		testCloseOnPoisonedLog(t, "PutAsync: 1", func(st *varve.Store, w *working.Memory) {
			p = st.PutAsync(varve.Memory{ID: "m", Content: "x"})
		})
		if _, err := p.Wait(t.Context()); !errors.Is(err, varve.ErrOutcomeUnknown) {
			t.Errorf("PutAsync: %v", err)
		}
	})
}

func testCloseOnPoisonedLog(t *testing.T, named string, begin func(st *varve.Store, w *working.Memory)) {
	var broken atomic.Bool
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if broken.Load() && (op.Kind == wrap.Datasync || op.Kind == wrap.Sync) && strings.Contains(op.Path, "wal") {
			return errors.New("the disk is gone")
		}
		return nil
	})
	// With a clock that stands still, no writer gives up by itself.
	clock := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	st, err := varve.Open(t.Context(), t.TempDir(),
		storetest.In(&varve.Options{NoBackground: true, Clock: clock, LockWait: 300 * time.Millisecond},
			storetest.Environment{System: vfs.System{FS: fsys}}))
	if err != nil {
		t.Fatal(err)
	}
	w, err := st.Working().Open(t.Context(), working.Scope{Session: "a:b"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Set(t.Context(), "before", 1); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	begin(st, w)
	closed := make(chan error, 1)
	go func() { closed <- st.Close() }()
	select {
	case err = <-closed:
	case <-time.After(time.Minute):
		t.Fatal("Close waits")
	}
	if !errors.Is(err, varve.ErrOutcomeUnknown) || !strings.Contains(err.Error(), named) {
		t.Errorf("Close says: %v", err)
	}
}
