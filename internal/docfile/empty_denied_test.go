package docfile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// A folder of another user's process that was killed between creating it and giving the group access does
// not keep others from flushing; a folder with content stays, and is reported.
func TestEmptyTempOfAnotherUser(t *testing.T) {
	b := newBed(t, nil)
	skipWithoutLeases(t, b)
	b.put(b.change("a.json", 0, 1))
	b.l.FS = fault.New(vfs.OS(), func(op *wrap.Op) error {
		if op.Kind == wrap.ReadDir && strings.HasSuffix(op.Path, ".new") {
			return syscall.EACCES
		}
		return nil
	})
	other := b.flusher("other", nil)
	half := b.path("tmp", "11-22-33.11-1.new")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	if edits, err := other.EmptyTemp(b.surplus); err != nil || len(edits) != 0 {
		t.Errorf("%+v %v", edits, err)
	}
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Error(err)
	}
	if err := os.MkdirAll(filepath.Join(half, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := other.EmptyTemp(b.surplus); err == nil || !strings.Contains(err.Error(), ".new") {
		t.Error("a folder that cannot be listed was passed over:", err)
	}
	if _, err := os.Stat(filepath.Join(half, "x")); err != nil {
		t.Error(err)
	}
	b.want("a.json", 1)
}
