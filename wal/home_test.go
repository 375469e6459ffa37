package wal

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
)

// A segment that is being moved to quarantine has a second name in quarantine/ of its own folder. In a copy of
// a store, whose log was at home elsewhere, that is no reason to refuse to write; a name outside the folder is.
func TestSegmentBeingSetAside(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the copy is told by the inode of its folder")
	}
	from, dir := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	l, _ := open(t, from)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.CopyFS(dir, os.DirFS(from)))
	list, err := filepath.Glob(filepath.Join(dir, "wal", "0*.wal"))
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	must(os.MkdirAll(filepath.Join(dir, "quarantine"), 0o700))
	must(os.Link(list[0], filepath.Join(dir, "quarantine", "0123456789abcdef-"+filepath.Base(list[0]))))
	astray := func() bool {
		d, err := dwells(vfs.OS(), dir, 0o600)
		must(err)
		if d.home == d.own {
			t.Fatal("the copy is the home of the log")
		}
		return d.astray()
	}
	if astray() {
		t.Error("the name in quarantine/ counts as one of another folder")
	}
	must(os.Link(list[0], filepath.Join(filepath.Dir(dir), "elsewhere")))
	if !astray() {
		t.Error("a name outside of the folder does not count")
	}
}
