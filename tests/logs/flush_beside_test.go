package logs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/repair"
)

// slowIndex is a store whose index is larger than what each round writes, and is stopped or fails at a
// call that writes it in the background.
type slowIndex struct {
	t       *testing.T
	dir     string
	st      *varve.Store
	n       int
	entered chan struct{}
	marks   atomic.Int64 // times that a checkpoint was made durable
	fate    atomic.Pointer[fate]
}

// fate is what happens to a call.
type fate struct {
	at func(op *fault.Op) bool
	do func() error
}

func temporary(op *fault.Op) bool {
	return filepath.Base(filepath.Dir(op.Path)) == "tmp" && strings.HasPrefix(filepath.Base(op.Path), "index.")
}

// The calls that write an index: into its temporary file, into its place, and those that follow.
func intoFile(op *fault.Op) bool { return op.Kind == wrap.Write && temporary(op) }
func syncOf(op *fault.Op) bool   { return op.Kind == wrap.Sync && temporary(op) }
func toPlace(op *fault.Op) bool  { return op.Kind == wrap.Rename && temporary(op) }
func ofDelta(op *fault.Op) bool {
	return op.Kind == wrap.Remove && filepath.Base(op.Path) == "memory_index.delta.json"
}

// inPlace reports whether a call makes the index durable in its place.
func (s *slowIndex) inPlace(op *fault.Op) bool {
	return op.Kind == wrap.SyncDir && op.Path == s.dir
}

func openSlowIndex(t *testing.T) *slowIndex {
	s := &slowIndex{t: t, dir: filepath.Join(t.TempDir(), "s"), entered: make(chan struct{}, 100)}
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if op.Kind.Syncs() && filepath.Base(op.Path) == "checkpoint" {
			s.marks.Add(1)
		}
		fate := s.fate.Load()
		if fate == nil || !fate.at(op) {
			return nil
		}
		s.entered <- struct{}{}
		return fate.do()
	})
	st, err := varve.Open(t.Context(), s.dir,
		storetest.In(&varve.Options{}, storetest.Environment{System: vfs.System{FS: fsys, SpillBytes: 64 << 10}}))
	if err != nil {
		t.Fatal(err)
	}
	s.st = st
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	s.put(2500)
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *slowIndex) put(n int) {
	var batch varve.Batch
	for range n {
		s.n++
		batch.Put(varve.Memory{ID: fmt.Sprintf("m%05d", s.n),
			Content: fmt.Sprint("what is told of ", s.n, strings.Repeat(" more", 20))})
	}
	if err := s.st.Apply(s.t.Context(), &batch); err != nil {
		s.t.Fatal(err)
	}
}

// hold puts enough for an index to be due, and stops its writing at a call until leave is called.
func (s *slowIndex) hold(at func(*fault.Op) bool) (leave func()) {
	free := make(chan struct{})
	s.fate.Store(&fate{at, func() error { <-free; return nil }})
	leave = sync.OnceFunc(func() {
		s.fate.Store(nil)
		close(free)
	})
	s.t.Cleanup(leave)
	s.put(500)
	<-s.entered
	return leave
}

// growDelta puts until the next index is a base.
func (s *slowIndex) growDelta() {
	s.t.Helper()
	size := func(name string) int64 {
		info, err := os.Stat(filepath.Join(s.dir, name))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	for size("memory_index.delta.json") <= size("memory_index.json")/8 {
		before := s.st.Admin().Stats().Spilled
		s.put(500)
		s.until("no index is made", func(st varve.Stats) bool { return st.Spilled > before })
	}
}

func (s *slowIndex) until(what string, ok func(varve.Stats) bool) {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(s.st.Admin().Stats()); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%s: %+v", what, s.st.Admin().Stats())
		}
	}
}

func (s *slowIndex) sound(dir string) {
	s.t.Helper()
	st := fixture.Open(s.t, dir, &varve.Options{NoBackground: true})
	if n, err := st.Count(s.t.Context()); err != nil || n != int64(s.n) {
		s.t.Errorf("%d memories of %d, %v", n, s.n, err)
	}
	for f := range st.Admin().Verify(s.t.Context(), varve.VerifyOptions{}) {
		if f.Severity != repair.Info { // the file of the process that was killed
			s.t.Error(f)
		}
	}
	if err := st.Flush(s.t.Context()); err != nil {
		s.t.Error(err)
	}
	if err := st.Close(); err != nil {
		s.t.Error(err)
	}
}

