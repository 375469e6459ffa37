//go:build unix

package wal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal/page"
)

// copyOver writes the bytes of a file into another one, in place or, with fresh, as a new file.
func copyOver(t *testing.T, from, to string, fresh bool) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil && fresh {
		err = os.Remove(to)
	}
	if err != nil {
		t.Fatal(err)
	}
	// As rsync --inplace does. cp truncates the file first.
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteAt(b, 0)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Differences between the files at the path and the log that was opened are detected.
func TestInPlace(t *testing.T) {
	t.Parallel()
	page := func(dir string) string { return filepath.Join(dir, "wal", "shared") }
	for name, c := range map[string]struct {
		change func(t *testing.T, l *FileLog, dir string)
		same   bool
	}{
		"nothing": {func(*testing.T, *FileLog, string) {}, true},
		"an older segment": {func(t *testing.T, _ *FileLog,
			dir string) {
			_ = os.Remove(filepath.Join(dir, "wal", "00000000.wal"))
		}, true},
		"the lock files": {func(t *testing.T, _ *FileLog, dir string) {
			for _, name := range roleNames {
				if err := os.Remove(filepath.Join(dir, "wal", name)); err != nil {
					t.Fatal(err)
				}
			}
		}, true},
		"a link to the page": {func(t *testing.T, _ *FileLog, dir string) { // a second name, as a copy of hard links makes
			if err := os.Link(page(dir), page(dir)+".1"); err != nil {
				t.Fatal(err)
			}
		}, true},
		"a copy of the page": {func(t *testing.T, _ *FileLog, dir string) { copyOver(t, page(dir), page(dir), true) }, false},
		"the page of an earlier moment": {func(t *testing.T, l *FileLog, dir string) {
			copyOver(t, page(dir), page(dir)+".was", false)
			mustAppend(t, l, put("mb", "2"))
			copyOver(t, page(dir)+".was", page(dir), false)
		}, false},
		"the page cut to nothing": {func(t *testing.T, _ *FileLog, dir string) { _ = os.Truncate(page(dir), 0) }, false},
		"the page cut, and zeros in it": {func(t *testing.T, l *FileLog, dir string) {
			if err := errors.Join(os.Truncate(page(dir), 0), os.Truncate(page(dir), vfs.PageSize)); err != nil {
				t.Fatal(err)
			}
		}, false},
		"the page cut, and its bytes in it again": {func(t *testing.T, l *FileLog, dir string) { // cp -a
			b, err := os.ReadFile(page(dir))
			if err == nil {
				err = os.Truncate(page(dir), 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			l.Durable() // accesses the page now
			if err := os.WriteFile(page(dir), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}, false},
		"no page": {func(t *testing.T, _ *FileLog, dir string) { _ = os.Remove(page(dir)) }, false},
		"no log":  {func(t *testing.T, _ *FileLog, dir string) { _ = os.RemoveAll(filepath.Join(dir, "wal")) }, false},
		"no segment": {func(t *testing.T, _ *FileLog,
			dir string) {
			_ = os.Remove(filepath.Join(dir, "wal", "00000001.wal"))
		}, false},
		"no segment beside a copy of hard links": {func(t *testing.T, _ *FileLog, dir string) {
			name := filepath.Join(dir, "wal", "00000001.wal")
			if err := errors.Join(os.Link(name, dir+".linked"), os.Remove(name)); err != nil {
				t.Fatal(err)
			}
		}, false},
		"another segment, and its file has a name elsewhere": {func(t *testing.T, _ *FileLog, dir string) { // rsync --backup
			name := filepath.Join(dir, "wal", "00000001.wal")
			if err := os.Rename(name, dir+".was"); err != nil {
				t.Fatal(err)
			}
			copyOver(t, dir+".was", name, false)
		}, false},
		"a copy of hard links": {func(t *testing.T, _ *FileLog, dir string) {
			if err := os.Link(filepath.Join(dir, "wal", "00000001.wal"), dir+".linked"); err != nil {
				t.Fatal(err)
			}
		}, true},
		"no folder": {func(t *testing.T, _ *FileLog, dir string) { _ = os.RemoveAll(dir) }, false},
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
			l, dir := openIn(t)
			mustAppend(t, l, put("ma", "1"))
			c.change(t, l, dir)
			err := l.Folder().InPlace()
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

// An idle process notices, and the process that waits for the folder gets it.
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
	// While this process flushes, no other log is begun.
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

// movingPage is a page on which another process advances just after the reader has loaded durable.
type movingPage struct {
	vfs.Shared
	move func()
}

func (p *movingPage) Load(word int) uint64 {
	v := p.Shared.Load(word)
	if move := p.move; move != nil && page.Name(word) == "durable" {
		p.move = nil
		move()
	}
	return v
}

// A comparison while the log advances finds it in its place.
func TestInPlaceOfMovingLog(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(t *testing.T, l *FileLog){
		"committed": func(t *testing.T, l *FileLog) { mustAppend(t, l, put("mb", "2")) },
		"released": func(t *testing.T, l *FileLog) {
			fill(t, l, l.geo.Number(l.Durable())+2)
			let(t, l)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := open(t, t.TempDir(), func(o *Options) { o.Inline = true })
			defer l.Close()
			mustAppend(t, l, put("ma", "1"))
			l.shared = l.shared.Around(func(words vfs.Shared) vfs.Shared {
				return &movingPage{words, func() { move(t, l) }}
			})
			if err := l.Folder().InPlace(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A process that waits for the folder has open.lock, and a process that comes meanwhile waits for open.lock
// without holding the folder.
func TestFolderIsNotHeldBeforeOpenLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	first, err := vfs.OS().OpenLock(filepath.Join(dir, "wal", "open.lock"), 0o600)
	if err == nil {
		err = first.Lock(t.Context(), vfs.ModeExclusive)
	}
	if err != nil {
		t.Fatal(err)
	}
	folder, err := vfs.OpenFolderLock(vfs.OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		l, err := Open(t.Context(), (&model{}).options(dir))
		if err == nil {
			err = l.Close()
		}
		opened <- err
	}()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Lstat(filepath.Join(dir, "wal", "hold.lock")); err == nil {
			break // open.lock is next
		}
		if time.Now().After(deadline) {
			t.Fatal("Open has not come to open.lock")
		}
	}
	ok, err := folder.TryLock(vfs.ModeExclusive)
	if err := errors.Join(err, folder.Close(), first.Unlock(), first.Close()); err != nil {
		t.Fatal(err)
	}
	if !ok {
		t.Error("a process that waits for open.lock holds the folder")
	}
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
}

// The locks that are opened for each use are not taken in the log that another process has begun.
func TestReplacedTakesNoLock(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "s")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	leads, _ := open(t, dir)
	waits, _ := open(t, dir)
	defer waits.Close()
	mustAppend(t, leads, put("ma", "1"))
	lead, err := leads.Processes().Lead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	waited := make(chan error, 1)
	go func() {
		_, err := waits.Processes().Lead(ctx)
		waited <- err
	}()
	time.Sleep(10 * time.Millisecond) // usually it waits by then; otherwise this tests less
	if err := os.RemoveAll(filepath.Join(dir, "wal")); err != nil {
		t.Fatal(err)
	}
	next, _ := open(t, dir)
	defer next.Close()
	if err := errors.Join(lead.Release(), leads.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; !errors.Is(err, errs.ErrReplaced) {
		t.Errorf("Lead that waited: %v", err)
	}
	for name, take := range map[string]func() error{
		"Lead":      func() error { _, err := waits.Processes().Lead(ctx); return err },
		"Hold":      func() error { _, err := waits.Archive().Hold(ctx); return err },
		"Exclusive": func() error { _, err := waits.Exclusive(ctx); return err },
	} {
		if err := take(); !errors.Is(err, errs.ErrReplaced) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if lead, err = next.Processes().Lead(ctx); err != nil {
		t.Fatal("the log that is there now:", err)
	}
	if err := lead.Release(); err != nil {
		t.Fatal(err)
	}
}

// A read-only handle without a page detects that another folder is there.
func TestInPlaceReading(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(dir string) error{
		"": func(string) error { return nil }, "removed": os.RemoveAll,
		"replaced": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".was"), os.Mkdir(dir, 0o700))
		},
	} {
		for _, private := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s private=%t", name, private), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "s")
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				l, _ := open(t, dir)
				mustAppend(t, l, put("ma", "1"))
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				if private {
					if err := os.Remove(filepath.Join(dir, "wal", "shared")); err != nil {
						t.Fatal(err)
					}
				}
				fsys, release, err := vfs.Hold(vfs.Only(vfs.OS(), "", dir), dir)
				if err != nil {
					t.Fatal(err)
				}
				defer release()
				ro, _ := open(t, dir, func(o *Options) { o.FS, o.ReadOnly, o.Create = fsys, true, false })
				defer ro.Close()
				if ro.private.Load() != private {
					t.Fatal("private:", !private)
				}
				if err := change(dir); err != nil {
					t.Fatal(err)
				}
				if err := ro.Folder().InPlace(); (err == nil) != (name == "") || err != nil && !errors.Is(err, errs.ErrReplaced) {
					t.Fatalf("in place: %v", err)
				}
			})
		}
	}
}

// git clean removes the checkpoint first, and a round that reads it then reports it as damaged.
func TestMissingCheckpointExplained(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	mustAppend(t, l, put("ma", "1"))
	if err := os.Remove(filepath.Join(dir, "checkpoint")); err != nil {
		t.Fatal(err)
	}
	_, damaged := l.Checkpoint()
	if !errors.Is(damaged, errs.ErrCorrupt) {
		t.Fatal(damaged)
	}
	if err := l.Folder().Explain(damaged); !errors.Is(err, errs.ErrCorrupt) { // the log stays
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "wal")); err != nil {
		t.Fatal(err)
	}
	if err := l.Folder().Explain(damaged); !errors.Is(err, errs.ErrReplaced) {
		t.Fatal(err)
	}
}

// A copy of an earlier moment is written over the page while a commit waits for its sync: what the commit wrote
// is after the tail by then, and no sync ever makes it durable.
func TestOlderPageBesideSync(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	page := filepath.Join(dir, "wal", "shared")
	mustAppend(t, l, put("ma", "1"))
	copyOver(t, page, page+".was", false)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	b := put("mb", "2")
	b.Written = func() { copyOver(t, page+".was", page, false) }
	if _, err := l.Append(ctx, b); !errors.Is(err, errs.ErrReplaced) || !errors.Is(err, errs.ErrOutcomeUnknown) {
		t.Fatal(err)
	}
	if _, err := l.Append(ctx, put("mc", "3")); !errors.Is(err, errs.ErrReplaced) {
		t.Fatal(err)
	}
}

// The same between the sync and the acknowledgement, and before the next commit reads the tail.
func TestOlderPageBesideCommit(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(l *FileLog, lsn LSN) error{
		"answer": func(l *FileLog, lsn LSN) error { return l.keeps(lsn + 1) },
		"next":   func(l *FileLog, _ LSN) error { _, err := l.Append(context.Background(), put("mc", "3")); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l, _ := open(t, dir)
			defer l.Close()
			page := filepath.Join(dir, "wal", "shared")
			mustAppend(t, l, put("ma", "1"))
			copyOver(t, page, page+".was", false)
			first := l.Applied()
			lsn := mustAppend(t, l, put("mb", "2"))
			copyOver(t, page+".was", page, false)
			l.state.appliedAt.Store(first) // as before the commit was applied
			if err := l.Folder().InPlace(); err != nil {
				t.Fatal(err)
			}
			if err := next(l, lsn); !errors.Is(err, errs.ErrReplaced) {
				t.Error(err)
			}
		})
	}
}

