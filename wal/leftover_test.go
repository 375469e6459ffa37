package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FAILURES 23: a process that is killed while it creates the next segment leaves up to 64 MiB. Other processes
// that never close the log remove that file; a file that a living process creates stays.
func TestLeftOfMakers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	dead, alive := filepath.Join(dir, "wal", "99-1.new"), filepath.Join(dir, "wal", "98-1.new")
	own := filepath.Join(dir, "wal", fmt.Sprintf("%d-999.new", l.host.PID)) // of a living process, by a clock that is ahead
	for _, name := range []string{dead, alive, own} {
		if err := os.WriteFile(name, make([]byte, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := l.o.Clock().Add(-leftAfter - time.Second)
	if err := errors.Join(os.Chtimes(dead, old, old), os.Chtimes(own, old, old)); err != nil {
		t.Fatal(err)
	}
	now := l.o.Clock()
	if err := os.Chtimes(alive, now, now); err != nil {
		t.Fatal(err)
	}
	if err := l.prepareNext(context.Background(), l.geo.Number(l.shared.Tail()-1)+1); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a dead process left is still there: %v", err)
	}
	if _, err := os.Stat(alive); err != nil {
		t.Errorf("what a process is making: %v", err)
	}
	if _, err := os.Stat(own); err != nil {
		t.Errorf("what a process makes that has the log open: %v", err)
	}
}
