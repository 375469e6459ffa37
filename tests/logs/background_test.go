package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/flush"
	"github.com/varve-db/varve/internal/scratch"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// While a process writes, a background round is small and followed by a pause; when no process writes,
// the rest of a burst is put into files without a pause.
func TestRestAfter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		took, want  time.Duration
		wrote, more bool
		full        float64
	}{
		{10 * time.Millisecond, 90 * time.Millisecond, true, true, 0},
		{10 * time.Millisecond, 90 * time.Millisecond, false, false, 0},
		{time.Minute, flush.FlushEvery, true, true, 0},
		{10 * time.Millisecond, 0, false, true, 0},
		{10 * time.Millisecond, 45 * time.Millisecond, true, true, 0.25},
		{time.Minute, 0, true, true, 0.5},
		{time.Minute, 0, true, true, 3},
	} {
		if got := flush.RestAfter(c.took, c.wrote, c.more, c.full); got != c.want {
			t.Errorf("%+v: rests %v", c, got)
		}
	}
}

func TestBackgroundRounds(t *testing.T) {
	t.Parallel()
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	const n = flush.QuietFiles + 1
	done, err := st.PutAll(t.Context(), func(yield func(varve.Memory) bool) {
		for i := range n {
			if !yield(varve.Memory{ID: fmt.Sprintf("m%05d", i), Content: "x"}) {
				return
			}
		}
	})
	if done != n || err != nil {
		t.Fatal(done, err)
	}
	c, err := storetest.Inner(st).Engine.Log().Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	for quiet, want := range map[bool]int{false: flush.PaceFiles, true: flush.QuietFiles} {
		storetest.Inner(st).Flusher.Quiet.Store(quiet)
		list, to, err := storetest.Inner(st).Flusher.Due(t.Context(), flush.MergeWhenDue, c)
		if err != nil || len(list) != want || to.LSN <= list[want-1].Pos ||
			to.LSN >= storetest.Inner(st).Engine.Log().Durable() {
			t.Errorf("quiet %v: %d files up to %d of %d, %v", quiet, len(list), to.LSN,
				storetest.Inner(st).Engine.Log().Durable(), err)
		}
	}
	if list, to, err := storetest.Inner(st).Flusher.Due(t.Context(), flush.MergeFlush,
		c); err != nil || len(list) != n || to.LSN != storetest.Inner(st).Engine.Log().Durable() {
		t.Errorf("a flush takes %d up to %d, %v", len(list), to.LSN, err)
	}
	storetest.Inner(st).Flusher.Quiet.Store(false)
	if rest, did := storetest.Inner(st).Flusher.FlushBackground(t.Context()); !did || rest != 0 {
		t.Errorf("after a round that left more, while nobody writes: rests %v, %v", rest, did)
	}
	held, err := storetest.Inner(st).Engine.Log().LockFlush(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if rest, did := storetest.Inner(st).Flusher.FlushBackground(t.Context()); !did || rest == 0 {
		t.Errorf("asks to be called again at once while somebody else is at it: %v, %v", rest, did)
	}
	held.Unlock()
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rest, did := storetest.Inner(st).Flusher.FlushBackground(t.Context()); did {
		t.Errorf("did what there is not to do, and rests %v", rest)
	}
}

// While a process writes, the pause after a round is shared by all processes: with a separate one each,
// the writers would get no share of the disk.
func TestRestForAll(t *testing.T) {
	t.Parallel()
	dir, up := t.TempDir(), time.Hour
	var during atomic.Pointer[func()]
	options := func() *varve.Options {
		return storetest.In(&varve.Options{NoBackground: true, Listener: func(e varve.Event) {
			if f := during.Load(); f != nil && e.Kind == varve.EventFlush {
				(*f)()
			}
		}}, storetest.Environment{System: vfs.System{Uptime: func() time.Duration { return up }}})
	}
	one, two := fixture.Open(t, dir, options()), fixture.Open(t, dir, options())
	put := func(st *varve.Store, id string) {
		if _, err := st.Put(t.Context(), varve.Memory{ID: id, Content: "x"}); err != nil {
			t.Error(err)
		}
	}
	put(one, "a")
	if storetest.Inner(one).Flusher.Resting() != 0 || storetest.Inner(two).Flusher.Resting() != 0 {
		t.Fatal("they rest before anything was done", storetest.Inner(one).Flusher.Resting(),
			storetest.Inner(two).Flusher.Resting())
	}
	written := func() { put(two, "b") } // the store that writes is not the one that flushes
	during.Store(&written)
	rest, did := storetest.Inner(one).Flusher.FlushBackground(t.Context())
	during.Store(nil)
	if !did || rest < flush.RestFactor*time.Millisecond || rest > flush.FlushEvery {
		t.Fatalf("a round while somebody writes: rests %v, %v", rest, did)
	}
	for _, st := range []*varve.Store{one, two} {
		if got := storetest.Inner(st).Flusher.Resting(); got < rest-time.Millisecond || got > rest {
			t.Errorf("rests %v, was told %v", got, rest)
		}
	}
	up += rest
	if storetest.Inner(one).Flusher.Resting() != 0 || storetest.Inner(two).Flusher.Resting() != 0 {
		t.Error("the rest has no end", storetest.Inner(one).Flusher.Resting(), storetest.Inner(two).Flusher.Resting())
	}
	held, err := storetest.Inner(two).Engine.Log().LockFlush(t.Context())
	if err == nil {
		err = storetest.Inner(two).Engine.Log().Pace().SetRest(held, (up + 2*flush.FlushEvery).Milliseconds())
		held.Unlock()
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := storetest.Inner(one).Flusher.Resting(); got != 0 {
		t.Errorf("believes in a rest of %v", got)
	}
	if rest,
		did := storetest.Inner(two).Flusher.FlushBackground(t.Context()); !did ||
		storetest.Inner(two).Engine.Log().Flushed() != storetest.Inner(two).Engine.Log().Durable() {
		t.Errorf("the other has not done what is left: %v, %v", rest, did)
	}
}

// Several rounds of one flush, where the files of the next are put while the last is made durable, and
// the index with them: everything is there, and reads return it.
func TestFlushInRounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := storetest.In(&varve.Options{NoBackground: true}, storetest.Environment{System: vfs.System{RoundBytes: 128 << 10}})
	st := fixture.Open(t, dir, o)
	const n = 1000
	for pass := range 3 {
		var wg sync.WaitGroup
		for part := range 2 {
			wg.Go(func() {
				_, err := st.PutAll(t.Context(), func(yield func(varve.Memory) bool) {
					for i := part; i < n; i += 2 {
						if !yield(varve.Memory{ID: fmt.Sprintf("m%05d", i), Content: fmt.Sprint("pass ", pass)}) {
							return
						}
					}
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if err := st.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if storetest.Inner(st).Engine.State().Overlay().Len() != 0 {
			t.Errorf("the index lacks %d", storetest.Inner(st).Engine.State().Overlay().Len())
		}
		for _, i := range []int{0, 1, 200, 500, 800, n - 1} {
			m, err := st.Get(t.Context(), fmt.Sprintf("m%05d", i))
			if err != nil || m.Content != fmt.Sprint("pass ", pass) {
				t.Fatalf("pass %d: m%05d is %q, %v", pass, i, m.Content, err)
			}
		}
	}
	names, err := storetest.Inner(st).Engine.Kinds().Memories.Names()
	if err != nil || len(names) != n {
		t.Errorf("%d files, %v; want %d", len(names), err, n)
	}
}

// FAILURES 71: a barrier failed in a flush of several rounds. Everything that was put in this flush is
// written again by the next one, of whatever kind, each file into a fresh inode and synced separately;
// the mark has not moved.
func TestFailedBarrierAmongRounds(t *testing.T) {
	t.Parallel()
	var fail atomic.Bool
	var mu sync.Mutex
	synced, barriers := map[string]bool{}, 0
	hook := func(op *wrap.Op, call func() error) error {
		switch {
		case op.Kind == wrap.Barrier && fail.Load():
			mu.Lock()
			defer mu.Unlock()
			if barriers++; barriers == 2 {
				return syscall.EIO
			}
		case op.Kind == wrap.Sync && strings.Contains(op.Path, "tmp"):
			mu.Lock()
			synced[op.Path] = true
			mu.Unlock()
		}
		return call()
	}
	// On a tmpfs there is no barrier: see vfs.
	st := fixture.Open(t, scratch.Disk(t), storetest.In(&varve.Options{NoBackground: true,
		Logger: slog.New(slog.DiscardHandler)},
		storetest.Environment{System: vfs.System{RoundBytes: 128 << 10, FS: wrap.New(vfs.OS(), hook)}}))
	const n = 1200
	put := func(content string) {
		t.Helper()
		_, err := st.PutAll(t.Context(), func(yield func(varve.Memory) bool) {
			for i := range n {
				if !yield(varve.Memory{ID: fmt.Sprintf("m%05d", i), Content: content}) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	put("one")
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	put("two")
	flushed := storetest.Inner(st).Engine.Log().Flushed()
	fail.Store(true)
	if err := st.Flush(t.Context()); !errors.Is(err, varve.ErrSyncFailed) {
		t.Fatalf("a barrier failed: %v", err)
	}
	fail.Store(false)
	if barriers < 2 || storetest.Inner(st).Engine.Log().Flushed() != flushed {
		t.Fatalf("%d barriers, flushed %d, was %d", barriers, storetest.Inner(st).Engine.Log().Flushed(), flushed)
	}
	clear(synced)
	if rest, did := storetest.Inner(st).Flusher.FlushBackground(t.Context()); !did || rest == 0 {
		t.Errorf("the repetition, after which nothing is left: rests %v, %v", rest, did)
	}
	if len(synced) < n {
		t.Errorf("%d of %d files were synced each", len(synced), n)
	}
	if m, err := st.Get(t.Context(), "m01199"); err != nil || m.Content != "two" {
		t.Errorf("%q, %v", m.Content, err)
	}
}

// A flush that is canceled, as in the background when the store is closed, is no failure that must be
// reported; the next one does its work.
func TestFlushGivenUp(t *testing.T) {
	t.Parallel()
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	var begun atomic.Bool
	dir := t.TempDir()
	placed := filepath.Join(dir, "tmp") + string(filepath.Separator) // from where files are put in place
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if begun.Load() && strings.HasPrefix(op.Path, placed) {
			giveUp()
		}
		return nil
	})
	var log bytes.Buffer
	var told fixture.Events
	st := fixture.Open(t, dir, storetest.In(&varve.Options{
		NoBackground: true, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Listener: told.Hear,
	}, storetest.Environment{System: vfs.System{FS: fsys}}))
	for i := range 20 {
		if _, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprint("m", i), Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	begun.Store(true)
	if err := st.Flush(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it was not given up: %v", err)
	}
	for _, e := range told.All() {
		if e.Kind == varve.EventFlushError {
			t.Errorf("%+v", e)
		}
	}
	if h := st.Health(t.Context()); !h.OK || log.Len() > 0 {
		t.Errorf("%v: %s", h.Problems, log.String())
	}
	if err := st.Flush(t.Context()); err != nil {
		t.Error(err)
	}
}
