package docfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

func TestRead(t *testing.T) {
	b := newBed(t, nil)
	b.put(b.change("a.json", 0, 1))
	if _, _, err := b.folder.Read("none.json", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	b.write(b.folder.Path("empty.json"), "")
	if _, _, err := b.folder.Read("empty.json", 0); !errors.Is(err, errs.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("empty: %v", err)
	}
	if _, _, err := b.folder.Read("a.json", 10); !errors.Is(err, errs.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	b.fs.on = func(op, _ string) error { return &fs.PathError{Op: op, Err: errors.New("EMFILE")} }
	if _, _, err := b.folder.Read("a.json", 0); err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err,
		errs.ErrCorrupt) {
		t.Errorf("unreadable: %v", err)
	}
	for _, n := range []string{"", ".", "..", "a/b", `a\b`, "a\x00"} {
		if _, _, err := b.folder.Read(n, 0); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%q: %v", n, err)
		}
	}
}

// An open that found the inode before it was displaced, and continued when the inode held another document,
// must not return that document.
func TestReadStartsOverWhenReplaced(t *testing.T) {
	b := newBed(t, nil)
	b.put(b.change("a.json", 0, 1), b.change("b.json", 0, 1))
	l := b.l
	swaps := 0
	l.FS = &swapFS{FS: b.fs, after: func(name string) {
		if swaps++; swaps == 1 {
			// The opened file is moved elsewhere, and another takes its place.
			if err := b.fs.Exchange(name, b.folder.Path("b.json")); err != nil {
				t.Skip(err)
			}
		}
	}}
	got, _, err := l.Folder("memories").Read("a.json", 0)
	if err != nil || string(got) != doc("b.json", 1) || swaps != 2 {
		t.Fatalf("%q %v after %d opens", got, err, swaps)
	}
}

// swapFS calls after each time that a file was opened.
type swapFS struct {
	vfs.FS
	after func(name string)
}

func (s *swapFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := s.FS.OpenFile(name, flag, perm)
	s.after(name)
	return f, err
}

func TestScan(t *testing.T) {
	b := newBed(t, nil)
	b.put(b.change("b.json", 0, 1), b.change("a.json", 0, 1))
	for _, n := range []string{".a.json.swp", "a.json~", "4913", "x.json.tmp", "README.md"} {
		b.write(b.folder.Path(n), "x")
	}
	os.Mkdir(b.folder.Path("sub.json"), 0o700)
	if err := os.Symlink(b.path("nowhere"), b.folder.Path("link.json")); err != nil {
		t.Skip(err)
	}
	var got []string
	for e, err := range b.folder.Scan() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s=%v", e.Name, kindOf(e.Info.Mode)))
	}
	want := ".a.json.swp=a file 4913=a file README.md=a file a.json=a file a.json~=a file b.json=a file " +
		"link.json=a symbolic link sub.json=a folder x.json.tmp=a file"
	if strings.Join(got, " ") != want {
		t.Fatalf("got  %v\nwant %s", got, want)
	}
	for _, err := range b.l.Folder("none").Scan() {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("a missing folder: %v", err)
		}
		return
	}
	t.Fatal("a missing folder looks empty")
}
