package vfs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain runs the test binary as a second process that holds a lock: it prints "held", waits for a
// line (or the end) of stdin, and releases the lock.
func TestMain(m *testing.M) {
	name := os.Getenv("VFS_TEST_HOLD")
	if name == "" {
		os.Exit(m.Run())
	}
	l, err := OS().OpenLock(name, 0o600)
	if err == nil {
		err = l.Lock(context.Background(), ModeExclusive)
	}
	fmt.Println("held", err)
	bufio.NewReader(os.Stdin).ReadString('\n')
	os.Exit(0) // without Unlock: the kernel releases it
}

// holder is a second process that holds name; release ends it.
func holder(t *testing.T, name string) (release func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "VFS_TEST_HOLD="+name)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	if line != "held <nil>\n" {
		t.Fatalf("second process: %q", line)
	}
	return sync.OnceFunc(func() {
		io.WriteString(in, "\n")
		in.Close()
		cmd.Wait()
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// keepLocks has newLock make locks that keep their descriptor.
var keepLocks bool

func newLock(t testing.TB, name string) Lock {
	t.Helper()
	l, err := OS().OpenLock(name, 0o600)
	must(t, err)
	if keepLocks {
		must(t, KeepOpen(l))
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func tryLock(t *testing.T, l Lock, mode Mode, want bool) {
	t.Helper()
	ok, err := l.TryLock(mode)
	must(t, err)
	if ok != want {
		t.Fatalf("TryLock(%v) = %v, want %v", mode, ok, want)
	}
}

func TestLockHandlesExcludeEachOther(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	a, b := newLock(t, name), newLock(t, name)
	tryLock(t, a, ModeExclusive, true)
	tryLock(t, a, ModeExclusive, false) // its own second Lock too
	tryLock(t, a, ModeShared, false)    // and nothing is converted
	tryLock(t, b, ModeExclusive, false)
	tryLock(t, b, ModeShared, false)
	must(t, a.Unlock())
	tryLock(t, a, ModeShared, true)
	tryLock(t, b, ModeShared, true)
	must(t, b.Unlock())
	tryLock(t, b, ModeExclusive, false)
	tryLock(t, b, ModeShared, true) // the refused upgrade has not lost the lock
	must(t, a.Unlock())
	if err := a.Unlock(); err == nil {
		t.Fatal("Unlock of a lock that is not held succeeded")
	}
}

func TestLockBetweenProcesses(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	name := filepath.Join(t.TempDir(), "lock")
	release := holder(t, name)
	defer release()
	l := newLock(t, name)
	defer l.Close()
	tryLock(t, l, ModeExclusive, false)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	for _, mode := range []Mode{ModeExclusive, ModeShared, ModeExclusive} {
		if err := l.Lock(ctx, mode); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Lock(%v) = %v, want the deadline", mode, err)
		}
	}
	got := make(chan error)
	go func() { got <- l.Lock(context.Background(), ModeExclusive) }()
	release()
	must(t, <-got)
	must(t, l.Unlock())
}

// A canceled wait must not keep the lock when it is granted.
func TestAbandonedWaitLetsGo(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	name := filepath.Join(t.TempDir(), "lock")
	a, b, c := newLock(t, name), newLock(t, name), newLock(t, name)
	defer c.Close()
	tryLock(t, a, ModeExclusive, true)
	for _, mode := range []Mode{ModeExclusive, ModeShared} {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		if err := b.Lock(ctx, mode); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		cancel()
	}
	must(t, a.Unlock())
	must(t, c.Lock(context.Background(), ModeExclusive)) // hangs if b's waits kept it
	must(t, c.Unlock())
	must(t, b.Lock(context.Background(), ModeExclusive))
	must(t, b.Unlock())
}

func TestCloseWhileWaiting(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	name := filepath.Join(t.TempDir(), "lock")
	a, b := newLock(t, name), newLock(t, name)
	tryLock(t, a, ModeExclusive, true)
	got := make(chan error, 1)
	go func() { got <- b.Lock(context.Background(), ModeExclusive) }()
	f := b.(*flock)
	for waiting := false; !waiting; {
		f.mu.Lock()
		waiting = f.waiters[ModeExclusive] != nil
		f.mu.Unlock()
	}
	must(t, b.Close())
	if err := <-got; !errors.Is(err, os.ErrClosed) {
		t.Fatalf("Lock on a closed handle = %v", err)
	}
	must(t, a.Close()) // releases the lock, and b's goroutine ends
	if err := a.Lock(context.Background(), ModeShared); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("Lock after Close = %v", err)
	}
}

// inFlock reports whether the goroutine that waits for l has called flock, and so has opened the
// file that it waits for.
func inFlock(l *flock) bool {
	stacks := make([]byte, 1<<20)
	for g := range bytes.SplitSeq(stacks[:runtime.Stack(stacks, true)], []byte("\n\n")) {
		if bytes.Contains(g, fmt.Appendf(nil, "(*flock).block(%p", l)) && bytes.Contains(g, []byte("unix.Flock(")) {
			return true
		}
	}
	return false
}

// FAILURES 16: the lock file is unlinked.
func TestUnlinkedLockFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	a, b, c := newLock(t, name), newLock(t, name), newLock(t, name)

	// Before any lock is taken: both handles lock the new file.
	must(t, os.Remove(name))
	tryLock(t, a, ModeExclusive, true)
	tryLock(t, b, ModeExclusive, false)

	// While b waits: the lock that a releases must not be enough for b once c has the new file.
	got := make(chan error, 1)
	go func() { got <- b.Lock(context.Background(), ModeExclusive) }()
	for !inFlock(b.(*flock)) { // before, b may not have opened the file that it waits for
		runtime.Gosched()
	}
	must(t, os.Rename(name, name+".away"))
	tryLock(t, c, ModeExclusive, true)
	must(t, a.Unlock())
	tryLock(t, a, ModeExclusive, false) // c has it
	select {
	case err := <-got:
		t.Fatal("two owners", err)
	case <-time.After(20 * time.Millisecond):
	}
	must(t, c.Unlock())
	must(t, <-got)
}

func TestLockOrdersGoroutines(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	name := filepath.Join(t.TempDir(), "lock")
	var wg sync.WaitGroup
	var n atomic.Int64 // for the race detector, which does not see flock; the add is not atomic
	for range 4 {
		l := newLock(t, name)
		defer l.Close()
		for range 4 {
			wg.Go(func() {
				for range 50 {
					if err := l.Lock(context.Background(), ModeExclusive); err != nil {
						t.Error(err)
						return
					}
					n.Store(n.Load() + 1)
					if err := l.Unlock(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	if n.Load() != 800 {
		t.Fatalf("%d increments, want 800", n.Load())
	}
}

// TestKeptLocks: locks whose file stays open behave like those that are opened for each acquire.
func TestKeptLocks(t *testing.T) {
	keepLocks = true
	defer func() { keepLocks = false }()
	for name, test := range map[string]func(*testing.T){
		"exclude": TestLockHandlesExcludeEachOther, "processes": TestLockBetweenProcesses, "abandoned": TestAbandonedWaitLetsGo,
		"close": TestCloseWhileWaiting, "unlinked": TestUnlinkedLockFile, "order": TestLockOrdersGoroutines,
	} {
		t.Run(name, test)
	}
}

// BenchmarkLock compares a handle of gofrs/flock for each acquire with a descriptor that is kept.
func BenchmarkLock(b *testing.B) {
	for name, keep := range map[string]bool{"fresh": false, "kept": true} {
		b.Run(name, func(b *testing.B) {
			l := newLock(b, filepath.Join(b.TempDir(), "lock"))
			if keep {
				must(b, KeepOpen(l))
			}
			ctx := context.Background()
			for b.Loop() {
				if err := l.Lock(ctx, ModeExclusive); err != nil {
					b.Fatal(err)
				}
				if err := l.Unlock(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
