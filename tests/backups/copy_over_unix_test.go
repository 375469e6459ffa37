//go:build unix

package backups

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// renewed replaces a file by a copy of another one, as rsync does.
func renewed(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to+".copy", b, 0o600)
	}
	if err == nil {
		err = os.Rename(to+".copy", to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An older copy replaces an open store, file by file, the checkpoint before the log. A flush in between
// recorded in the older checkpoint that the log reaches as far as it did, which the older segments do
// not: the result was a damaged log.
func TestCopyOverBesideFlush(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	st, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true})
	if err == nil {
		_, err = st.Put(ctx, varve.Memory{ID: "old", Content: "of the copy"})
	}
	if err == nil {
		err = st.Close()
	}
	if err == nil {
		err = os.CopyFS(dir+".copy", os.DirFS(dir))
	}
	if err != nil {
		t.Fatal(err)
	}
	a, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if i == 2 {
			renewed(t, filepath.Join(dir+".copy", "checkpoint"), filepath.Join(dir, "checkpoint"))
		}
		_, err := a.Put(ctx, varve.Memory{ID: fmt.Sprint("new", i), Content: "of the open store"})
		if err == nil {
			err = a.Flush(ctx)
		}
		if i < 2 && err != nil || i == 2 && !errors.Is(err, varve.ErrReplaced) {
			t.Error(i, err)
		}
	}
	names, err := filepath.Glob(filepath.Join(dir+".copy", "wal", "*.wal"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range append(names, filepath.Join(dir+".copy", "wal", "shared")) {
		renewed(t, name, filepath.Join(dir, "wal", filepath.Base(name)))
	}
	if err := a.Close(); !errors.Is(err, varve.ErrReplaced) {
		t.Error(err)
	}
	b := fixture.Open(t, dir, nil)
	for f, err := range b.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil || strings.HasPrefix(f.Path, "wal/") {
			t.Error(f, err)
		}
	}
	for _, id := range []string{"old", "new0", "new1"} { // documents that the copy did not replace
		if _, err := b.Get(ctx, id); err != nil && id == "old" {
			t.Error(err)
		}
	}
}

// TestCopyOverMappedIndex: a copy that is written in place cuts the mapped index short. A reader of the
// open store gets ErrReplaced, and not an error that reports damage.
func TestCopyOverMappedIndex(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true, CacheBytes: -1})
	for i := range 400 {
		_, err := st.Put(ctx, varve.Memory{ID: fmt.Sprintf("m%03d", i), Content: strings.Repeat("x", 300)})
		fixture.Must(t, err)
	}
	fixture.Must(t, st.Close())
	a, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true, CacheBytes: -1})
	fixture.Must(t, err)
	t.Cleanup(func() { _ = a.Close() }) // ErrReplaced
	_, err = a.Get(ctx, "m000")
	fixture.Must(t, err)
	fixture.Must(t, os.Truncate(filepath.Join(dir, "memory_index.json"), 0))
	fixture.Must(t, os.Truncate(filepath.Join(dir, "wal", "shared"), 0)) // its page has an earlier numbers
	_, err = a.Get(ctx, "m399")
	if !errors.Is(err, varve.ErrReplaced) || errors.Is(err, varve.ErrCorrupt) {
		t.Errorf("Get: %v", err)
	}
	for _, err := range a.Memories(ctx) {
		if err != nil && !errors.Is(err, varve.ErrReplaced) {
			t.Errorf("Memories: %v", err)
		}
	}
	_, err = a.Search(ctx, varve.Query{Text: "x"})
	if err != nil && !errors.Is(err, varve.ErrReplaced) {
		t.Errorf("Search: %v", err)
	}
}
