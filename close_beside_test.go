package varve

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/flush"
)

// putMany puts n memories of one word.
func putMany(t *testing.T, st *Store, n int) {
	t.Helper()
	done, err := st.PutAll(t.Context(), func(yield func(Memory) bool) {
		for i := range n {
			if !yield(Memory{ID: fmt.Sprintf("m%05d", i), Content: "x"}) {
				return
			}
		}
	})
	if done != int64(n) || err != nil {
		t.Fatal(done, err)
	}
}

// A Close behind another process that has flush.lock for longer than one waits for a lock waits while files get
// on, and leaves without the lock when its own are there; and gives up when nothing moves.
func TestCloseBehindAFlusher(t *testing.T) {
	t.Parallel()
	for _, gives := range []bool{true, false} {
		dir := t.TempDir()
		two := openTest(t, dir, &Options{NoBackground: true})
		held, err := two.engine.Log.LockFlush(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const n = 4 * flush.PaceFiles
		rounds := 0
		one := openTest(t, dir, &Options{NoBackground: true, LockWait: 60 * time.Millisecond, Listener: func(e Event) {
			if e.Kind == EventLockWait && gives { // it has waited for so long, and the other one makes some files
				rounds++
				if err := two.flusher.FlushLocked(t.Context(), held, flush.MergeWhenDue); err != nil {
					t.Error(err)
				}
			}
		}})
		putMany(t, one, n)
		err = one.Close()
		behind := two.engine.Log.Flushed() < two.engine.Log.Durable()
		switch {
		case gives && (err != nil || rounds < n/flush.PaceFiles || behind):
			t.Errorf("Close behind rounds of another process: %v after %d of them; behind: %v", err, rounds, behind)
		case !gives && (!errors.Is(err, ErrLocked) || !behind):
			t.Errorf("Close behind one who does nothing: %v; behind: %v", err, behind)
		}
		held.Unlock()
	}
}

// A Close makes files in rounds, between which others get flush.lock, and writes the index with the last.
func TestCloseInRounds(t *testing.T) {
	t.Parallel()
	var counts []int
	indexes := 0
	st := openTest(t, t.TempDir(), &Options{NoBackground: true, Listener: func(e Event) {
		switch e.Kind {
		case EventFlush:
			counts = append(counts, e.Count)
		case EventIndex:
			indexes++
		}
	}})
	putMany(t, st, 2*flush.QuietFiles+1)
	counts, indexes = nil, 0
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if len(counts) != 3 || counts[0] != flush.QuietFiles || counts[2] != 1 || indexes != 1 {
		t.Errorf("rounds of %d files, %d indexes; want %d, %[3]d, 1 and one index", counts, indexes, flush.QuietFiles)
	}
}
