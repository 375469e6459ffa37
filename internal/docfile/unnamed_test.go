package docfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
)

// counted returns a bed below a guarded root whose rounds create files without a name, and the operations that these
// rounds do. The test is skipped if the system has no such files.
func counted(t *testing.T) (*bed, map[string]int) {
	b := newBed(t, nil)
	b.fs.FS = vfs.Below(vfs.OS(), b.l.Root)
	b.fl = b.flusher("unnamed", func(o *Options) { o.Unnamed = 1 })
	d, err := vfs.OpenDir(b.fs.FS, b.path("memories"))
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no handles of folders")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	f, err := d.CreateUnnamed(0o600)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no unnamed files")
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	did := map[string]int{}
	b.fs.on = func(op, _ string) error {
		did[op]++
		return nil
	}
	return b, did
}

// New documents get files that have no name until they are complete; documents that exist are exchanged.
func TestUnnamed(t *testing.T) {
	b, did := counted(t)
	var cs []Change
	for i := range 20 {
		cs = append(cs, b.change(fmt.Sprintf("n%d.json", i), 0, 1))
	}
	b.put(cs...)
	if did["createunnamed"] != 20 || did["linkunnamed"] != 20 || did["open"]+did["renamenew"]+did["exchange"] != 0 {
		t.Errorf("operations: %v", did)
	}
	for i := range 20 {
		name := fmt.Sprintf("n%d.json", i)
		b.want(name, 1)
		if info, err := os.Stat(b.path("memories", name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
	if left := b.files("tmp"); len(left) > 0 {
		t.Errorf("in tmp/: %q", left)
	}
	b.put(b.change("n0.json", 1, 2), b.change("n1.json", 1, 0), b.change("new.json", 0, 1))
	b.want("n0.json", 2)
	b.want("new.json", 1)
}

// If a file is at the path of a new document, the new file gets a name in tmp/ and the two are exchanged: the user's
// file is in quarantine, and nothing is lost.
func TestUnnamedOverAFile(t *testing.T) {
	b, did := counted(t)
	b.write(b.path("memories", "a.json"), handmade)
	r := b.round(b.change("a.json", 0, 1), b.change("b.json", 0, 1))
	if len(r.Edits) != 1 || did["exchange"] != 1 {
		t.Errorf("%+v, %v", r, did)
	}
	b.want("a.json", 1)
	b.want("b.json", 1)
	b.wantSetAside(handmade)
}

// A system that cannot create unnamed files, or that cannot give them names (no /proc), gets files with names; it is
// asked once.
func TestUnnamedUnsupported(t *testing.T) {
	for _, lacks := range []string{"opendir", "createunnamed", "linkunnamed"} {
		b, did := counted(t)
		b.fs.on = func(op, _ string) error {
			did[op]++
			if op == lacks {
				return errors.ErrUnsupported
			}
			return nil
		}
		for round := range 2 {
			var cs []Change
			for i := range 10 {
				cs = append(cs, b.change(fmt.Sprintf("r%d n%d.json", round, i), 0, 1))
			}
			b.put(cs...)
		}
		for _, c := range []string{"r0 n0.json", "r0 n9.json", "r1 n5.json"} {
			b.want(c, 1)
		}
		if did[lacks] != 1 || did["renamenew"] != 20 {
			t.Errorf("without %s: %v", lacks, did)
		}
		if left := b.files("tmp"); len(left) > 0 {
			t.Errorf("in tmp/: %q", left)
		}
	}
}

// Files that were put into a folder which has another path when the round ends do not count: the round fails, and its
// repetition puts them into the folder that has the path now.
func TestUnnamedInAReplacedFolder(t *testing.T) {
	b, _ := counted(t)
	n := 0
	b.fs.on = func(op, _ string) error {
		if op == "linkunnamed" {
			if n++; n == 2 {
				if err := os.Rename(b.path("memories"), b.path("moved")); err != nil {
					return err
				}
				return os.Mkdir(b.path("memories"), 0o700)
			}
		}
		return nil
	}
	cs := []Change{b.change("a.json", 0, 1), b.change("b.json", 0, 1), b.change("c.json", 0, 1)}
	if _, err := b.fl.Round(context.Background(), cs); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the round succeeded, although its files are elsewhere: %v", err)
	}
	b.round(cs...)
	for _, name := range []string{"a.json", "b.json", "c.json"} {
		b.want(name, 1)
	}
	names, err := os.ReadDir(filepath.Join(b.l.Root, "moved"))
	if err != nil || !slices.ContainsFunc(names, func(e os.DirEntry) bool { return e.Name() == "b.json" }) {
		t.Errorf("the test did not put a file into the folder that was moved: %v, %v", names, err)
	}
}
