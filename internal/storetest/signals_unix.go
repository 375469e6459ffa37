//go:build unix

package storetest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
)

// Stop stops a child with SIGSTOP, or skips the test on systems without it.
func Stop(t testing.TB, p *os.Process) {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

// StopIdle stops a child process that waits for the test. It does so at a moment when the child holds none of the locks
// that other processes need. This is necessary because a waiting process continues to prepare segments of the log.
func StopIdle(t testing.TB, p *os.Process, dir string) {
	t.Helper()
	for range 1000 {
		Stop(t, p)
		var is syscall.WaitStatus
		if _, err := syscall.Wait4(p.Pid, &is, syscall.WUNTRACED, nil); err != nil || !is.Stopped() {
			t.Fatalf("the process did not stop: %v, %v", is, err)
		}
		if unlocked(t, dir) {
			return
		}
		Continue(t, p)
	}
	t.Fatal("at each attempt, the stopped process held a lock of the log")
}

// unlocked reports whether no process holds flush.lock, append.lock or sync.lock of the store in dir. Every process
// holds these locks only for short times.
func unlocked(t testing.TB, dir string) bool {
	t.Helper()
	free := true
	for _, name := range []string{"flush.lock", "append.lock", "sync.lock"} {
		k, err := vfs.OS().OpenLock(filepath.Join(dir, "wal", name), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		ok, err := k.TryLock(vfs.ModeExclusive)
		if err = errors.Join(err, k.Close()); err != nil {
			t.Fatal(err)
		}
		free = free && ok
	}
	return free
}

// Continue lets a stopped child continue.
func Continue(t testing.TB, p *os.Process) {
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// Allocated returns the space that a file occupies on the disk.
func Allocated(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
