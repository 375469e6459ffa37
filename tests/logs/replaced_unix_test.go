//go:build unix

package logs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/working"
)

// removeLog removes from a store what git clean -fdX would: the files named by its .gitignore.
func removeLog(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"wal", "tmp", "backups", "vector_index", "checkpoint", "memory_index.json",
		"memory_index.delta.json"} {
		err := os.RemoveAll(filepath.Join(dir, name))
		for try := 0; errors.Is(err, syscall.ENOTEMPTY) && try < 100; try++ { // the next segment is just being made
			err = os.RemoveAll(filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// After its folder was replaced a store returns ErrReplaced, touches nothing in the new folder, and
// loses nothing that the new store acknowledges.
func TestReplaced(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(t *testing.T, dir string){
		"removed": func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		},
		"renamed": func(t *testing.T, dir string) {
			if err := os.Rename(dir, dir+".was"); err != nil {
				t.Fatal(err)
			}
		},
		"log removed": removeLog,
		"page cut to nothing": func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, "wal", "shared"), 0); err != nil {
				t.Fatal(err)
			}
		},
		"page removed": func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "wal", "shared")) },
		"segment removed": func(t *testing.T, dir string) {
			_ = os.Remove(filepath.Join(dir, "wal", "00000001.wal"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			dir := filepath.Join(t.TempDir(), "s")
			a, err := varve.Open(ctx, dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = a.Close() }()
			for i := range 10 {
				if _, err := a.Put(ctx, varve.Memory{ID: fmt.Sprint("a", i), Content: "from the first"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := a.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			replace(t, dir)
			b, err := varve.Open(ctx, dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = b.Close() }()
			for i := range 10 {
				if _, err := b.Put(ctx, varve.Memory{ID: fmt.Sprint("b", i), Content: "from the second"}); err != nil {
					t.Fatal(err)
				}
				if _, err := a.Put(ctx, varve.Memory{ID: fmt.Sprint("late", i), Content: "from the first"}); !errors.Is(err,
					varve.ErrReplaced) {
					t.Fatalf("Put in the replaced store: %v", err)
				}
			}
			for what, err := range map[string]error{
				"Flush": a.Flush(ctx), "Delete": a.Delete(ctx, "a1"), "Close": a.Close(),
			} {
				if !errors.Is(err, varve.ErrReplaced) {
					t.Errorf("%s of the replaced store: %v", what, err)
				}
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			c, err := varve.Open(ctx, dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			for i := range 10 {
				if _, err := c.Get(ctx, fmt.Sprint("b", i)); err != nil {
					t.Error(err)
				}
				if _, err := c.Get(ctx, fmt.Sprint("late", i)); !errors.Is(err, varve.ErrNotFound) {
					t.Error(err)
				}
			}
			for f, err := range c.Admin().Verify(ctx, varve.VerifyOptions{}) {
				if err != nil || !strings.HasPrefix(f.Path, "backups/") && !strings.HasPrefix(f.Path, "tmp/") {
					// of an index of the log that was removed, and files that a has not removed yet
					t.Error(f, err)
				}
			}
		})
	}
}

// If only the log was removed, acknowledged documents that are in no file yet are put into files: by a
// handle that is idle, by one that closes, and for all kinds of documents.
func TestReplacedRescue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		closes bool
		first  func(dir string) error // before the log is removed
	}{
		{"idle", false, nil},
		{"closes", true, nil},
		{"beside a copy of hard links", true, func(dir string) error {
			names, err := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
			for _, name := range names {
				err = errors.Join(err, os.Link(name, filepath.Join(filepath.Dir(dir), filepath.Base(name))))
			}
			return err
		}},
		{"reached by a link", true, nil},
		{"removed slowly", true, func(dir string) error { return os.Remove(filepath.Join(dir, "wal", "shared")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			dir := filepath.Join(t.TempDir(), "s")
			if c.name == "reached by a link" {
				if err := errors.Join(os.Mkdir(dir+".real", 0o700), os.Symlink("s.real", dir)); err != nil {
					t.Fatal(err)
				}
			}
			a, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = a.Close() }()
			if _, err := a.Put(ctx, varve.Memory{ID: "gone", Content: "deleted later"}); err != nil {
				t.Fatal(err)
			}
			if err := a.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			for i := range 100 {
				if _, err := a.Put(ctx, varve.Memory{ID: fmt.Sprint("a", i), Content: "only in the log"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := a.Delete(ctx, "gone"); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Assemblies().Put(ctx,
				varve.Assembly{ID: "all", Name: "all", MemoryIDs: []string{"a1", "a2"}}); err != nil {
				t.Fatal(err)
			}
			w, err := a.Working().Open(ctx, working.Scope{Session: "plan"}, nil)
			if err == nil {
				err = w.Set(ctx, "step", "one")
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.first != nil {
				if err := c.first(dir); err != nil {
					t.Fatal(err)
				}
			}
			if c.name != "removed slowly" {
				removeLog(t, dir)
			}
			if c.closes {
				if err := a.Close(); !errors.Is(err, varve.ErrReplaced) {
					t.Fatal(err)
				}
			}
			removeLog(t, dir)
			b, err := varve.Open(ctx, dir, &varve.Options{LockWait: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = b.Close() }()
			for i := range 100 {
				if _, err := b.Get(ctx, fmt.Sprint("a", i)); err != nil {
					t.Error(err)
				}
			}
			if _, err := b.Get(ctx, "gone"); !errors.Is(err, varve.ErrNotFound) {
				t.Error("a deletion was lost:", err)
			}
			if _, err := b.Assemblies().Get(ctx, "all"); err != nil {
				t.Error(err)
			}
			if w, err = b.Working().Open(ctx, working.Scope{Session: "plan"}, nil); err != nil {
				t.Fatal(err)
			}
			if v, ok, err := w.Get(ctx, "step"); err != nil || !ok || v != "one" {
				t.Error(v, ok, err)
			}
		})
	}
}

// A cleaner removes the checkpoint, and a store closes, long before the log is removed as well: without
// a checkpoint no round of the close can end, and documents that are only in the log are put into files.
func TestCloseWithoutCheckpoint(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	a, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if _, err := a.Put(ctx, varve.Memory{ID: fmt.Sprint("a", i), Content: "only in the log"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "checkpoint")); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err == nil {
		t.Error("Close has not told that the checkpoint is missing")
	}
	removeLog(t, dir)
	b := fixture.Open(t, dir, nil)
	for i := range 20 {
		if _, err := b.Get(ctx, fmt.Sprint("a", i)); err != nil {
			t.Error(err)
		}
	}
}

// noise returns a text that does not compress.
func noise(n int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%x ", rand.Uint64())
	}
	return b.String()
}

// A process that was behind when the log was removed does not replace a version that another process has
// rescued by its older one.
func TestReplacedRescueBehind(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	o := &varve.Options{NoBackground: true, SegmentSize: 64 << 10}
	behind, err := varve.Open(ctx, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = behind.Close() }()
	if _, err := behind.Put(ctx, varve.Memory{ID: "a", Content: "older"}); err != nil {
		t.Fatal(err)
	}
	a, err := varve.Open(ctx, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 { // some segments
		if _, err := a.Put(ctx, varve.Memory{ID: fmt.Sprint("more", i), Content: noise(5000)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Put(ctx, varve.Memory{ID: "a", Content: "newer"}); err != nil {
		t.Fatal(err)
	}
	removeLog(t, dir)
	for _, st := range []*varve.Store{a, behind} {
		if err := st.Close(); !errors.Is(err, varve.ErrReplaced) {
			t.Fatal(err)
		}
	}
	b := fixture.Open(t, dir, nil)
	if m, err := b.Get(ctx, "a"); err != nil || m.Content != "newer" {
		t.Error(m.Content, err)
	}
}

// Another process that rescues may be stopped while it has the lock: Close does not wait for it forever.
func TestReplacedRescueWaits(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	a, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true, LockWait: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Put(ctx, varve.Memory{ID: "a", Content: "only in the log"}); err != nil {
		t.Fatal(err)
	}
	lock, err := vfs.OpenFolderLock(vfs.OS(), filepath.Join(dir, "memories"))
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := lock.TryLock(vfs.ModeExclusive); !ok || err != nil {
		t.Fatal(ok, err)
	}
	removeLog(t, dir)
	closed := make(chan error, 1)
	go func() { closed <- a.Close() }()
	select {
	case err := <-closed:
		var unfiled *varve.UnfiledError
		if !errors.Is(err, varve.ErrReplaced) || !errors.As(err, &unfiled) || !errors.Is(err, varve.ErrLocked) {
			t.Fatal("Close has not told what is in no file:", err)
		}
		if unfiled.Count != 1 || !slices.Equal(unfiled.Documents, []string{`memory "a"`}) {
			t.Error(unfiled.Count, unfiled.Documents)
		}
	case <-time.After(20 * time.Second):
		t.Error("Close waits without end")
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}

// The cause that prevents a rescue may pass: it is tried again, and no other process begins a log until
// then.
func TestReplacedRescueAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	failed := make(chan struct{}, 100)
	o := &varve.Options{NoBackground: true, LockWait: 50 * time.Millisecond, Logger: slog.New(rescueLog{failed})}
	a, err := varve.Open(ctx, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	for i := range 10 {
		if _, err := a.Put(ctx, varve.Memory{ID: fmt.Sprint("a", i), Content: "only in the log"}); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := vfs.OpenFolderLock(vfs.OS(), filepath.Join(dir, "memories"))
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := lock.TryLock(vfs.ModeExclusive); !ok || err != nil {
		t.Fatal(ok, err)
	}
	removeLog(t, dir)
	if err := a.Admin().InPlace(); !errors.Is(err, varve.ErrReplaced) {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case <-failed:
		case <-time.After(20 * time.Second):
			t.Fatal("the rescue is not done again")
		}
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	b := fixture.Open(t, dir, nil)
	for i := range 10 {
		if _, err := b.Get(ctx, fmt.Sprint("a", i)); err != nil {
			t.Error(err)
		}
	}
	if err := a.Close(); !errors.Is(err, varve.ErrReplaced) || errors.As(err, new(*varve.UnfiledError)) {
		t.Error(err)
	}
}

// withMemory opens a store without background work, with the memory "a" in its log. It is closed when
// the test ends.
func withMemory(t *testing.T, dir, content string) *varve.Store {
	t.Helper()
	st, err := varve.Open(context.Background(), dir, &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if _, err := st.Put(context.Background(), varve.Memory{ID: "a", Content: content}); err != nil {
		t.Fatal(err)
	}
	return st
}

// If the whole content of the folder was removed, documents are not put into files anymore: another
// process may create a store there.
func TestReplacedContentRemoved(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	a := withMemory(t, dir, "only in the log")
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, name := range all { // rm -rf s/*
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Admin().InPlace(); !errors.Is(err, varve.ErrReplaced) {
		t.Fatal(err)
	}
	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := storetest.Inner(a).Engine.Log().Folder().AwaitRescue(wait); err != nil { // before b makes folders
		t.Fatal("the removed store keeps the folder:", err)
	}
	b := fixture.Open(t, dir, nil)
	if _, err := b.Put(ctx, varve.Memory{ID: "b", Content: "of a new store"}); err != nil {
		t.Fatal(err)
	}
	var unfiled *varve.UnfiledError
	if err := a.Close(); !errors.Is(err, varve.ErrReplaced) || !errors.As(err, &unfiled) || unfiled.Count != 1 {
		t.Error(err)
	}
	if _, err := b.Get(ctx, "a"); !errors.Is(err, varve.ErrNotFound) {
		t.Error("a removed store has put a document into the new one:", err)
	}
}

// rescueLog is a logger that reports each rescue that failed.
type rescueLog struct{ failed chan struct{} }

func (rescueLog) Enabled(context.Context, slog.Level) bool { return true }
func (l rescueLog) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l rescueLog) WithGroup(string) slog.Handler          { return l }
func (l rescueLog) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "entries of the removed log") {
		l.failed <- struct{}{}
	}
	return nil
}

// A process that opens the store while its log is being removed under another one waits until the other
// has released it.
func TestOpenDuringRemoval(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{"checkpoint": "checkpoint", "page": "wal/shared"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			dir := filepath.Join(t.TempDir(), "s")
			a, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = a.Close() }()
			if _, err := a.Put(ctx, varve.Memory{ID: "a", Content: "only in the log"}); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(dir, first)); err != nil {
				t.Fatal(err)
			}
			rest := time.AfterFunc(200*time.Millisecond, func() { removeLog(t, dir) }) // a slow removal
			defer rest.Stop()
			b := fixture.Open(t, dir, nil)
			if _, err := b.Get(ctx, "a"); err != nil {
				t.Error(err)
			}
		})
	}
}

// Calls that need no write are not acknowledged either, and the folder of a read-only store is checked
// too.
func TestReplacedNothingWritten(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	a := withMemory(t, dir, "one")
	reads := fixture.Open(t, dir, &varve.Options{ReadOnly: true})
	if err := reads.Admin().InPlace(); err != nil {
		t.Fatal(err)
	}
	b := &varve.Batch{}
	b.Delete("not there")
	if err := a.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".was"); err != nil {
		t.Fatal(err)
	}
	if err := a.Apply(ctx, b); !errors.Is(err, varve.ErrReplaced) {
		t.Errorf("Apply of nothing: %v", err)
	}
	if err := reads.Admin().InPlace(); !errors.Is(err, varve.ErrReplaced) {
		t.Errorf("InPlace of a store that only reads: %v", err)
	}
	if m, err := reads.Get(ctx, "a"); err != nil || m.Content != "one" {
		t.Error("what was read before is not readable any more:", err)
	}
}

// A store that was opened by a relative path stays the same one when the process changes its working
// directory.
func TestReplacedChdir(t *testing.T) { // not parallel: the folder is that of the process
	ctx := context.Background()
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(dir, "b"))
	b := fixture.Open(t, "storage", nil)
	if _, err := b.Put(ctx, varve.Memory{ID: "b", Content: "of b"}); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(dir, "a"))
	a := fixture.Open(t, "storage", nil)
	t.Chdir(filepath.Join(dir, "b"))
	if _, err := a.Put(ctx, varve.Memory{ID: "a", Content: "of a"}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Flush(ctx), a.Close()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"a": 1, "b": 1} {
		st := fixture.Open(t, filepath.Join(dir, name, "storage"), &varve.Options{ReadOnly: true})
		if n, err := st.Count(ctx); err != nil || int(n) != want {
			t.Errorf("%s has %d memories: %v", name, n, err)
		}
		if _, err := st.Get(ctx, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
