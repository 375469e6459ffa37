package logs

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// A Close lets the background round in progress end: an interrupted round counts as failed, and the next
// one writes all its files again, with a sync of each.
func TestCloseLetsTheRoundEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var (
		mu     sync.Mutex
		made   = map[string]int{}
		begun  = make(chan struct{})
		closed = make(chan struct{})
		once   sync.Once
	)
	system := vfs.System{FS: wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
		if filepath.Base(filepath.Dir(op.To)) != "memories" {
			return call()
		}
		once.Do(func() { close(begun) })
		<-closed
		mu.Lock()
		made[filepath.Base(op.To)]++
		mu.Unlock()
		return call()
	})}
	st, err := varve.Open(t.Context(), dir, storetest.In(&varve.Options{}, storetest.Environment{System: system}))
	if err != nil {
		t.Fatal(err)
	}
	const n = 1000
	putMany(t, st, n)
	<-begun
	ended := make(chan error)
	go func() { ended <- st.Close() }()
	for !storetest.Inner(st).Engine.Closed().Load() {
		time.Sleep(time.Millisecond)
	}
	time.AfterFunc(50*time.Millisecond, func() { close(closed) }) // the background is canceled meanwhile
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if len(made) != n {
		t.Errorf("%d files were made, want %d", len(made), n)
	}
	for name, times := range made {
		if times > 1 {
			t.Fatalf("%s was put in place %d times", name, times)
		}
	}
}