// While an index is written in the background, memories continue to be put into files. A store that is
// killed meanwhile, or when the index is in its place and no mark says so, loses nothing.
func TestFilesBesideIndex(t *testing.T) {
	t.Parallel()
	s := openSlowIndex(t)
	before := s.st.Admin().Stats().Spilled
	leave := s.hold(toPlace)
	for range 3 {
		s.put(100)
		s.until("no file is made while an index is written", func(st varve.Stats) bool { return st.Flushed == st.Durable })
	}
	if s.st.Admin().Stats().Spilled != before {
		t.Fatal("the index is there")
	}
	idle := s.marks.Load()
	time.Sleep(500 * time.Millisecond)
	if n := s.marks.Load() - idle; n > 3 {
		t.Errorf("with nothing to do %d checkpoints are made", n)
	}
	killed := filepath.Join(t.TempDir(), "killed")
	fixture.CopyDir(t, s.dir, killed)
	s.sound(killed)
	// The same with the index in its place.
	temps, err := filepath.Glob(filepath.Join(s.dir, "tmp", "index.*"))
	if err != nil || len(temps) != 1 {
		t.Fatal(temps, err)
	}
	killed += ".later"
	fixture.CopyDir(t, s.dir, killed)
	if err := os.Rename(filepath.Join(killed, "tmp", filepath.Base(temps[0])),
		filepath.Join(killed, "memory_index.delta.json")); err != nil {
		t.Fatal(err)
	}
	s.sound(killed)
	leave()
	s.until("the index is not there", func(st varve.Stats) bool { return st.Spilled > before })
	if err := s.st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for f := range s.st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Error(f)
	}
}

// If an index cannot be written in the background, that is reported, and it is written again; nothing
// else is delayed.
func TestIndexFailsBeside(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, c := range []struct {
		name string
		at   func(s *slowIndex, op *fault.Op) bool
		err  error
	}{
		{"full", func(_ *slowIndex, op *fault.Op) bool { return intoFile(op) }, syscall.ENOSPC},
		{"sync", func(_ *slowIndex, op *fault.Op) bool { return syncOf(op) }, broken},
		{"place", func(_ *slowIndex, op *fault.Op) bool { return toPlace(op) }, broken},
		{"folder", (*slowIndex).inPlace, broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := openSlowIndex(t)
			before := s.st.Admin().Stats().Spilled
			s.fate.Store(&fate{func(op *fault.Op) bool { return c.at(s, op) }, func() error { return c.err }})
			s.put(500)
			<-s.entered
			s.until("the error is not said", func(varve.Stats) bool {
				h := s.st.Health(t.Context())
				return !h.OK && errors.Is(errors.Join(h.Problems...), c.err)
			})
			tries, since := len(s.entered), time.Now()
			for range 5 {
				s.put(100)
				s.until("no file is made", func(st varve.Stats) bool { return st.Flushed == st.Durable })
				if h := s.st.Health(t.Context()); h.OK {
					t.Fatal("the store is well once more files are made")
				}
			}
			// a second later each time
			if n := len(s.entered) - tries; n > 4 && time.Duration(n*(n-1)/2)*time.Second > time.Since(since) {
				t.Errorf("it was tried %d times more", n)
			}
			if s.st.Admin().Stats().Spilled != before {
				t.Fatal("the mark of the index moved")
			}
			s.fate.Store(nil)
			s.until("the index is not written again", func(st varve.Stats) bool { return st.Spilled > before })
			s.until("the store is not well then", func(varve.Stats) bool { return s.st.Health(t.Context()).OK })
		})
	}
}

// Another process reads, writes and closes while an index is in its place and no mark says so. What it
// leaves refers only to an index that is durable there.
func TestOthersBesideIndex(t *testing.T) {
	t.Parallel()
	s := openSlowIndex(t)
	leave := s.hold(s.inPlace)
	other := fixture.Open(t, s.dir, &varve.Options{})
	if n, err := other.Count(t.Context()); err != nil || n != int64(s.n) {
		t.Errorf("%d memories of %d, %v", n, s.n, err)
	}
	s.n++
	if _, err := other.Put(t.Context(),
		varve.Memory{ID: fmt.Sprintf("m%05d", s.n), Content: "of another process"}); err != nil {
		t.Fatal(err)
	}
	if m, err := s.st.Get(t.Context(), fmt.Sprintf("m%05d", s.n)); err != nil || m.Content != "of another process" {
		t.Error(m, err)
	}
	leave()
	if err := errors.Join(other.Close(), s.st.Close()); err != nil {
		t.Fatal(err)
	}
	s.sound(s.dir)
}