// Once a process knows, nothing is written to the page, which may belong to a later log by then, and no lock
// file is created.
func TestReplacedTouchesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	mustAppend(t, l, put("ma", "1"))
	l.lose("for the test")
	if err := l.Folder().AwaitRescue(t.Context()); err != nil {
		t.Fatal(err)
	}
	locks, err := filepath.Glob(filepath.Join(dir, "wal", "*.lock"))
	for _, name := range locks {
		err = errors.Join(err, os.Remove(name))
	}
	before, rerr := os.ReadFile(filepath.Join(dir, "wal", "shared"))
	if err := errors.Join(err, rerr); err != nil {
		t.Fatal(err)
	}
	for name, use := range map[string]func() error{
		"Append":       func() error { _, err := l.Append(t.Context(), put("mb", "2")); return err },
		"write":        func() error { _, err := l.write(t.Context(), &request{since: time.Now()}); return err },
		"LockFlush":    func() error { _, err := l.LockFlush(t.Context()); return err },
		"TryLockFlush": func() error { _, err := l.TryLockFlush(); return err },
		"Exclusive":    func() error { _, err := l.Exclusive(t.Context()); return err },
		"Hold":         func() error { _, err := l.Archive().Hold(t.Context()); return err },
		"Lead":         func() error { _, err := l.Processes().Lead(t.Context()); return err },
		"Roll":         func() error { return l.Purges().Roll(t.Context()) },
		"Raise":        func() error { return l.Raise(t.Context(), FeatureFields) },
		"Heartbeat":    l.Processes().Heartbeat,
	} {
		if err := use(); !errors.Is(err, errs.ErrReplaced) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l.Processes().SetPolling(NoNotices)
	after, err := os.ReadFile(filepath.Join(dir, "wal", "shared"))
	if err != nil || string(before) != string(after) {
		t.Error("the page has changed", err)
	}
	if locks, _ := filepath.Glob(filepath.Join(dir, "wal", "*.lock")); len(locks) > 0 {
		t.Error("created:", locks)
	}
}

