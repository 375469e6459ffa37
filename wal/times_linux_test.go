package wal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// TestCommitLeavesTimesAlone: a commit does not ask for the times of the segment, because the write after that would
// take half as long again, see vfs.Identifier. Where the system distinguishes such writes, they have a time of their
// own and not that of the clock's last tick.
func TestCommitLeavesTimesAlone(t *testing.T) {
	l, dir := openIn(t)
	name := filepath.Join(dir, "wal", "00000001.wal")
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// own returns how many of 50 writes after look have a time of their own. They write the zero that is there.
	own := func(look func(i int) error) (n int) {
		for i := range 50 {
			if err := look(i); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if _, err := f.WriteAt([]byte{0}, 400<<10); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(name); err != nil {
				t.Fatal(err)
			} else if !info.ModTime().Before(began) {
				n++
			}
		}
		return n
	}
	if n := own(func(int) error { _, err := vfs.OS().Stat(name); return err }); n < 45 {
		t.Logf("this system does not distinguish such writes: %d of 50 after Stat", n)
		return
	}
	commit := func(i int) error {
		_, err := l.Append(context.Background(), put(fmt.Sprint(i), "v"))
		return err
	}
	if n := own(commit); n > 25 {
		t.Errorf("%d of 50 writes after a commit have a time of their own", n)
	}
}
