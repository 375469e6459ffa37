package synced

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

// Many file systems leave small files that were being written empty, or full of zeros, when the system
// crashes. Neither an empty lock, nor an empty heartbeat file, nor an empty shared page prevents a store
// from being opened, or loses a memory.
func TestFailures116(t *testing.T) {
	for _, what := range []string{"empty", "zeros"} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "s")
			st := open(t, dir, nil)
			put(t, st, "a", "text")
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			hurt := 0
			if err := filepath.WalkDir(filepath.Join(dir, "wal"), func(name string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || strings.HasSuffix(name, ".wal") {
					return err
				}
				info, err := d.Info()
				if err != nil {
					return err
				}
				hurt++
				if what == "empty" {
					return os.Truncate(name, 0)
				}
				return os.WriteFile(name, make([]byte, max(info.Size(), 128)), 0o600)
			}); err != nil {
				t.Fatal(err)
			}
			if hurt < 4 {
				t.Fatalf("only %d files beside the segments: the case shows nothing", hurt)
			}
			st = open(t, dir, &varve.Options{LockWait: 5 * time.Second})
			expect(t, st, "a", "text")
			put(t, st, "b", "text")
			second := open(t, dir, nil)
			expect(t, second, "b", "text")
			sound(t, second, dir)
		})
	}
}

// Counting an access to an expired memory, or setting its values again from a copy that was read before,
// does not restore it unless the writer requests that.
func TestFailures117(t *testing.T) {
	ctx := context.Background()
	began := time.Now()
	var ahead atomic.Int64 // the log prepares space beside the test
	now := func() time.Time { return began.Add(time.Duration(ahead.Load())) }
	up := func() time.Duration { return time.Hour + time.Duration(ahead.Load()) }
	st := open(t, filepath.Join(t.TempDir(), "s"), storetest.In(&varve.Options{Clock: now, NoBackground: true},
		storetest.Environment{System: vfs.System{Uptime: up}}))
	m, err := st.Put(ctx, varve.Memory{ID: "a", Content: "text", ExpiresAt: began.Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	ahead.Add(int64(30 * time.Second))
	if err := st.Touch(ctx, "a"); err != nil { // is written after it has expired
		t.Fatal(err)
	}
	ahead.Add(int64(time.Minute))
	gone := func(when string) {
		t.Helper()
		if m, err := st.Get(ctx, "a"); !errors.Is(err, varve.ErrNotFound) {
			t.Errorf("%s: %+v, %v", when, m, err)
		}
	}
	gone("expired")
	if err := st.Touch(ctx, "a"); err != nil && !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
	if _, err := st.Update(ctx, "a", func(m *varve.Memory) error { m.ExpiresAt = now().Add(time.Hour); return nil }); !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("an update finds what has expired: %v", err)
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	gone("touched")
	if _, err := st.Put(ctx, m); err == nil { // with its own, past time
		gone("put again as it was")
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// A store that can only be read reports that, and why: when it is opened, in its health, and for each
// write. No write is accepted and lost.
func TestFailures118(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	st := open(t, dir, &varve.Options{NoBackground: true})
	for _, id := range []string{"a", "b", "c"} {
		put(t, st, id, "text of "+id)
	}
	copied := filepath.Join(t.TempDir(), "copied") // as a process that was killed leaves it
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(copied, "wal", "*.wal"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	storetest.Rewrite(t, segments[0], func(b []byte) []byte {
		i := strings.Index(string(b), "text of b")
		if i < 0 {
			t.Fatal("the log does not have the text")
		}
		b[i] ^= 1
		return b
	})
	told := 0
	hurt := open(t, copied, &varve.Options{Listener: func(e varve.Event) {
		if e.Kind == varve.EventCorruption {
			told++
		}
	}})
	h := hurt.Health(ctx)
	if h.OK || h.Writable || len(h.Problems) == 0 {
		t.Errorf("its health is %+v", h)
	}
	if told == 0 {
		t.Error("no event tells that the log is damaged")
	}
	_, err = hurt.Put(ctx, varve.Memory{ID: "d", Content: "x"})
	if damage := (*varve.CorruptionError)(nil); !errors.Is(err, varve.ErrReadOnly) || !errors.As(err, &damage) || !strings.Contains(err.Error(), "memctl verify") {
		t.Errorf("a write gets %v", err)
	}
	expect(t, hurt, "a", "text of a")

	ro := open(t, dir, &varve.Options{ReadOnly: true})
	if h := ro.Health(ctx); h.Writable {
		t.Errorf("opened to read: %+v", h)
	}
	if _, err := ro.Put(ctx, varve.Memory{ID: "d", Content: "x"}); !errors.Is(err, varve.ErrReadOnly) {
		t.Errorf("opened to read, a write gets %v", err)
	}
}