// TestReplacedKeepsNewSegment: a process that creates a segment while its log is replaced leaves the unnamed
// file to the recovery of the other log.
func TestReplacedKeepsNewSegment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	mustAppend(t, l, put("ma", "1"))
	stopped := errors.New("stopped")
	_, err := l.makeSegment(l.geo.Size, nil, func(vfs.File, uint64, time.Duration) error {
		l.lose("for the test")
		return stopped
	})
	left, gerr := filepath.Glob(filepath.Join(dir, "wal", "*.new"))
	if !errors.Is(err, stopped) || gerr != nil || len(left) != 1 {
		t.Errorf("%v; in wal/ is %q, %v", err, left, gerr)
	}
}

// A page whose inode has changed, and that cannot be opened at the moment, is not treated as another page.
func TestInPlaceWithoutFiles(t *testing.T) { // not parallel: it leaves the process no file to open
	l, _ := open(t, t.TempDir())
	defer l.Close()
	mustAppend(t, l, put("ma", "1"))
	l.place.ino++ // as overlay file systems may change it
	if err := l.Folder().InPlace(); err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	err := l.Folder().InPlace()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Error(err)
	}
	if err := l.Folder().InPlace(); err != nil {
		t.Error(err)
	}
}

// A process that is behind reads on after the log was removed: what it has read is neither lost nor damaged.
func TestBehindRemovedLog(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "s")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	behind, m := open(t, dir)
	defer behind.Close()
	mustAppend(t, behind, put("ma", "1"))
	l, _ := open(t, dir)
	fill(t, l, l.geo.Number(l.Durable())+2)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "wal")); err != nil {
		t.Fatal(err)
	}
	if err := behind.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m.val["ma"] != "1" {
		t.Fatal(m.val)
	}
	if _, err := behind.Append(t.Context(), put("mb", "2")); !errors.Is(err, errs.ErrReplaced) {
		t.Fatal(err)
	}
}

