//go:build unix

package wal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// flushed writes a checkpoint that records that everything is in files and in the index.
func flushed(l *FileLog) error {
	held, err := l.LockFlush(context.Background())
	if err != nil {
		return err
	}
	defer held.Unlock()
	if _, err := l.Checkpoint(); err != nil {
		return err
	}
	at := l.AppliedMark()
	return l.SetCheckpoint(held, at, at, [Folders]int64{})
}

// A checkpoint that an older copy of the store has replaced is not overwritten: the segments of the copy, which
// come next, do not reach as far. A damaged slot, and another process that writes, are not treated as such a
// copy.
func TestCheckpointOfACopy(t *testing.T) {
	t.Parallel()
	path := func(dir string) string { return filepath.Join(dir, "checkpoint") }
	over := func(t *testing.T, dir string, b []byte, fresh bool) {
		t.Helper()
		if b == nil { // the content
			b = checkpointOf(t, dir)
		}
		name := path(dir)
		if fresh {
			name += ".new"
		}
		err := os.WriteFile(name, b, 0o600)
		if err == nil && fresh {
			err = os.Rename(name, path(dir))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, l *FileLog, dir string, before []byte)
		same   bool
	}{
		"nothing":      {func(*testing.T, *FileLog, string, []byte) {}, true},
		"an older one": {func(t *testing.T, _ *FileLog, dir string, b []byte) { over(t, dir, b, true) }, false},
		"an older one, in place": {func(t *testing.T, _ *FileLog, dir string, b []byte) {
			over(t, dir, b, false)
		}, false},
		"the same, as another file": {func(t *testing.T, _ *FileLog, dir string, _ []byte) {
			over(t, dir, nil, true)
		}, false},
		"a damaged slot":             {func(t *testing.T, l *FileLog, dir string, _ []byte) { flipNewest(t, dir) }, true},
		"written by another process": {func(t *testing.T, _ *FileLog, dir string, _ []byte) { flushBeside(t, dir) }, true},
		"a hard link that another process has replaced": {func(t *testing.T, _ *FileLog, dir string, _ []byte) {
			if err := os.Link(path(dir), dir+".linked"); err != nil {
				t.Fatal(err)
			}
			flushBeside(t, dir)
			if err := os.Remove(dir + ".linked"); err != nil {
				t.Fatal(err)
			}
		}, true},
		"a hard link that this process replaces": {func(t *testing.T, l *FileLog, dir string, _ []byte) {
			if err := errors.Join(os.Link(path(dir), dir+".linked"), flushed(l), os.Remove(dir+".linked")); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, dir := openIn(t)
			mustAppend(t, l, put("ma", "1"))
			if err := errors.Join(flushed(l), flushed(l)); err != nil { // both slots
				t.Fatal(err)
			}
			before := checkpointOf(t, dir)
			mustAppend(t, l, put("mb", "2"))
			if err := flushed(l); err != nil {
				t.Fatal(err)
			}
			c.change(t, l, dir, before)
			now := checkpointOf(t, dir)
			err := flushed(l)
			if same := err == nil; same != c.same || err != nil && !errors.Is(err, errs.ErrReplaced) {
				t.Fatalf("a checkpoint: %v", err)
			}
			if !c.same && !bytes.Equal(checkpointOf(t, dir), now) {
				t.Error("the copy of the checkpoint was written")
			}
			if _, err = l.Append(t.Context(), put("mc", "3")); (err == nil) != c.same {
				t.Errorf("append: %v", err)
			}
		})
	}
}

// flipNewest damages the newer slot.
func flipNewest(t *testing.T, dir string) {
	t.Helper()
	slots := slotsOf(t, vfs.OS(), dir)
	newest := 0
	if slots[1].Sequence > slots[0].Sequence {
		newest = 1
	}
	flip(t, filepath.Join(dir, "checkpoint"), int64(newest*SlotSize+50))
}

// flushBeside writes a checkpoint as another process.
func flushBeside(t *testing.T, dir string) {
	t.Helper()
	other, _ := open(t, dir)
	mustAppend(t, other, put("md", "4"))
	if err := errors.Join(flushed(other), other.Close()); err != nil {
		t.Fatal(err)
	}
}

// A page that is truncated to zero while goroutines commit crashes none of them, and what was acknowledged is
// in the log.
func TestPageCutBesideWriters(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "s")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, _ := open(t, dir)
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		acked []string
	)
	reached := make(chan struct{})
	for w := range 8 {
		all.Go(func() {
			for i := range 100_000 {
				key := fmt.Sprintf("m%d-%d", w, i)
				_, err := l.Append(t.Context(), put(key, "1"))
				if err != nil {
					if !errors.Is(err, errs.ErrReplaced) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				if acked = append(acked, key); len(acked) == 200 {
					close(reached)
				}
				mu.Unlock()
			}
			t.Error("a log without a page goes on")
		})
	}
	<-reached
	if err := os.Truncate(filepath.Join(dir, "wal", "shared"), 0); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	next, m := open(t, dir)
	defer next.Close()
	for _, key := range acked {
		if at, err := m.Current(key); err != nil || at == 0 {
			t.Fatalf("%s was acknowledged and is not in the log: %v", key, err)
		}
	}
}

// Without a checkpoint, the segments of the store are its log, not one of another store that has a higher number.
func TestSegmentOfAnotherStore(t *testing.T) {
	t.Parallel()
	dir, foreign := t.TempDir(), t.TempDir()
	l, _ := open(t, dir)
	mustAppend(t, l, put("ma", "own"))
	id := l.UUID()
	mustClose(t, l)
	other, _ := open(t, foreign, func(o *Options) {
		o.UUID = [16]byte{9}
		o.NewAbove = func() (LSN, error) { return 5 * o.SegmentSize, nil }
	})
	mustAppend(t, other, put("mb", "of another store"))
	mustClose(t, other)
	names, err := filepath.Glob(filepath.Join(foreign, "wal", "*.wal"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if err := os.Rename(name, filepath.Join(dir, "wal", filepath.Base(name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"checkpoint", "wal/shared"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	next, m := open(t, dir, func(o *Options) { o.Named = func() ([16]byte, bool) { return id, true } })
	defer next.Close()
	own, _ := m.Current("ma")
	strange, _ := m.Current("mb")
	if own == 0 || strange != 0 || next.UUID() != id {
		t.Errorf("the store's entry is at %d, the other store's at %d; the log is of %x", own, strange, next.UUID())
	}
}
