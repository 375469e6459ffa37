package notes

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/proofs"
)

// TestAnyBytes: a note may have any bytes up to the limit, and its file has exactly these, after a flush
// and after a rebuild. Content that is not text is reported as such, and is not searched.
func TestAnyBytes(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir)
	all := map[string]string{"empty": "", "crlf.md": "a\r\nb\r\n", "bom.md": "\ufeffa", "nul": "a\x00b",
		"invalid": "a\xff\xfeb", "no-end.md": "a\nb", "cr": "a\rb", "limit": strings.Repeat("x", note.MostBytes)}
	for path, s := range all {
		write(t, st, path, s)
	}
	must(t, st.Flush(t.Context()))
	must(t, st.Admin().RebuildIndex(t.Context()))
	for path, s := range all {
		n, err := st.Notes().Read(t.Context(), path)
		text := path != "nul" && path != "invalid"
		if err != nil || string(n.Content) != s || n.Text != text {
			t.Errorf("%s: %.20q, text %v, %v", path, n.Content, n.Text, err)
		}
		if b, err := os.ReadFile(at(dir, path)); err != nil || string(b) != s {
			t.Errorf("%s: the file has %.20q, %v", path, b, err)
		}
	}
	save(t, at(dir, "beyond"), strings.Repeat("x", note.MostBytes+1)) // a file beyond the limit stays, and is no note
	if s := text(t, st, "beyond"); s != none {
		t.Errorf("%d bytes", len(s))
	}
	if info, err := os.Stat(at(dir, "beyond")); err != nil || info.Size() != note.MostBytes+1 {
		t.Error(err)
	}
}

// TestManyInAFolder: many notes in one folder, at the deepest possible path, are renamed in one commit,
// and removed by hand and restored from the trash.
func TestManyInAFolder(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir)
	deep := strings.Repeat("f/", note.MostSegments-2) + "f"
	n := 200
	if proofs.Long() {
		n = 10_000
	}
	for i := range n {
		write(t, st, fmt.Sprintf("%s/%d.md", deep, i), fmt.Sprint("text ", i))
	}
	must(t, st.Flush(t.Context()))
	if moved, err := st.Notes().Rename(t.Context(), "f", "g"); err != nil || moved != n {
		t.Errorf("%d, %v", moved, err)
	}
	must(t, st.Flush(t.Context()))
	clean(t, st)
	trash := filepath.Join(t.TempDir(), "trash")
	must(t, os.Rename(filepath.Join(dir, "notes", "g"), trash))
	past := time.Now().Add(-time.Minute)
	must(t, filepath.WalkDir(filepath.Join(dir, "notes"), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chtimes(path, past, past)
		}
		return err
	}))
	path := "g" + deep[1:] + "/7.md"
	if s := text(t, st, path); s != none {
		t.Errorf("%q is there", s)
	}
	must(t, st.Flush(t.Context()))
	must(t, os.MkdirAll(filepath.Join(dir, "notes"), 0o700))
	must(t, os.Rename(trash, filepath.Join(dir, "notes", "g")))
	if s := text(t, st, path); s != "text 7" {
		t.Errorf("%q", s)
	}
	must(t, st.Close())
}

// TestRenameRefused: a rename onto an existing path, into itself and beyond a limit of paths changes nothing.
func TestRenameRefused(t *testing.T) {
	st := opened(t, t.TempDir())
	all := map[string]string{"a/b/c.md": "one", "d.md": "two", "e/f.md": "three"}
	for path, s := range all {
		write(t, st, path, s)
	}
	for _, r := range [][2]string{{"a", "a/b/x"}, {"a", "d.md"}, {"a", "e"}, {"d.md", "e/f.md"}, {"d.md", "d.md"},
		{"d.md", "e"}, {"d.md", "a/b/c.md/x"}, {"none", "x"}, {"a", strings.Repeat("x/", note.MostSegments-1) + "x"},
		{"d.md", "../x"}, {"e", strings.Repeat("y", note.MostPath-2)}} {
		if n, err := st.Notes().Rename(t.Context(), r[0], r[1]); err == nil || n != 0 {
			t.Errorf("%q to %.40q: %d, %v", r[0], r[1], n, err)
		}
	}
	expect(t, st, all)
}

// TestFolderForFile: a folder in the place of a note's file deletes the note, and its files become
// notes; likewise a file in the place of a folder.
func TestFolderForFile(t *testing.T) {
	dir := t.TempDir()
	st := watched(t, dir)
	write(t, st, "a", "a file")
	write(t, st, "b/c.md", "in a folder")
	must(t, st.Flush(t.Context()))
	must(t, os.Remove(at(dir, "a")))
	save(t, at(dir, "a/in.md"), "below")
	await(t, st, "a", none)
	await(t, st, "a/in.md", "below")
	must(t, os.RemoveAll(at(dir, "b")))
	save(t, at(dir, "b"), "a file now")
	await(t, st, "b/c.md", none)
	await(t, st, "b", "a file now")
	must(t, st.Flush(t.Context()))
	clean(t, st)
}

// TestEditedByTwo: of two handles that edit one note, each edit is applied to the newest content, and
// edits with a hash are refused if the content differs: no acknowledged edit is lost.
func TestEditedByTwo(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir)
	const n = 20
	var lines []string
	for i := range 2 * n {
		lines = append(lines, fmt.Sprintf("line %03d", i))
	}
	write(t, st, "a.md", strings.Join(lines, "\n"))
	var wg sync.WaitGroup
	for h := range 2 {
		s, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
		must(t, err)
		defer s.Close()
		wg.Go(func() {
			for i := range n {
				from := fmt.Sprintf("line %03d", h*n+i)
				for {
					has, err := s.Notes().Read(t.Context(), "a.md")
					if err == nil {
						_, err = s.Notes().Edit(t.Context(), "a.md", from, "edited "+from[5:], varve.IfHash(has.ContentHash))
					}
					if err == nil {
						break
					}
					if !errors.Is(err, varve.ErrConflict) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	if c := strings.Count(text(t, st, "a.md"), "edited "); c != 2*n {
		t.Errorf("%d of %d edits are there", c, 2*n)
	}
	if got := versions(t, st, "a.md"); len(got) != 2*n+1 || !bytes.HasPrefix([]byte(got[0]), []byte("line 000")) {
		t.Errorf("%d versions", len(got))
	}
}
