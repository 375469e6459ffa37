package logs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// putMany puts n memories of one word.
func putMany(t *testing.T, st *varve.Store, n int) {
	t.Helper()
	done, err := st.PutAll(t.Context(), func(yield func(varve.Memory) bool) {
		for i := range n {
			if !yield(varve.Memory{ID: fmt.Sprintf("m%05d", i), Content: "x"}) {
				return
			}
		}
	})
	if done != int64(n) || err != nil {
		t.Fatal(done, err)
	}
}

// If another process has flush.lock for longer than the maximum wait for a lock, a Close waits while
// files are being written, and returns without the lock when its own are there; it gives up when there
// is no progress.
func TestCloseBehindAFlusher(t *testing.T) {
	t.Parallel()
	for _, gives := range []bool{true, false} {
		dir := t.TempDir()
		two := fixture.Open(t, dir, &varve.Options{NoBackground: true})
		held, err := storetest.Inner(two).Engine.Log().LockFlush(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const n = 4 * flush.PaceFiles
		rounds := 0
		one := fixture.Open(t, dir, &varve.Options{NoBackground: true, LockWait: 60 * time.Millisecond,
			Listener: func(e varve.Event) {
				if e.Kind == varve.EventLockWait && gives { // it has waited for so long, and the other process writes some files
					rounds++
					if err := storetest.Inner(two).Flusher.FlushLocked(t.Context(), held, flush.MergeWhenDue); err != nil {
						t.Error(err)
					}
				}
			}})
		putMany(t, one, n)
		err = one.Close()
		behind := storetest.Inner(two).Engine.Log().Flushed() < storetest.Inner(two).Engine.Log().Durable()
		switch {
		case gives && (err != nil || rounds < n/flush.PaceFiles || behind):
			t.Errorf("Close behind rounds of another process: %v after %d of them; behind: %v", err, rounds, behind)
		case !gives && (!errors.Is(err, varve.ErrLocked) || !behind):
			t.Errorf("Close behind one who does nothing: %v; behind: %v", err, behind)
		}
		held.Unlock()
	}
}

// A Close writes files in rounds, between which others get flush.lock, and writes the index with the
// last. The same if the background round was canceled for it, which is repeated.
func TestCloseInRounds(t *testing.T) {
	t.Parallel()
	for _, givenUp := range []bool{false, true} {
		dir := t.TempDir()
		var counts []int
		indexes, lets := 0, 0
		var two *varve.Store
		sleep := func(ctx context.Context, _ time.Duration) error {
			held, err := storetest.Inner(two).Engine.Log().LockFlush(ctx)
			if err != nil {
				t.Error(err)
				return nil
			}
			held.Unlock()
			lets++
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var put atomic.Int64
		fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
			if givenUp && op.Kind == wrap.RenameNew {
				if put.Add(1) == 500 {
					cancel()
				}
			}
			return nil
		})
		o := &varve.Options{NoBackground: true, Listener: func(e varve.Event) {
			switch e.Kind {
			case varve.EventFlush:
				counts = append(counts, e.Count)
			case varve.EventIndex:
				indexes++
			}
		}}
		st, err := varve.Open(t.Context(), dir,
			storetest.In(o, storetest.Environment{System: vfs.System{Sleep: sleep, FS: fsys}}))
		if err != nil {
			t.Fatal(err)
		}
		two = fixture.Open(t, dir, &varve.Options{NoBackground: true})
		putMany(t, st, 2*flush.QuietFiles+1)
		if givenUp {
			held, err := storetest.Inner(st).Engine.Log().LockFlush(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := storetest.Inner(st).Flusher.FlushLocked(ctx, held, flush.MergeWhenDue); !errors.Is(err, context.Canceled) {
				t.Fatalf("a round that is given up after %d files: %v", put.Load(), err)
			}
			held.Unlock()
		}
		counts, indexes = nil, 0
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		if len(counts) != 3 || counts[0] != flush.QuietFiles || counts[2] != 1 || indexes != 1 || lets != 2 {
			t.Errorf("given up %v: rounds of %d files, %d indexes, lock let go of %d times; want %d, %[5]d, 1, one index, twice",
				givenUp, counts, indexes, lets, flush.QuietFiles)
		}
	}
}

// A Close with a deadline writes no more files when its time is over, and reports that; nothing is lost.
func TestCloseWithin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	indexes := 0
	listener := func(e varve.Event) {
		if e.Kind == varve.EventIndex {
			indexes++
		}
	}
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Listener: listener})
	const n = 5*flush.PaceFiles + 1
	putMany(t, st, n)
	before := indexes
	err := st.CloseWithin(time.Nanosecond)
	if !errors.Is(err, context.DeadlineExceeded) || !vfs.CanWait(err) || indexes != before {
		t.Errorf("no time to close: %v, %d indexes", err, indexes-before)
	}
	if !strings.Contains(fmt.Sprint(err), fmt.Sprintf("%d files are not written yet", n)) {
		t.Errorf("it does not say how many files are missing: %v", err)
	}
	if files, err := os.ReadDir(filepath.Join(dir, "memories")); err != nil || len(files) > flush.PaceFiles {
		t.Errorf("%d files were made, %v", len(files), err)
	}
	st = fixture.Open(t, dir, &varve.Options{NoBackground: true, Listener: listener})
	before = indexes
	if err := st.CloseWithin(time.Minute); err != nil || indexes != before {
		t.Errorf("with time to close: %v, %d indexes of %d entries", err, indexes-before, n)
	}
	st = fixture.Open(t, dir, &varve.Options{NoBackground: true})
	if got, err := st.Count(t.Context()); err != nil || got != n {
		t.Errorf("%d memories of %d, %v", got, n, err)
	}
}

