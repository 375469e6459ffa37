//go:build unix

package wal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
)

// copyOver writes the bytes of a file into another one, in place or, with fresh, as a new file.
func copyOver(t *testing.T, from, to string, fresh bool) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil && fresh {
		err = os.Remove(to)
	}
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What stands at the path is told from the log that was opened.
func TestInPlace(t *testing.T) {
	t.Parallel()
	page := func(dir string) string { return filepath.Join(dir, "wal", "shared") }
	for name, c := range map[string]struct {
		change func(t *testing.T, l *FileLog, dir string)
		same   bool
	}{
		"nothing":          {func(*testing.T, *FileLog, string) {}, true},
		"an older segment": {func(t *testing.T, _ *FileLog, dir string) { _ = os.Remove(filepath.Join(dir, "wal", "00000000.wal")) }, true},
		"the lock files": {func(t *testing.T, _ *FileLog, dir string) {
			for _, name := range roleNames {
				if err := os.Remove(filepath.Join(dir, "wal", name)); err != nil {
					t.Fatal(err)
				}
			}
		}, true},
		"a link to the page": {func(t *testing.T, _ *FileLog, dir string) { // the inode is another one, the page is not
			if err := errors.Join(os.Link(page(dir), page(dir)+".1"), os.Remove(page(dir)), os.Rename(page(dir)+".1", page(dir))); err != nil {
				t.Fatal(err)
			}
		}, true},
		"a copy of the page": {func(t *testing.T, _ *FileLog, dir string) { copyOver(t, page(dir), page(dir), true) }, false},
		"the page of an earlier moment": {func(t *testing.T, l *FileLog, dir string) {
			copyOver(t, page(dir), page(dir)+".was", false)
			mustAppend(t, l, put("mb", "2"))
			copyOver(t, page(dir)+".was", page(dir), false)
		}, false},
		"no page":    {func(t *testing.T, _ *FileLog, dir string) { _ = os.Remove(page(dir)) }, false},
		"no log":     {func(t *testing.T, _ *FileLog, dir string) { _ = os.RemoveAll(filepath.Join(dir, "wal")) }, false},
		"no segment": {func(t *testing.T, _ *FileLog, dir string) { _ = os.Remove(filepath.Join(dir, "wal", "00000001.wal")) }, false},
		"no folder":  {func(t *testing.T, _ *FileLog, dir string) { _ = os.RemoveAll(dir) }, false},
		"another folder": {func(t *testing.T, _ *FileLog, dir string) {
			if err := os.Rename(dir, dir+".was"); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			other, _ := open(t, dir)
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "s")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			l, _ := open(t, dir)
			t.Cleanup(func() { _ = l.Close() })
			mustAppend(t, l, put("ma", "1"))
			c.change(t, l, dir)
			err := l.InPlace()
			if same := err == nil; same != c.same || err != nil && !errors.Is(err, errs.ErrReplaced) {
				t.Fatalf("in place: %v", err)
			}
			_, err = l.Append(t.Context(), put("mc", "3"))
			if same := err == nil; same != c.same || err != nil && !errors.Is(err, errs.ErrReplaced) {
				t.Fatalf("append: %v", err)
			}
			if _, err := l.LockFlush(t.Context()); (err == nil) != c.same {
				t.Fatalf("LockFlush: %v", err)
			}
		})
	}
}

// A process that is idle notices, and the one that waits for the folder then has it.
func TestFolderIsLeft(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "s")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	events := make(chan Event, 10)
	l, _ := open(t, dir, func(o *Options) {
		o.Event = func(e Event) {
			if e.Kind == EventReplaced {
				events <- e
			}
		}
	})
	defer l.Close()
	mustAppend(t, l, put("ma", "1"))
	held, err := l.LockFlush(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "wal")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-events:
	case <-time.After(20 * time.Second):
		t.Fatal("an idle process has not noticed")
	}
	// While this process flushes, no log is begun beside it.
	if _, err := Open(t.Context(), func() Options {
		o := (&model{}).options(dir)
		o.LockWait = 50 * time.Millisecond
		return o
	}()); !errors.Is(err, errs.ErrLocked) {
		t.Fatalf("another log was begun while this process flushes: %v", err)
	}
	held.Unlock()
	next, _ := open(t, dir)
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
}
