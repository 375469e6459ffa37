package notes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, writing) }

func opened(t testing.TB, dir string) *varve.Store {
	t.Helper()
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
	must(t, err)
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, st *varve.Store, path, text string) varve.NoteInfo {
	t.Helper()
	i, err := st.Notes().Write(t.Context(), path, []byte(text))
	must(t, err)
	return i
}

const none = "(none)"

func text(t testing.TB, st *varve.Store, path string) string {
	t.Helper()
	n, err := st.Notes().Read(t.Context(), path)
	if errors.Is(err, varve.ErrNotFound) {
		return none
	}
	must(t, err)
	return string(n.Content)
}

// expect compares all notes.
func expect(t testing.TB, st *varve.Store, want map[string]string) {
	t.Helper()
	n := 0
	for path, w := range want {
		if has := text(t, st, path); has != w {
			t.Errorf("note %s is %.60q, want %.60q", path, has, w)
		}
		if w != none {
			n++
		}
	}
	found := 0
	for e, err := range st.Notes().List(t.Context(), "", 0) {
		must(t, err)
		if found++; want[e.Path] == "" && e.Size > 0 {
			t.Errorf("note %s is listed", e.Path)
		}
	}
	if found != n {
		t.Errorf("%d notes are listed, want %d", found, n)
	}
}

func clean(t testing.TB, st *varve.Store) {
	t.Helper()
	storetest.AllWell(t, st.Admin().Verify(t.Context(), varve.VerifyOptions{}))
}

func at(dir, path string) string {
	return filepath.Join(dir, "notes", filepath.FromSlash(note.System().Path(path)))
}

// TestNone: a store without notes has no folder for them, no section of the index and no feature.
func TestNone(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir)
	_, err := st.Put(t.Context(), varve.Memory{ID: "a", Content: "x"})
	must(t, err)
	must(t, st.Flush(t.Context()))
	index := func() string {
		b, err := os.ReadFile(filepath.Join(dir, "memory_index.json"))
		must(t, err)
		return string(b)
	}
	_, err = os.Stat(filepath.Join(dir, "notes"))
	if !errors.Is(err, fs.ErrNotExist) || strings.Contains(index(), "note") {
		t.Errorf("%v, %s", err, index())
	}
	if text(t, st, "a") != none {
		t.Error("a note is there")
	}
	expect(t, st, nil)
	clean(t, st)
	write(t, st, "a", "first")
	must(t, st.Admin().RebuildIndex(t.Context()))
	if !strings.Contains(index(), `"note_count":1`) || !strings.Contains(index(), `"notes": {`) {
		t.Error(index())
	}
	must(t, st.Notes().Delete(t.Context(), "a"))
	must(t, st.Flush(t.Context()))
	clean(t, st)
	must(t, st.Close())
	st = opened(t, dir)
	expect(t, st, nil)
	clean(t, st)
}

