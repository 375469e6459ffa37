package docfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/varve-db/varve/errs"
)

// FAILURES 24: the same file is set aside once, not on each start.
func TestQuarantineOnce(t *testing.T) {
	b := newBed(t, nil)
	q := NewQuarantine(b.l, func() time.Time { return b.now })
	var first string
	for range 5 {
		b.now = b.now.Add(time.Hour)
		b.write(b.folder.Path("a.json"), "broken")
		where, err := q.File(b.folder.Path("a.json"), Note{Why: "test"})
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = where
		}
		if where != first {
			t.Fatalf("%s, then %s", first, where)
		}
		if _, err := os.Stat(b.folder.Path("a.json")); !os.IsNotExist(err) {
			t.Fatal("it is still there")
		}
		tail, err := q.Bytes("tail-7.wal", []byte("cut"), Note{Why: "test"})
		if err != nil || b.files()[tail] != "cut" {
			t.Fatal(tail, err)
		}
	}
	b.wantSetAside("broken", "cut")
	if !strings.HasSuffix(first, "-a.json") || filepath.Dir(first) != "quarantine" {
		t.Fatal(first)
	}
}

// FAILURES 187: a long name is cut between two characters, since some file systems refuse a name that
// is not UTF-8.
func TestQuarantineCutsNames(t *testing.T) {
	b := newBed(t, nil)
	q := NewQuarantine(b.l, func() time.Time { return b.now })
	for _, name := range []string{strings.Repeat("é", 100), strings.Repeat("é", 100) + "x", strings.Repeat("語", 70), strings.Repeat("😀", 50), strings.Repeat("😀", 50) + "xyz"} {
		name += ".json"
		b.write(b.folder.Path(name), name)
		where, err := q.File(b.folder.Path(name), Note{Why: "test"})
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(filepath.Base(where), "-")
		if !utf8.ValidString(where) || !strings.HasSuffix(name, rest) || len(rest) < 140 {
			t.Fatalf("%q", where)
		}
	}
}

// Another process has the second file of equal bytes open and may save into it.
func TestQuarantineEqualButOpen(t *testing.T) {
	b := newBed(t, nil)
	skipWithoutLeases(t, b)
	q := NewQuarantine(b.l, func() time.Time { return b.now })
	for range 2 {
		b.write(b.folder.Path("a.json"), "broken")
		e, err := os.OpenFile(b.folder.Path("a.json"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if _, err := q.File(b.folder.Path("a.json"), Note{Why: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	b.wantSetAside("broken", "broken")
}

func TestQuarantineLinkRefused(t *testing.T) {
	b := newBed(t, nil)
	out := t.TempDir()
	if err := os.Symlink(out, b.path("quarantine")); err != nil {
		t.Skip(err)
	}
	b.put(b.change("a.json", 0, 1))
	b.write(b.folder.Path("a.json"), "by hand")
	if _, err := b.fl.Round(t.Context(), []Change{b.change("a.json", 1, 2)}); !errors.Is(err, errs.ErrInvalid) {
		t.Fatal(err)
	}
	if got := b.files("memories")["a.json"]; got != "by hand" {
		t.Fatalf("the edit is gone: %q", got)
	}
	if list, _ := os.ReadDir(out); len(list) > 0 {
		t.Fatal("written through the link")
	}
}
