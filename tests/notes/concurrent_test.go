package notes

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// TestCreatedDuringSync verifies that a note can be written to the log while another goroutine makes another note
// durable: the creation of a note does not have to begin again after each sync of the log.
func TestCreatedDuringSync(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var armed atomic.Bool
	syncing, written := make(chan struct{}), make(chan struct{})
	var begins, writes sync.Once
	hook := func(op *wrap.Op, call func() error) error {
		log := strings.HasSuffix(op.Path, ".wal") && armed.Load()
		switch {
		case log && op.Kind == wrap.Write && op.Size < 4<<10: // an entry, and no zeros for later ones
			select {
			case <-syncing:
				writes.Do(func() { close(written) })
			default:
			}
		case log && (op.Kind == wrap.Sync || op.Kind == wrap.Datasync):
			first := false
			begins.Do(func() { first = true; close(syncing) })
			if first {
				select {
				case <-written:
				case <-time.After(20 * time.Second):
					t.Error("the second note was not written to the log before the first one was durable")
				}
			}
		}
		return call()
	}
	st := fixture.Open(t, t.TempDir(), storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: wrap.New(vfs.OS(), hook)}}))
	ns := st.Notes()
	if _, err := ns.Write(ctx, "first", []byte("x")); err != nil { // the feature is raised
		t.Fatal(err)
	}
	armed.Store(true)
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := ns.Write(ctx, "a/one", []byte("x")); err != nil {
			t.Error(err)
		}
	})
	<-syncing
	if _, err := ns.Write(ctx, "a/two", []byte("x")); err != nil {
		t.Error(err)
	}
	wg.Wait()
	armed.Store(false)
	if _, err := ns.Write(ctx, "a/one/below", []byte("x")); err == nil {
		t.Error("a note was created below a note")
	}
}

// TestAncestorCreatedDuringSync verifies that a note is refused if another one, which excludes it, is in the log and
// not durable yet.
func TestAncestorCreatedDuringSync(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var armed atomic.Bool
	syncing, begun := make(chan struct{}), make(chan struct{})
	var begins sync.Once
	hook := func(op *wrap.Op, call func() error) error {
		if armed.Load() && strings.HasSuffix(op.Path, ".wal") && (op.Kind == wrap.Sync || op.Kind == wrap.Datasync) {
			begins.Do(func() {
				close(syncing)
				<-begun
			})
		}
		return call()
	}
	st := fixture.Open(t, t.TempDir(), storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: wrap.New(vfs.OS(), hook)}}))
	ns := st.Notes()
	if _, err := ns.Write(ctx, "first", []byte("x")); err != nil {
		t.Fatal(err)
	}
	armed.Store(true)
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := ns.Write(ctx, "a", []byte("x")); err != nil {
			t.Error(err)
		}
	})
	<-syncing
	time.AfterFunc(200*time.Millisecond, func() { close(begun) }) // the note below is refused, whenever that is
	if _, err := ns.Write(ctx, "a/below", []byte("x")); err == nil || !strings.Contains(err.Error(), "needs a folder") {
		t.Errorf("created below a note: %v", err)
	}
	wg.Wait()
}
