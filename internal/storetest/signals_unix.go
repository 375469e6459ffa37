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

// Stop stops a child with SIGSTOP, or skips the test where there is none.
func Stop(t testing.TB, p *os.Process) {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

// StopIdle stops a child that is waiting for us at a moment at which it holds none of
// the locks that others need: preparing the log goes on while a process waits.
func StopIdle(t testing.TB, p *os.Process, dir string) {
	t.Helper()
	for range 1000 {
		Stop(t, p)
		var is syscall.WaitStatus
		if _, err := syscall.Wait4(p.Pid, &is, syscall.WUNTRACED, nil); err != nil || !is.Stopped() {
			t.Fatalf("it did not stop: %v, %v", is, err)
		}
		if unlocked(t, dir) {
			return
		}
		Continue(t, p)
	}
	t.Fatal("it holds a lock of the log whenever it is stopped")
}

// unlocked reports whether nobody has a lock of the log that is taken for a moment.
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

// Continue lets a child that was stopped go on.
func Continue(t testing.TB, p *os.Process) {
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// Allocated is what a file takes of the disk.
func Allocated(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
