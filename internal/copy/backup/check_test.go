package backup

import (
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
)

// TestListedTooLarge verifies that no more of a listed file is read than a store reads of a document of that kind: a
// packed file of a few kilobytes can list files of a gigabyte.
func TestListedTooLarge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, most := range map[string]int64{"memories/x.json": places.StoredMost, "assemblies/x.json": places.StoredMost,
		"notes/a/b.md": 16 << 20} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600),
			os.Truncate(path, most+1)); err != nil {
			t.Fatal(err)
		}
		f := listedFile{name: name}
		if _, _, err := f.read(vfs.OS(), dir); !errors.Is(err, errs.ErrCorrupt) || !errors.Is(err, errs.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		text := []byte("{}")
		f.hash = sha256.Sum256(text)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if b, _, err := f.read(vfs.OS(), dir); err != nil || string(b) != "{}" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
