package docfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

func newTree(t *testing.T) *bed {
	b := newBed(t, nil)
	b.folder = b.l.FolderOf("memories", FolderOptions{Tree: true, Empty: true})
	return b
}

// TestTree: the folders of a document are created with it, and removed with the last document in them.
func TestTree(t *testing.T) {
	b := newTree(t)
	deep := strings.Repeat("x/", 20) + "a.md"
	var made []string
	b.fs.on = func(op, name string) error {
		if op == "mkdir" || op == "syncdir" {
			made = append(made, op+" "+b.l.rel(name))
		}
		return nil
	}
	b.put(b.change("x/y/a.md", 0, 1))
	want := []string{"mkdir memories/x", "syncdir memories", "mkdir memories/x/y", "syncdir memories/x"}
	if made = slices.DeleteFunc(made, func(s string) bool {
		return strings.HasSuffix(s, "tmp") || strings.Contains(s, "tok") || strings.HasSuffix(s, " .")
	}); len(made) < 4 || !slices.Equal(made[:4], want) {
		t.Errorf("the folders: %q", made)
	}
	b.fs.on = nil
	b.put(b.change("x/b.md", 0, 1), b.change("c.md", 0, 1), b.change(deep, 0, 1))
	b.put(b.change("x/b.md", 1, 2))
	b.want("x/y/a.md", 1)
	b.want("x/b.md", 2)
	b.want(deep, 1)
	names, err := b.folder.Names()
	if err != nil || !slices.Equal(names, []string{"c.md", "x/b.md", deep, "x/y/a.md"}) {
		t.Errorf("names: %q, %v", names, err)
	}
	b.put(b.change(deep, 1, 0))
	if _, err := os.Stat(b.folder.Path("x/x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("emptied folders: %v", err)
	}
	b.put(b.change("x/y/a.md", 1, 0), b.change("x/b.md", 2, 0))
	if _, err := os.Stat(b.folder.Path("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the emptied folder: %v", err)
	}
	if _, _, err := b.folder.Read("x/b.md", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a document in no folder: %v", err)
	}
	for _, n := range []string{"", "..", "a//b", "/a", "a/", "a/../b", `a\b`, "a\nb", "a\xffb",
		strings.Repeat("x/", MostDepth) + "x", strings.Repeat("x", MostElement+1),
		strings.Repeat("xxxxxxxx/", MostPath/9) + "xxxxxxxx"} {
		if _, _, err := b.folder.Read(n, 0); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", n, err)
		}
	}
	b.wantSetAside()
}

// TestTreeBlocked: what is in the place of a folder is neither followed nor replaced.
func TestTreeBlocked(t *testing.T) {
	b := newTree(t)
	out := t.TempDir()
	if err := os.Symlink(out, b.folder.Path("link")); err != nil {
		t.Skip(err)
	}
	b.write(b.folder.Path("file"), "mine")
	r := b.round(b.change("link/a.md", 0, 1), b.change("file/a.md", 0, 1), b.change("b/a.md", 0, 1))
	if len(r.Blocked) != 2 || r.Blocked[0].Change != 0 || r.Blocked[1].Change != 1 {
		t.Fatalf("%+v", r)
	}
	b.want("b/a.md", 1)
	if names, err := os.ReadDir(out); err != nil || len(names) > 0 {
		t.Errorf("behind the link: %v, %v", names, err)
	}
	if _, err := b.folder.Stat("link/a.md"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a link: %v", err)
	}
	if _, err := b.folder.Stat("file/a.md"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a file: %v", err)
	}
	for name, in := range map[string]string{
		"link/a.md": "link", "file/a/b": "file", "b/a.md": "b/a.md", "b/c": "", "d/e/f": "",
	} {
		if got := b.folder.InTheWay(name); got != in {
			t.Errorf("in the way of %s: %q, want %q", name, got, in)
		}
	}
	if r := b.round(b.change("file/a.md", 1, 0)); len(r.Missing) != 1 {
		t.Errorf("%+v", r)
	}
	if _, _, err := b.folder.Read("b", 0); !errors.Is(err, fs.ErrNotExist) { // a folder with documents
		t.Errorf("a folder in the place of a document: %v", err)
	}
	if r := b.round(b.change("b", 1, 0)); len(r.Missing) != 1 || len(r.Blocked) > 0 {
		t.Errorf("%+v", r)
	}
	b.want("b/a.md", 1)
}

// TestTreeParked: a displaced file that another process has open keeps the path that it was at.
func TestTreeParked(t *testing.T) {
	b := newTree(t)
	skipWithoutLeases(t, b)
	for _, name := range []string{"x/a@1%.md", strings.Repeat("long/", 50) + "ü.md"} {
		b.put(b.change(name, 0, 1))
		f, err := os.OpenFile(b.folder.Path(name), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		b.put(b.change(name, 1, 2))
		if _, err := f.WriteAt([]byte("an edit"), 0); err != nil {
			t.Fatal(err)
		}
		f.Close()
		r := b.round()
		if len(r.Edits) != 1 || len(name) < parkedMost && r.Edits[0].Name != name {
			t.Errorf("%s: %+v", name, r)
		}
		b.want(name, 2)
	}
}

// TestTreeEmpty: an empty document is one, and an empty file of another folder is damage.
func TestTreeEmpty(t *testing.T) {
	b := newTree(t)
	c := Change{Folder: b.folder, Name: "x/empty", Bytes: []byte{}, Mtime: b.mtime(1)}
	b.put(c)
	data, info, err := b.folder.Read("x/empty", 0)
	if err != nil || len(data) != 0 || !info.Mtime.Equal(b.mtime(1)) {
		t.Errorf("%q, %v, %v", data, info, err)
	}
	c.Folder, c.Name = b.l.Folder("memories"), "empty.json"
	if _, err := b.fl.Round(t.Context(), []Change{c}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("an empty JSON document: %v", err)
	}
	b.write(c.Folder.Path("empty.json"), "")
	if _, _, err := c.Folder.Read("empty.json", 0); !errors.Is(err, errs.ErrCorrupt) {
		t.Errorf("an empty JSON file: %v", err)
	}
}

// countFS counts calls of Stat. It returns the types of entries as the file system does.
type countFS struct {
	vfs.FS
	stats int
}

func (f *countFS) Stat(name string) (vfs.Info, error) { f.stats++; return f.FS.Stat(name) }

func (f *countFS) ReadTypes(name string) ([]vfs.Entry, error) {
	return vfs.OS().(vfs.TypeReader).ReadTypes(name)
}

// TestTreeNames: names are listed without a look at each file, with the same result as with one; a folder that is too
// deep is listed as a file would be.
func TestTreeNames(t *testing.T) {
	b := newTree(t)
	var changes []Change
	for i := range 50 {
		changes = append(changes, b.change(fmt.Sprintf("f%d/%d.md", i%5, i), 0, 1))
	}
	b.put(changes...)
	deepest := strings.Repeat("x/", vfs.Deepest-1) + "x"
	if err := os.MkdirAll(b.folder.Path(deepest+"/y"), 0o700); err != nil {
		t.Fatal(err)
	}
	slow, err := b.folder.Names()
	if err != nil || len(slow) != 51 || slow[50] != deepest {
		t.Fatalf("%q, %v", slow, err)
	}
	l, fsys := b.l, &countFS{FS: b.l.FS}
	l.FS = fsys
	fast, err := l.FolderOf("memories", FolderOptions{Tree: true}).Names()
	if err != nil || !slices.Equal(slow, fast) || fsys.stats > 1 {
		t.Errorf("%q, %v, %d looks", fast, err, fsys.stats)
	}
}