// While a Close writes the words of an index, which may take minutes, it also writes files with what
// others write meanwhile: their Close does not wait for the words.
func TestCloseBesideWords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var closing atomic.Bool
	var beside error
	var once sync.Once
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if closing.Load() && op.Kind == wrap.SyncDir && strings.Contains(op.Path, "view_index") {
			once.Do(func() {
				st := fixture.Open(t, dir, &varve.Options{NoBackground: true, LockWait: 10 * time.Second})
				_, err := st.Put(t.Context(), varve.Memory{ID: "beside", Content: "x"})
				beside = errors.Join(err, st.Close())
			})
		}
		return nil
	})
	st, err := varve.Open(t.Context(), dir,
		storetest.In(&varve.Options{NoBackground: true}, storetest.Environment{System: vfs.System{FS: fsys}}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(t.Context(), varve.Memory{ID: "first", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	putMany(t, st, 2*flush.PaceFiles)
	closing.Store(true)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	once.Do(func() { t.Error("no file of a view was made") })
	if beside != nil {
		t.Errorf("a Close beside one that makes words: %v", beside)
	}
}

// After an unclean end no file of what the log has is trusted, and a Close with a deadline writes its
// files in rounds nevertheless: with all of them in one round there would never be progress.
func TestCloseWithinAfterUncleanEnd(t *testing.T) {
	t.Parallel()
	dir, crashed := t.TempDir(), filepath.Join(t.TempDir(), "crashed")
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	const n = 3*flush.PaceFiles + 1
	putMany(t, st, n)
	fixture.CopyDir(t, dir, crashed)
	var counts []int
	st = fixture.Open(t, crashed, &varve.Options{NoBackground: true, Listener: func(e varve.Event) {
		if e.Kind == varve.EventFlush {
			counts = append(counts, e.Count)
		}
	}})
	if st.Admin().OpenReport().Clean {
		t.Fatal("it ended cleanly")
	}
	if err := st.CloseWithin(time.Minute); err != nil {
		t.Fatal(err)
	}
	if len(counts) != 4 || slices.Max(counts) > flush.PaceFiles {
		t.Errorf("rounds of %d files", counts)
	}
	st = fixture.Open(t, crashed, &varve.Options{NoBackground: true})
	if storetest.Inner(st).Engine.Log().Notes().Distrusted() || !st.Admin().OpenReport().Clean {
		t.Error("it is not closed cleanly")
	}
	if got, err := st.Count(t.Context()); err != nil || got != n {
		t.Errorf("%d memories of %d, %v", got, n, err)
	}
}

// The progress of a long round is visible to processes that wait for its end.
func TestFlushTellsHowFar(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var flushed atomic.Pointer[varve.Store]
	var seen sync.Map
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if st := flushed.Load(); st != nil && op.Kind == wrap.RenameNew {
			seen.Store(storetest.Inner(st).Engine.Log().Pace().FiledTo(), true)
		}
		return nil
	})
	st, err := varve.Open(t.Context(), dir,
		storetest.In(&varve.Options{NoBackground: true},
			storetest.Environment{System: vfs.System{FS: fsys, RoundBytes: 64 << 10}}))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	putMany(t, st, flush.PaceFiles)
	flushed.Store(st)
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	seen.Range(func(any, any) bool { n++; return true })
	if n < 3 {
		t.Errorf("it was seen at %d places", n)
	}
}

// After an unclean end the background rounds are pieces, and the distrust ends although writers
// continue.
func TestTrustBesideWriters(t *testing.T) {
	t.Parallel()
	dir, crashed := t.TempDir(), filepath.Join(t.TempDir(), "crashed")
	putMany(t, fixture.Open(t, dir, &varve.Options{NoBackground: true}), 2*flush.QuietFiles+1)
	fixture.CopyDir(t, dir, crashed)
	most := 0
	st := fixture.Open(t, crashed, &varve.Options{NoBackground: true, Listener: func(e varve.Event) {
		if e.Kind == varve.EventFlush {
			most = max(most, e.Count)
		}
	}})
	rounds := 0
	for ; storetest.Inner(st).Engine.Log().Notes().Distrusted() && rounds < 10; rounds++ {
		if _, err := st.Put(t.Context(), varve.Memory{ID: "hot", Content: fmt.Sprint(rounds)}); err != nil {
			t.Fatal(err)
		}
		storetest.Inner(st).Flusher.FlushBackground(t.Context())
	}
	if rounds != 3 || most != flush.QuietFiles { // PaceFiles, QuietFiles, and the rest
		t.Errorf("trusted after %d rounds of %d files at most", rounds, most)
	}
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		if err != nil || f.Severity > varve.SeverityInfo {
			t.Errorf("%+v, %v", f, err)
		}
	}
}
