package repair_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/repair"
)

// machine is a disk that loses unsynced writes, with one process at a time on it.
type machine struct {
	disk    *crash.Disk
	clock   time.Time
	ops     int
	started byte
	killAt  int // the process is killed before this operation; 0: never
	before  func(*wrap.Op)
}

func newMachine() *machine {
	m := &machine{disk: crash.New(), clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	m.disk.SetClock(m.now)
	return m
}

func (m *machine) now() time.Time { return m.clock }

func (m *machine) options() (vfs.FS, *varve.Options) {
	m.started++
	view := m.disk.Process(fmt.Sprint("p", m.started))
	fsys := wrap.New(view, func(op *wrap.Op, call func() error) error {
		m.clock = m.clock.Add(10 * time.Microsecond)
		if m.ops++; m.ops == m.killAt {
			m.disk.Kill(view)
			runtime.Goexit()
		}
		if m.before != nil {
			m.before(op)
		}
		return call()
	})
	return fsys, storetest.In(&varve.Options{
		Clock: m.now, SegmentSize: 64 << 10, NoBackground: true, CacheBytes: -1, MustExist: true,
	}, storetest.Environment{System: vfs.System{
		FS: fsys, Inline: true, Rand: rand.NewChaCha8([32]byte{m.started}), SpillBytes: 12 << 10, RoundBytes: 8 << 10,
		Sleep: func(ctx context.Context, d time.Duration) error { m.clock = m.clock.Add(d); return ctx.Err() },
	}})
}

// load copies a folder onto the disk, durably, with its times.
func (m *machine) load(t *testing.T, dir string) {
	t.Helper()
	fsys := m.disk.Process("loader")
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := "/s" + strings.TrimPrefix(path, dir)
		if d.IsDir() {
			if err := fsys.Mkdir(name, 0o700); err != nil {
				return err
			}
			return fsys.SyncDir(filepath.Dir(name))
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err = f.WriteAt(b, 0); err == nil {
			err = f.SetMtime(info.ModTime())
		}
		if err == nil {
			err = f.Sync()
		}
		if err == nil {
			err = fsys.SyncDir(filepath.Dir(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// run plans and applies in a separate goroutine, which a kill ends.
func (m *machine) run(f func(o *varve.Options) error) (err error, killed bool) {
	done := make(chan error, 1)
	ended := make(chan struct{})
	_, o := m.options()
	go func() {
		defer close(ended)
		done <- f(o)
	}()
	<-ended
	select {
	case err := <-done:
		return err, false
	default:
		return nil, true
	}
}

func repairAll(o *varve.Options) error {
	p, err := varve.PlanRepair(context.Background(), "/s", o, varve.VerifyOptions{})
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	r, err := p.Apply(context.Background())
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	for _, d := range r.Done {
		if d.Err != nil {
			return fmt.Errorf("%s: %w", d.Action, d.Err)
		}
	}
	for _, f := range r.Remaining {
		if f.Severity != repair.Info {
			return fmt.Errorf("remains: %s", f)
		}
	}
	return nil
}

// contents reads all memories of the store on the disk.
func (m *machine) contents() (all map[string]string, err error) {
	err, _ = m.run(func(o *varve.Options) error {
		st, err := varve.Open(context.Background(), "/s", o)
		if err != nil {
			return err
		}
		all = map[string]string{}
		for m, err := range st.Memories(context.Background()) {
			if err != nil {
				return err
			}
			all[m.ID] = m.Content
		}
		return st.Close()
	})
	return all, err
}

// cutStore returns a small store with many kinds of damage at once: a flipped bit in a frame that is
// only in the log, rot with and without a copy, missing files with and without a copy, a file cut short,
// an edit, a new file, a copy, junk, leftovers.
func cutStore(t *testing.T, log bool) string {
	dir := filepath.Join(t.TempDir(), "s")
	o := &varve.Options{NoBackground: true, SegmentSize: 64 << 10, CacheBytes: -1}
	st, err := varve.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	put := func(from, to int) {
		for i := from; i < to; i++ {
			if _, err := st.Put(t.Context(),
				varve.Memory{ID: id(i), Content: fmt.Sprintf("memory %d %s", i, strings.Repeat("x", 300))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(0, 8)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(file(dir, "wal")); err != nil { // no copy of these is left
		t.Fatal(err)
	}
	if st, err = varve.Open(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	put(8, 14)
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(14, 20)
	crashed := filepath.Join(t.TempDir(), "crashed")
	fixture.CopyDir(t, dir, crashed)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	dir = crashed
	if log {
		name := file(dir, first(t, dir, "wal/*.wal"))
		b := bytesOf(t, name)
		at := strings.Index(string(b), "memory 16 ")
		flip(t, name, int64(at+20))
	}
	flip(t, file(dir, memoryPath(0)), 60)
	remove(t, file(dir, memoryPath(1)))
	write(t, file(dir, memoryPath(2)), bytesOf(t, file(dir, memoryPath(2)))[:200])
	flip(t, file(dir, memoryPath(8)), 60)
	remove(t, file(dir, memoryPath(9)))
	b := string(bytesOf(t, file(dir, memoryPath(3))))
	write(t, file(dir, memoryPath(3)), []byte(strings.Replace(b, "memory 3 ", "memory three ", 1)))
	write(t, file(dir, "memories/new.json"), []byte(strings.Replace(b, id(3), "new", 1)))
	write(t, file(dir, "memories/copy.json"), bytesOf(t, file(dir, memoryPath(4))))
	write(t, file(dir, "memories/junk.json"), []byte("{"))
	write(t, file(dir, "config.json"), []byte(`{"varve":1,"flush_threshold":-1}`))
	if err := os.MkdirAll(file(dir, "tmp/0123456789abcdef/0"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, file(dir, "tmp/0123456789abcdef/0/1"), []byte("half"))
	return dir
}

// checkCut fails the test unless the memories that no copy held are lost, and all others are as before.
func checkCut(t *testing.T, got map[string]string, log bool) {
	t.Helper()
	want := map[string]string{}
	for i := range 20 {
		want[id(i)] = fmt.Sprintf("memory %d %s", i, strings.Repeat("x", 300))
	}
	delete(want, id(1)) // deleted, and in no log
	if log {
		delete(want, id(16)) // in a damaged frame, and not in a file yet
	}
	want["new"] = want[id(3)]
	want[id(3)] = strings.Replace(want[id(3)], "memory 3 ", "memory three ", 1)
	for _, i := range []int{0, 2} { // their readable part
		if c := got[id(i)]; !strings.HasPrefix(c, "memory ") && !strings.Contains(c, "xxxx") || c == want[id(i)] {
			t.Errorf("%s is %.60q", id(i), c)
		}
		want[id(i)] = got[id(i)]
	}
	compare(t, want, got)
}

var cutStep = flag.Int("cutstep", 13, "kill a repair before each so manieth operation only")

// TestRepairCut kills Apply before each of its operations that change the disk, with and without a loss
// of power; applying again must lead to the same result. Every operation: go test ./repair -run
// RepairCut -cutstep 1
func TestRepairCut(t *testing.T) {
	proofs.OneGoroutine(t)
	t.Parallel()
	for _, log := range []bool{true, false} {
		t.Run(fmt.Sprint("log=", log), func(t *testing.T) {
			dir := cutStore(t, log)
			whole := newMachine()
			whole.load(t, dir)
			var changing []int
			whole.before = func(op *wrap.Op) {
				if op.Kind.Changes() {
					changing = append(changing, whole.ops)
				}
			}
			if err, _ := whole.run(repairAll); err != nil {
				t.Fatal(err)
			}
			whole.before = nil
			want, err := whole.contents()
			if err != nil {
				t.Fatal(err)
			}
			checkCut(t, want, log)
			step := *cutStep
			if !proofs.Long() {
				step = proofs.Every(10) * max(step, 1)
			}
			patterns := []crash.Pattern{crash.LoseAll, crash.KeepAll, crash.KeepRandom, crash.KeepNames}
			n := 0
			for i := 0; i < len(changing); i += step {
				m := newMachine()
				m.load(t, dir)
				m.killAt = changing[i]
				if err, killed := m.run(repairAll); !killed {
					t.Fatalf("not killed at %d: %v", m.killAt, err)
				}
				m.killAt = 0
				futures := []*crash.Disk{m.disk}
				p := patterns[i/step%len(patterns)]
				futures = append(futures, m.disk.Crash(p, rand.New(rand.NewPCG(uint64(i), 1))))
				for _, disk := range futures {
					n++
					m.disk = disk
					disk.SetClock(m.now)
					// And it is killed once more, at another operation.
					m.killAt = m.ops + 1 + rand.New(rand.NewPCG(uint64(i), 2)).IntN(5000)
					_, _ = m.run(repairAll)
					m.killAt = 0
					if err, _ := m.run(repairAll); err != nil {
						t.Fatalf("killed at %d of %d, pattern %v: again: %v", i, len(changing), p, err)
					}
					got, err := m.contents()
					if err != nil {
						t.Fatalf("killed at %d: %v", i, err)
					}
					if compare(t, want, got); t.Failed() {
						t.Fatalf("killed at %d of %d, pattern %v", i, len(changing), p)
					}
				}
			}
			t.Logf("%d operations that change the disk, %d futures", len(changing), n)
		})
	}
}