// A leading process releases watch.lock when it leaves: if only segments were removed, the lock file is also
// that of the log that another process begins.
func TestReplacedLeadsNoLonger(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "s")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	leads, _ := open(t, dir)
	defer leads.Close()
	mustAppend(t, leads, put("ma", "1"))
	lead, err := leads.Processes().Lead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = os.Remove(filepath.Join(dir, "wal", "00000001.wal"))
	if err := errors.Join(err, os.Remove(filepath.Join(dir, "checkpoint"))); err != nil {
		t.Fatal(err)
	}
	if err := leads.Folder().InPlace(); !errors.Is(err, errs.ErrReplaced) {
		t.Fatal(err)
	}
	if err := leads.Folder().AwaitRescue(t.Context()); err != nil {
		t.Fatal(err)
	}
	next, _ := open(t, dir)
	defer next.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	leader, err := next.Processes().Lead(ctx)
	if err != nil {
		t.Fatal("the first process is idle, and leads still:", err)
	}
	if err := errors.Join(lead.Release(), leader.Release()); err != nil {
		t.Fatal(err)
	}
}

// A comparison that is valid for the next write does not acknowledge it: the comparison after the sync does. A
// batch without entries and a refused one are not answered from a log that was replaced, either.
func TestReplacedBesideFreshComparison(t *testing.T) {
	t.Parallel()
	refused := put("ma", "2")
	refused.Preconditions = []Precondition{{Key: "ma", LSN: 0}}
	for name, c := range map[string]struct {
		b       *Batch
		written bool
	}{"entries": {put("mb", "1"), true}, "nothing": {&Batch{}, false}, "refused": {refused, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "s")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			fsys, release, err := vfs.Hold(vfs.Only(vfs.OS(), "", dir), dir)
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			l, _ := open(t, dir, func(o *Options) { o.FS, o.Inline = fsys, true }) // nothing else compares
			defer l.Close()
			mustAppend(t, l, put("ma", "1"))
			l.place.compared.Store(int64(time.Hour)) // a moment ago, for the whole test
			if err := os.Rename(dir, dir+".was"); err != nil {
				t.Fatal(err)
			}
			_, err = l.Append(t.Context(), c.b)
			if !errors.Is(err, errs.ErrReplaced) || errors.Is(err, errs.ErrOutcomeUnknown) != c.written {
				t.Error(err)
			}
		})
	}
}
