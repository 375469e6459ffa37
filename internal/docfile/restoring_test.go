package docfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

// TestRestoringStaysShort: however often folders vanish and are restored, the record of it does not grow beyond its
// limit, and it has the folders that are being restored.
func TestRestoringStaysShort(t *testing.T) {
	t.Parallel()
	l := Layout{FS: vfs.OS(), Root: t.TempDir()}
	path := filepath.Join(l.Root, filepath.FromSlash(RestoringFile))
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, other := l.FolderOf("notes", FolderOptions{Tree: true}), l.FolderOf("memories", FolderOptions{})
	if err := other.Restore(""); err != nil {
		t.Fatal(err)
	}
	longest := int64(0)
	for i := range 150 {
		name := fmt.Sprintf("%03d%s", i, strings.Repeat("x", 1000))
		if err := errors.Join(f.Restore("vault"), f.Restore(name)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		longest = max(longest, info.Size())
		if got, err := f.Restoring(); err != nil || !slices.Equal(got, []string{"vault", name}) {
			t.Fatalf("%d: %.80q %v", i, got, err)
		}
		if got, err := other.Restoring(); err != nil || !slices.Equal(got, []string{""}) {
			t.Fatalf("%d: %q %v", i, got, err)
		}
		if err := f.Restored([]string{name}); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Restoring(); err != nil || !slices.Equal(got, []string{"vault"}) {
			t.Fatalf("%d: %.80q %v", i, got, err)
		}
	}
	if longest < longRestoring-4096 || longest > longRestoring+4096 {
		t.Errorf("at most %d bytes", longest)
	}
	if err := errors.Join(other.Restored([]string{""}), f.Restored([]string{"vault"})); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 || l.Restores() {
		t.Errorf("left: %v %v", left, err)
	}
}

// TestRestoringTooLarge: a record that the store did not write is an error that says what to do, and nothing counts as
// deleted.
func TestRestoringTooLarge(t *testing.T) {
	t.Parallel()
	l := Layout{FS: vfs.OS(), Root: t.TempDir()}
	path := filepath.Join(l.Root, filepath.FromSlash(RestoringFile))
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("x\n"), mostRestoring), 0o600); err != nil {
		t.Fatal(err)
	}
	f := l.FolderOf("notes", FolderOptions{Tree: true})
	_, err := f.Restoring()
	if !errors.Is(err, errs.ErrTooLarge) || !strings.Contains(err.Error(), "adopt_deletions") {
		t.Errorf("%v", err)
	}
	if err := f.Restore("vault"); !errors.Is(err, errs.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}
