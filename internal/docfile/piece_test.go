package docfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/vfs/crash"
)

var errMissing = errors.New("missing")

func missing(string) error { return errMissing }

// A piece that was dropped stays gone when the power is cut. A process that is killed meanwhile leaves the
// piece with its note, or the note alone, and it can be dropped again.
func TestDropCut(t *testing.T) {
	t.Parallel()
	ops := 0
	for kill := 0; kill == 0 || kill <= ops; kill++ { // 0: not killed
		s := emptyScene(t, way{})
		q := NewQuarantine(s.l, func() time.Time { return s.now })
		where, err := q.Bytes("a.json", []byte("text"), Note{Why: "a test", From: "memories/a.json"})
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(where)
		n, killed := 0, errors.New("killed")
		s.fs.on = func(op, _ string) error {
			if n++; kill != 0 && n >= kill {
				return killed
			}
			return nil
		}
		dropped, err := q.Drop(context.Background(), []string{name}, missing)
		if kill == 0 {
			if ops = n; err != nil || !slices.Equal(dropped, []string{name}) {
				t.Fatal(dropped, err)
			}
			disk := s.disk.Crash(crash.LoseAll, rand.New(rand.NewPCG(1, 1)))
			left, err := NewQuarantine(Layout{FS: disk.Process("next"), Root: "/store"}, nil).Pieces()
			if err != nil || len(left) > 0 {
				t.Fatalf("behind a power cut: %+v, %v", left, err)
			}
		} else if !errors.Is(err, killed) {
			t.Fatalf("killed at %d: %v", kill, err)
		}
		s.fs.on = nil
		list, err := q.Pieces()
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case len(list) == 0:
			continue
		case kill == 0, len(list) != 1, list[0].Note == nil, list[0].Lone == (list[0].Name == name):
			t.Fatalf("killed at %d: %+v", kill, list)
		}
		if _, err := q.Drop(context.Background(), []string{list[0].Name}, missing); err != nil {
			t.Errorf("killed at %d, again: %v", kill, err)
		}
		if list, err := q.Pieces(); err != nil || len(list) != 0 {
			t.Errorf("killed at %d, again: %+v, %v", kill, list, err)
		}
	}
}

// The note that a killed process left for another path does not become the note of the piece that gets the
// same name.
func TestSpecialBesideANoteOfAnother(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	if err := b.l.makeFolder(quarantineFolder); err != nil {
		t.Fatal(err)
	}
	b.write(b.path("quarantine", "unreadable-a.json.note.json"), `{"why":"another","from":"assemblies/a.json"}`)
	if err := b.fs.Mkdir(b.folder.Path("a.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	where, err := b.fl.Aside(b.folder.Path("a.json"), Note{Why: "a folder"})
	if err != nil || where != "quarantine/unreadable-a.json.2" {
		t.Fatal(where, err)
	}
	q := b.fl.quarantine
	p, err := q.Piece("unreadable-a.json.2")
	if err != nil || p.Note == nil || p.Note.From != "memories/a.json" || p.Note.NotHashed != "a folder" || !p.Info.Mode.IsDir() {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := q.Piece("unreadable-a.json.note.json"); err != nil || !p.Lone {
		t.Errorf("%+v, %v", p, err)
	}
	if n, noted, err := q.Count(); n != 2 || noted != 1 || err != nil {
		t.Error(n, noted, err)
	}
	if _, err := q.Piece("nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// What is in quarantine is listed by the time at which it was set aside, whatever its name is.
func TestPieces(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	if err := b.l.makeFolder(quarantineFolder); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"c", "a", `back\slash`, "x.note"} {
		b.write(b.path("quarantine", name), "text")
		b.write(b.path("quarantine", name+".note.json"), fmt.Sprintf(`{"why":"w","from":"memories/x.json","when":"2026-01-0%dT00:00:00Z"}`, i+1))
	}
	b.write(b.path("quarantine", "half.part"), "text")
	b.write(b.path("quarantine", "z.purged"), "text")
	b.write(b.path("quarantine", "bad"), "text")
	b.write(b.path("quarantine", "bad.note.json"), "no note")
	list, err := b.fl.quarantine.Pieces()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range list {
		names = append(names, p.Name)
		if (p.Err != nil) != (p.Name == "bad") {
			t.Errorf("%s: %v", p.Name, p.Err)
		}
	}
	if want := []string{"c", "a", `back\slash`, "x.note", "bad"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// Drop removes the named piece and its note, and nothing that only has the name of a note.
func TestDropLeavesWhatIsNoNote(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	if err := b.l.makeFolder(quarantineFolder); err != nil {
		t.Fatal(err)
	}
	b.write(b.path("quarantine", "a"), "text")
	b.write(b.path("outside"), "text")
	link := b.path("quarantine", "a.note.json")
	if err := os.Symlink(b.path("outside"), link); err != nil {
		t.Skip(err)
	}
	if _, err := b.fl.quarantine.Drop(context.Background(), []string{"a"}, missing); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(b.path("quarantine", "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
	for _, path := range []string{link, b.path("outside")} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}

// What is set aside is listed whatever its name was, and does not get the name of an unfinished write or
// purge.
func TestSetAsideUnderAReservedName(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	q := b.fl.quarantine
	var want []string
	for _, name := range []string{"a.part", "a.purged", "a.note.json"} {
		if err := b.fs.Mkdir(b.folder.Path(name), 0o700); err != nil {
			t.Fatal(err)
		}
		where, err := b.fl.Aside(b.folder.Path(name), Note{Why: "a folder"})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, filepath.Base(where))
		where, err = q.Bytes(name, []byte(name), Note{Why: "a test"})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, filepath.Base(where))
	}
	list, err := q.Pieces()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range list {
		names = append(names, p.Name)
		if p.Note == nil || p.Lone || isUnfinished(p.Name) {
			t.Errorf("%+v", p)
		}
	}
	slices.Sort(want)
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}