// An index whose place could not be made durable is there nevertheless, and a process that uses it makes
// that durable.
func TestIndexTakenBeside(t *testing.T) {
	t.Parallel()
	s := openSlowIndex(t)
	before := s.st.Admin().Stats().Spilled
	broken := errors.New("broken")
	s.fate.Store(&fate{s.inPlace, func() error { return broken }})
	s.put(500)
	<-s.entered
	s.until("the error is not said", func(varve.Stats) bool { return !s.st.Health(t.Context()).OK })
	var watched, synced, late atomic.Bool
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		switch {
		case s.inPlace(op):
			synced.Store(true)
		case watched.Load() && op.Kind.Syncs() && filepath.Base(op.Path) == "checkpoint" && !synced.Load():
			late.Store(true)
		}
		return nil
	})
	other, err := varve.Open(t.Context(), s.dir,
		storetest.In(&varve.Options{NoBackground: true},
			storetest.Environment{System: vfs.System{FS: fsys, SpillBytes: 64 << 10}}))
	if err != nil {
		t.Fatal(err)
	}
	watched.Store(true)
	if err := other.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if s.st.Admin().Stats().Spilled == before {
		t.Fatal("the mark of the index did not move")
	}
	if !synced.Load() || late.Load() {
		t.Error("it is not made durable in its place first")
	}
	s.fate.Store(nil)
	if err := errors.Join(other.Close(), s.st.Close()); err != nil {
		t.Fatal(err)
	}
	s.sound(s.dir)
}

// A store that is killed when a new base is in its place, and the delta that it includes still exists,
// loses nothing.
func TestBaseBeside(t *testing.T) {
	t.Parallel()
	s := openSlowIndex(t)
	s.growDelta()
	leave := s.hold(ofDelta)
	s.until("no file is made", func(st varve.Stats) bool { return st.Flushed == st.Durable })
	killed := filepath.Join(t.TempDir(), "killed")
	fixture.CopyDir(t, s.dir, killed)
	s.sound(killed)
	leave()
	if err := s.st.Close(); err != nil {
		t.Fatal(err)
	}
	s.sound(s.dir)
}

// A damaged base that is found in the background is rebuilt, and memories continue to be put into files.
func TestDamageBesideIndex(t *testing.T) {
	t.Parallel()
	s := openSlowIndex(t)
	s.growDelta()
	before := s.st.Admin().Stats().Spilled
	fixture.SpoilLine(t, filepath.Join(s.dir, "memory_index.json"), "m00700") // no put needs its block
	s.put(500)
	s.until("no index is made", func(st varve.Stats) bool { return st.Spilled > before })
	if err := s.st.Close(); err != nil {
		t.Fatal(err)
	}
	s.sound(s.dir)
}

// Close and purge wait for an index that is written in parallel with rounds.
func TestPurgeBesideIndex(t *testing.T) {
	t.Parallel()
	s := openSlowIndex(t)
	leave := s.hold(toPlace)
	purged := make(chan error, 1)
	go func() {
		_, err := s.st.Admin().Purge(t.Context(), "m00007")
		purged <- err
	}()
	s.put(1)
	leave()
	if err := <-purged; err != nil {
		t.Fatal(err)
	}
	s.n--
	if err := s.st.Close(); err != nil {
		t.Fatal(err)
	}
	s.sound(s.dir)
	err := filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && (strings.Contains(string(b), `"m00007"`) || strings.Contains(string(b), "mm00007")) {
			t.Errorf("%s names it", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Close waits for an index that is written in parallel with rounds, and leaves a complete one.
func TestCloseBesideIndex(t *testing.T) {
	t.Parallel()
	s := openSlowIndex(t)
	leave := s.hold(toPlace)
	s.put(300)
	closed := make(chan error, 1)
	go func() { closed <- s.st.Close() }()
	select {
	case err := <-closed:
		t.Fatal("it does not wait:", err)
	case <-time.After(50 * time.Millisecond):
	}
	leave()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	s.sound(s.dir)
}