// TestWrite: writes with and without conditions, by two handles, before a flush and after it.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	st, other := opened(t, dir), opened(t, dir)
	ns := st.Notes()
	all := map[string]string{"MEMORY.md": "# Index\n", "a/b c/d.md": "deep", ".hidden/x": "escaped", "empty": "",
		strings.Repeat("long", 100): "long name", `odd\%2E?*`: "odd", "bin": "\x00\xff\xfe", "crlf": "\ufeffa\r\nb"}
	for range 2 {
		for path, s := range all {
			write(t, st, path, s)
		}
		expect(t, other, all)
		must(t, st.Flush(t.Context()))
		clean(t, st)
	}
	for path, s := range all {
		b, err := os.ReadFile(at(dir, path))
		if err != nil || string(b) != s {
			t.Errorf("the file of %s: %q, %v", path, b, err)
		}
	}
	i := write(t, st, "c", "one")
	if j := write(t, st, "c", "one"); j.Version != i.Version {
		t.Errorf("equal content made version %d of %d", j.Version, i.Version)
	}
	if i.ID != note.ID("c") || i.ContentHash == "" || i.Size != 3 || i.CreatedAt.IsZero() {
		t.Errorf("%+v", i)
	}
	for name, c := range map[string]varve.Cond{
		"version": varve.IfVersion(i.Version + 8), "absent": varve.IfAbsent(),
		"hash": varve.IfHash(strings.Repeat("0", 64)), "since": varve.IfUnmodifiedSince(i.UpdatedAt.Add(-time.Hour)),
	} {
		_, err := ns.Write(t.Context(), "c", []byte("two"), c)
		var conflict *varve.ConflictError
		if !errors.As(err, &conflict) || conflict.ID != "c" || text(t, st, "c") != "one" {
			t.Errorf("%s: %v", name, err)
		}
		if err := ns.Delete(t.Context(), "c", c); !errors.Is(err, varve.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := ns.Write(t.Context(), "new", nil, varve.IfHash(i.ContentHash))
	if !errors.Is(err, varve.ErrConflict) {
		t.Error(err)
	}
	i, err = ns.Write(t.Context(), "c", []byte("two"), varve.IfHash(strings.ToUpper(i.ContentHash)),
		varve.IfVersion(i.Version))
	must(t, err)
	must(t, ns.Delete(t.Context(), "c", varve.IfHash(i.ContentHash)))
	if err := ns.Delete(t.Context(), "c"); !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
	for _, path := range []string{"", "/a", "a/", "a//b", "a/../b", "e\u0301", "a\nb", strings.Repeat("a/", 20) + "b"} {
		_, err := ns.Write(t.Context(), path, nil)
		if !errors.Is(err, varve.ErrInvalid) && !errors.Is(err, varve.ErrTooLarge) {
			t.Errorf("%q: %v", path, err)
		}
	}
	for path, with := range map[string]string{"a": "a/b c/d.md", "empty/x": "empty", "a/b c/d.md/x/y": "d.md",
		"a/b c": "d.md"} {
		_, err := ns.Write(t.Context(), path, nil)
		if !errors.Is(err, varve.ErrInvalid) || !strings.Contains(err.Error(), with) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := ns.Write(t.Context(), "large", make([]byte, note.MostBytes+1)); !errors.Is(err, varve.ErrTooLarge) {
		t.Error(err)
	}
	large := strings.Repeat("0123456789abcde\n", note.MostBytes/16)
	write(t, st, "large", large)
	all["large"] = large
	write(t, st, "A/case", "another folder")
	all["A/case"] = "another folder"
	expect(t, st, all)
	must(t, st.Flush(t.Context()))
	clean(t, st)
}

// TestEdit: edits of a text, with the errors of those that do not fit.
func TestEdit(t *testing.T) {
	st := opened(t, t.TempDir())
	ns := st.Notes()
	edit := func(from, to string) error {
		_, err := ns.Edit(t.Context(), "a", from, to)
		return err
	}
	if err := edit("x", "y"); !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
	write(t, st, "a", "one\ntwo\ntwo\n")
	var match *varve.MatchError
	if err := edit("two", "2"); !errors.As(err, &match) || match.Count != 2 || !slices.Equal(match.Lines, []int{2, 3}) {
		t.Error(err)
	}
	if err := edit("three", "3"); !errors.As(err, &match) || match.Count != 0 {
		t.Error(err)
	}
	if err := edit("", "3"); !errors.Is(err, varve.ErrInvalid) {
		t.Error(err)
	}
	must(t, edit("one\n", "$&1\n"))
	must(t, edit("two\ntwo", "2\n"))
	if s := text(t, st, "a"); s != "$&1\n2\n\n" {
		t.Errorf("%q", s)
	}
	write(t, st, "over", "aaa")
	if _, err := ns.Edit(t.Context(), "over", "aa", "b"); !errors.As(err, &match) || match.Count != 2 {
		t.Error("occurrences that overlap: ", err)
	}
	for _, c := range []struct {
		has  string
		line int
		text string
		want string // "!" for an error
	}{
		{"", 0, "x", "x"}, {"", 1, "x", "!"}, {"a", 1, "x", "a\nx"}, {"a\n", 1, "x", "a\nx"}, {"a\n", 0, "x", "x\na\n"},
		{"a\nb\n", 1, "x\n", "a\nx\nb\n"}, {"a\nb", 2, "x", "a\nb\nx"}, {"a\r\nb\r\n", 1, "x", "a\r\nx\r\nb\r\n"},
		{"a\n", 2, "x", "!"}, {"a\n", -1, "x", "!"}, {"a", 1, "", "a"},
	} {
		write(t, st, "i", c.has)
		if _, err := ns.Insert(t.Context(), "i", c.line, c.text); (err != nil) != (c.want == "!") {
			t.Errorf("%+v: %v", c, err)
		} else if has := text(t, st, "i"); c.want != "!" && has != c.want {
			t.Errorf("%+v: %q", c, has)
		}
	}
	_, err := ns.Append(t.Context(), "log", []byte("1\n"))
	must(t, err)
	_, err = ns.Append(t.Context(), "log", []byte("2\n"))
	must(t, err)
	if s := text(t, st, "log"); s != "1\n2\n" {
		t.Errorf("%q", s)
	}
}

// TestTogether: two handles that append to one note, or replace the same text, lose nothing.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	stores := []*varve.Store{opened(t, dir), opened(t, dir)}
	write(t, stores[0], "n", "start\n")
	var wg sync.WaitGroup
	won := make([]int, 2)
	for i, st := range stores {
		wg.Go(func() {
			for j := range 30 {
				if _, err := st.Notes().Append(t.Context(), "n", fmt.Appendf(nil, "%d-%d\n", i, j)); err != nil {
					t.Error(err)
				}
				_, err := st.Notes().Edit(t.Context(), "n", "start\n", "begun\n")
				if err == nil {
					won[i]++
				} else if !errors.As(err, new(*varve.MatchError)) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if won[0]+won[1] != 1 {
		t.Errorf("the one occurrence was replaced %v times", won)
	}
	if lines := strings.Split(text(t, stores[1], "n"), "\n"); len(lines) != 62 || lines[0] != "begun" {
		t.Errorf("%d lines", len(lines))
	}
}

// TestRename: a note keeps its id and its history, over several renames and although another note was at
// the new path before; a folder is renamed in one commit, or not at all.
func TestRename(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir)
	ns := st.Notes()
	write(t, st, "b", "another")
	must(t, ns.Delete(t.Context(), "b"))
	first := write(t, st, "a", "one")
	write(t, st, "a", "two")
	rename := func(from, to string) error {
		_, err := ns.Rename(t.Context(), from, to)
		return err
	}
	must(t, rename("a", "b"))
	write(t, st, "b", "three")
	write(t, st, "a", "a new one")
	must(t, st.Flush(t.Context()))
	must(t, rename("b", "x/c.md"))
	n, err := ns.Read(t.Context(), "x/c.md")
	if err != nil || n.ID != first.ID || string(n.Content) != "three" || !n.CreatedAt.Equal(first.CreatedAt) {
		t.Errorf("%+v, %v", n, err)
	}
	var versions []string
	for v, err := range ns.History(t.Context(), "x/c.md") {
		must(t, err)
		versions = append(versions, fmt.Sprint(v.ID, " ", string(v.Document), " ", v.Deleted))
		if got, err := ns.GetAt(t.Context(), "x/c.md", v.LSN); err != nil || string(got.Document) != string(v.Document) {
			t.Errorf("version %d: %+v, %v", v.LSN, got, err)
		}
	}
	want := []string{"a one false", "a two false", "b two false", "b three false", "x/c.md three false"}
	if !slices.Equal(versions, want) {
		t.Errorf("%q, want %q", versions, want)
	}
	if a, err := ns.Read(t.Context(), "a"); err != nil || a.ID != first.ID {
		t.Errorf("%+v, %v", a, err) // created at the same path, while the other was at b
	}
	for i := range 10 {
		write(t, st, fmt.Sprintf("f/%d/n.md", i), fmt.Sprint(i))
	}
	for _, c := range [][2]string{{"f", "f/g"}, {"f", "x"}, {"f", "a"}, {"a", "x/c.md"}, {"none", "y"}, {"a", "a"},
		{"a", "a/b"}, {"f", "x/c.md/y"}, {"f", "../y"}} {
		if err := rename(c[0], c[1]); err == nil {
			t.Errorf("%s was renamed to %s", c[0], c[1])
		}
	}
	moved, err := ns.Rename(t.Context(), "f", "g/h")
	if err != nil || moved != 10 || text(t, st, "g/h/7/n.md") != "7" || text(t, st, "f/7/n.md") != none {
		t.Error(moved, err)
	}
	must(t, rename("g/h/7/n.md", "f/7/n.md")) // back: the path is that of its id again
	must(t, st.Flush(t.Context()))
	clean(t, st)
	must(t, st.Admin().RebuildIndex(t.Context()))
	if n, err := ns.Read(t.Context(), "g/h/3/n.md"); err != nil || n.ID != note.ID("f/3/n.md") {
		t.Errorf("%+v, %v", n, err)
	}
	removed, err := ns.DeleteFolder(t.Context(), "g")
	if err != nil || removed != 9 {
		t.Error(removed, err)
	}
	must(t, st.Flush(t.Context()))
	clean(t, st)
}

// TestRenameLarge: a folder that is too large for one commit is not renamed, and the error has its size.
func TestRenameLarge(t *testing.T) {
	dir := t.TempDir()
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true, SegmentSize: 256 << 10})
	must(t, err)
	defer st.Close()
	for i := range 4 {
		write(t, st, fmt.Sprint("f/", i), strings.Repeat("x", 40<<10))
	}
	if _, err = st.Notes().Rename(t.Context(), "f", "g"); !errors.Is(err, varve.ErrBatchTooLarge) ||
		!strings.Contains(err.Error(), "163840 bytes") || text(t, st, "g/0") != none {
		t.Error(err)
	}
}

// TestProperties: properties stay over writes, renames and a rebuild; an expired note does not exist.
func TestProperties(t *testing.T) {
	dir := t.TempDir()
	c := fixture.ClockAt(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	now := c.Now
	st, err := varve.Open(t.Context(), dir, c.On(&varve.Options{NoBackground: true, Clock: now}))
	must(t, err)
	defer st.Close()
	ns := st.Notes()
	write(t, st, "d/a", "text")
	p := varve.NoteProperties{SessionID: "s", Tags: []string{"b", "a"}, Metadata: map[string]any{"k": "v"},
		ExpiresAt: now().Add(time.Hour)}
	_, err = ns.SetProperties(t.Context(), "d/a", p)
	must(t, err)
	write(t, st, "d/a", "text 2")
	_, err = ns.Rename(t.Context(), "d", "e")
	must(t, err)
	must(t, st.Admin().RebuildIndex(t.Context()))
	n, err := ns.Read(t.Context(), "e/a")
	if has := n.Properties; err != nil || has.SessionID != "s" || !slices.Equal(has.Tags, []string{"a", "b"}) ||
		has.Metadata["k"] != "v" || !has.ExpiresAt.Equal(p.ExpiresAt) {
		t.Errorf("%+v, %v", n, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes", ".varve", "e", ".a.json")); err != nil {
		t.Error(err)
	}
	c.Add(2 * time.Hour)
	expect(t, st, map[string]string{"e/a": none})
	write(t, st, "e/a", "again")
	n, err = ns.Read(t.Context(), "e/a")
	if err != nil || n.Properties.SessionID != "" || n.ID != note.ID("e/a") {
		t.Errorf("%+v, %v", n, err)
	}
	must(t, st.Flush(t.Context()))
	if names, err := os.ReadDir(filepath.Join(dir, "notes", ".varve")); err == nil {
		t.Errorf("left: %v", names)
	}
	clean(t, st)
}

// TestListing: listings by depth, patterns, lines, and the notes as a file system.
func TestListing(t *testing.T) {
	st := opened(t, t.TempDir())
	files := fstest.MapFS{}
	for path, s := range map[string]string{"a.md": "x\nneedle\r\n", "a/b.md": "needle", "a/c/d.md": "y", "a/c/e.txt": "z",
		"a0": "\x00needle", "z/z/z/z.md": ""} {
		write(t, st, path, s)
		files[path] = &fstest.MapFile{Data: []byte(s)}
	}
	_, err := st.Notes().SetProperties(t.Context(), "a/b.md", varve.NoteProperties{Tags: []string{"t"}})
	must(t, err)
	list := func(folder string, depth int) (paths []string) {
		for e, err := range st.Notes().List(t.Context(), folder, depth) {
			must(t, err)
			if e.Folder {
				e.Path += fmt.Sprintf("/ %d", e.Notes)
			}
			paths = append(paths, e.Path)
		}
		return paths
	}
	for _, c := range []struct {
		folder string
		depth  int
		want   string
	}{
		{"", 0, "a.md|a/b.md|a/c/d.md|a/c/e.txt|a0|z/z/z/z.md"}, {"", 1, "a.md|a/ 3|a0|z/ 1"},
		{"", 2, "a.md|a/b.md|a/c/ 2|a0|z/z/ 1"}, {"a", 1, "a/b.md|a/c/ 2"}, {"a", 0, "a/b.md|a/c/d.md|a/c/e.txt"},
		{"none", 0, ""}, {"a.md", 0, ""},
	} {
		if has := strings.Join(list(c.folder, c.depth), "|"); has != c.want {
			t.Errorf("%q, %d: %s, want %s", c.folder, c.depth, has, c.want)
		}
	}
	for pattern, want := range map[string]string{"*.md": "a.md", "**/*.md": "a.md|a/b.md|a/c/d.md|z/z/z/z.md",
		"a/**": "a/b.md|a/c/d.md|a/c/e.txt", "a/*/?.txt": "a/c/e.txt", "z/**/z.md": "z/z/z/z.md",
		"**": strings.Join(list("", 0), "|"),
		"b*": "", "a/c/[d]*": "a/c/d.md"} {
		var has []string
		for e, err := range st.Notes().Glob(t.Context(), pattern) {
			must(t, err)
			has = append(has, e.Path)
		}
		if strings.Join(has, "|") != want {
			t.Errorf("%s: %q, want %s", pattern, has, want)
		}
	}
	for e, err := range st.Notes().Glob(t.Context(), "a/[") {
		if err == nil {
			t.Error(e)
		}
	}
	for path, want := range map[string]string{"": "a.md:2 needle|a/b.md:1 needle", "a": "a/b.md:1 needle",
		"a.md": "a.md:2 needle"} {
		var has []string
		for m, err := range st.Notes().Grep(t.Context(), path, regexp.MustCompile("^need")) {
			must(t, err)
			has = append(has, fmt.Sprintf("%s:%d %s", m.Path, m.Line, m.Text))
		}
		if strings.Join(has, "|") != want {
			t.Errorf("%q: %q, want %s", path, has, want)
		}
	}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	must(t, fstest.TestFS(st.Notes().FS(t.Context()), names...))
}
