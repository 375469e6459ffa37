package notes

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/adopt"
	"github.com/varve-db/varve/internal/fswatch"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

// watched opens a store whose files this process watches.
func watched(t *testing.T, dir string) *varve.Store {
	t.Helper()
	watcher := fswatch.New(fswatch.Options{
		Quiet: 30 * time.Millisecond, Gone: 60 * time.Millisecond, Sweep: 200 * time.Millisecond})
	st, err := varve.Open(t.Context(), dir, storetest.In(&varve.Options{}, storetest.Environment{Watcher: watcher}))
	must(t, err)
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func await(t *testing.T, st *varve.Store, path, want string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		found := none // by the index, so that the read does not adopt it
		for e, err := range st.Notes().List(context.Background(), "", 0) {
			must(t, err)
			if e.Path == path {
				found = text(t, st, path)
			}
		}
		if found == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("note %s is %q, want %q", path, found, want)
		}
	}
}

func save(t testing.TB, name, text string) os.FileInfo {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o700))
	must(t, os.WriteFile(name, []byte(text), 0o600))
	info, err := os.Stat(name)
	must(t, err)
	return info
}

func versions(t testing.TB, st *varve.Store, path string) (list []string) {
	t.Helper()
	for v, err := range st.Notes().History(t.Context(), path) {
		must(t, err)
		list = append(list, string(v.Document))
	}
	return list
}

// untouched reports an error if a file has changed, in its inode, its time or its content.
func untouched(t testing.TB, name string, was os.FileInfo, text string) {
	t.Helper()
	is, err := os.Stat(name)
	must(t, err)
	b, err := os.ReadFile(name)
	must(t, err)
	if !os.SameFile(is, was) || !is.ModTime().Equal(was.ModTime()) || string(b) != text {
		t.Errorf("%s was written: %s and %s, %q", name, was.ModTime(), is.ModTime(), b)
	}
}

// TestEditedByHand: an edit is adopted by a read, and its file keeps its inode and its time over
// flushes, even if the file was edited before a newer version was written to it. The replaced version is
// in the history.
func TestEditedByHand(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir)
	write(t, st, "a.md", "one")
	must(t, st.Flush(t.Context()))
	name := at(dir, "a.md")
	was := save(t, name, "edited")
	if s := text(t, st, "a.md"); s != "edited" {
		t.Errorf("%q", s)
	}
	must(t, st.Flush(t.Context()))
	untouched(t, name, was, "edited")
	must(t, st.Admin().RebuildIndex(t.Context()))
	clean(t, st)
	untouched(t, name, was, "edited")

	// The store has a newer version that is not in the file, which has the bytes of an older one: it
	// lags.
	write(t, st, "a.md", "three")
	must(t, st.Flush(t.Context()))
	if s := text(t, st, "a.md"); s != "three" {
		t.Errorf("%q", s)
	}
	clean(t, st)

	// The same, and a user edits the file meanwhile: the edit becomes the newest version.
	write(t, st, "a.md", "four")
	was = save(t, name, "by hand, made of three")
	must(t, st.Flush(t.Context()))
	untouched(t, name, was, "by hand, made of three")
	if s := text(t, st, "a.md"); s != "by hand, made of three" {
		t.Errorf("%q", s)
	}
	must(t, st.Flush(t.Context()))
	untouched(t, name, was, "by hand, made of three")

	// Older bytes that return are an edit; bytes that equal the newest version make no version.
	save(t, name, "one")
	if s := text(t, st, "a.md"); s != "one" {
		t.Errorf("%q", s)
	}
	save(t, name, "one")
	must(t, os.Chtimes(name, time.Now(), time.Now().Add(-time.Hour)))
	if s := text(t, st, "a.md"); s != "one" {
		t.Errorf("%q", s)
	}
	want := []string{"one", "edited", "three", "four", "by hand, made of three", "one"}
	if has := versions(t, st, "a.md"); !slices.Equal(has, want) {
		t.Errorf("%q, want %q", has, want)
	}
	must(t, st.Flush(t.Context()))
	// Older bytes that return before the adopted version was in a round: it was in the file, so they do
	// not lag.
	save(t, name, "saved")
	inner := storetest.Inner(st)
	v, err := inner.Engine.Find(t.Context(), inner.Notes.Kind(), "a.md", true)
	if err != nil || string(v.Doc) != "saved" {
		t.Errorf("%q, %v", v.Doc, err)
	}
	was = save(t, name, "one")
	_, err = adopt.NewFiles(inner.Adopter).Look(t.Context(), "notes", []string{"a.md"})
	must(t, err)
	must(t, st.Flush(t.Context()))
	untouched(t, name, was, "one")
	if s := text(t, st, "a.md"); s != "one" {
		t.Errorf("%q", s)
	}
	// A deletion that is not adopted yet, and an edit meanwhile: the note exists again.
	must(t, st.Flush(t.Context()))
	must(t, st.Notes().Delete(t.Context(), "a.md"))
	save(t, name, "saved after the deletion")
	must(t, st.Flush(t.Context()))
	if b, err := os.ReadFile(name); err != nil || string(b) != "saved after the deletion" {
		t.Errorf("%q, %v", b, err)
	}
	if names, err := os.ReadDir(filepath.Join(dir, "quarantine")); err != nil || len(names) > 0 {
		t.Errorf("set aside: %v, %v", names, err)
	}
	must(t, st.Flush(t.Context()))
}

// TestEditedBeforeWrite: a write first adopts what is on the disk, and its conditions are compared with
// that.
func TestEditedBeforeWrite(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir)
	i := write(t, st, "a.md", "one")
	must(t, st.Flush(t.Context()))
	save(t, at(dir, "a.md"), "by hand")
	for _, c := range []varve.Cond{varve.IfVersion(i.Version), varve.IfHash(i.ContentHash)} {
		if _, err := st.Notes().Write(t.Context(), "a.md", []byte("two"), c); !errors.Is(err, varve.ErrConflict) {
			t.Error(err)
		}
	}
	write(t, st, "a.md", "two")
	save(t, at(dir, "b.md"), "new by hand")
	write(t, st, "b.md", "by the API") // where no process watches, a new file is found by its name
	must(t, st.Flush(t.Context()))
	want := []string{"one", "by hand", "two"}
	if has := versions(t, st, "a.md"); !slices.Equal(has, want) {
		t.Errorf("%q, want %q", has, want)
	}
}

// TestEmptied: reads and the process that watches wait for a file that was emptied a moment ago; one
// that stays empty is adopted.
func TestEmptied(t *testing.T) {
	dir := t.TempDir()
	var clock, slept atomic.Int64
	clock.Store(time.Now().UnixNano())
	now := func() time.Time { return time.Unix(0, clock.Load()) }
	system := vfs.System{Sleep: func(ctx context.Context, d time.Duration) error {
		slept.Add(int64(d))
		clock.Add(int64(d))
		return ctx.Err()
	}}
	st, err := varve.Open(t.Context(), dir, storetest.In(&varve.Options{NoBackground: true, Clock: now},
		storetest.Environment{System: system}))
	must(t, err)
	defer st.Close()
	write(t, st, "a.md", "one")
	write(t, st, "b.md", "two")
	must(t, st.Flush(t.Context()))
	empty := func(path string) {
		t.Helper()
		clock.Add(int64(time.Second)) // it is not the time of the version
		save(t, at(dir, path), "")
		must(t, os.Chtimes(at(dir, path), now(), now()))
	}
	empty("a.md")
	expect(t, st, map[string]string{"a.md": "one", "b.md": "two"})
	clock.Add(int64(3 * time.Second))
	expect(t, st, map[string]string{"a.md": "", "b.md": "two"})
	empty("b.md")
	must(t, st.Flush(t.Context()))
	slept.Store(0)
	_, err = adopt.NewFiles(storetest.Inner(st).Adopter).Look(t.Context(), "notes", []string{"a.md", "b.md"})
	if d := time.Duration(slept.Load()); err != nil || d < time.Second || d > 2*time.Second {
		t.Errorf("waited for %s, %v", d, err)
	}
	expect(t, st, map[string]string{"a.md": "", "b.md": ""})
	if has := versions(t, st, "b.md"); !slices.Equal(has, []string{"two", ""}) {
		t.Errorf("%q", has)
	}
}

// TestWatched: if a process watches, saves in place and by renaming, new files and folders, and
// deletions are adopted, even of most notes at once; the loss of the whole folder is an accident.
func TestWatched(t *testing.T) {
	dir := t.TempDir()
	st := watched(t, dir)
	for i := range 8 {
		write(t, st, fmt.Sprintf("x/%d.md", i), fmt.Sprint("text ", i))
	}
	must(t, st.Flush(t.Context()))
	was := save(t, at(dir, "x/1.md"), "in place")
	await(t, st, "x/1.md", "in place")
	save(t, at(dir, ".tmp"), "by renaming")
	must(t, os.Rename(filepath.Join(dir, "notes", "%2Etmp"), at(dir, "x/2.md")))
	await(t, st, "x/2.md", "by renaming")
	save(t, at(dir, "new/folder/in.md"), "found")
	await(t, st, "new/folder/in.md", "found")
	save(t, filepath.Join(dir, "notes", ".obsidian", "app.json"), "{}")
	must(t, os.RemoveAll(filepath.Join(dir, "notes", "x")))
	for i := range 8 {
		await(t, st, fmt.Sprintf("x/%d.md", i), none)
	}
	save(t, at(dir, "x/1.md"), "from the trash")
	await(t, st, "x/1.md", "from the trash")
	must(t, os.Rename(at(dir, "x/1.md"), at(dir, "x1")))
	await(t, st, "x1", "from the trash")
	await(t, st, "x/1.md", none)
	_ = was
	must(t, st.Flush(t.Context()))
	expect(t, st, map[string]string{"new/folder/in.md": "found", "x1": "from the trash"})
	must(t, os.RemoveAll(filepath.Join(dir, "notes")))
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(at(dir, "new/folder/in.md")); err == nil && string(b) == "found" {
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	expect(t, st, map[string]string{"new/folder/in.md": "found", "x1": "from the trash"})
}

// TestCheckout: a checkout by git between two branches is adopted, and every version is in the history.
func TestCheckout(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is missing")
	}
	dir := t.TempDir()
	st := watched(t, dir)
	n := 200
	if proofs.Long() {
		n = 2000
	}
	for i := range n {
		write(t, st, fmt.Sprintf("f%d/%d.md", i%7, i), fmt.Sprint("one ", i))
	}
	must(t, st.Flush(t.Context()))
	git := func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.org"}, args...)...)
		c.Dir = filepath.Join(dir, "notes")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "-b", "one")
	git("add", ".")
	git("commit", "-qm", "one")
	git("checkout", "-qb", "two")
	for i := range n {
		save(t, at(dir, fmt.Sprintf("f%d/%d.md", i%7, i)), fmt.Sprint("two ", i))
	}
	git("commit", "-qam", "two")
	all := func(branch string) {
		t.Helper()
		for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			found := 0
			for e, err := range st.Notes().List(t.Context(), "", 0) {
				must(t, err)
				text := fmt.Sprint(branch, " ", strings.TrimSuffix(filepath.Base(e.Path), ".md"))
				if e.ContentHash == fmt.Sprintf("%x", sha256.Sum256([]byte(text))) {
					found++
				}
			}
			d := time.Since(begin)
			if found == n {
				t.Logf("%d notes of branch %s are adopted after %s", n, branch, d)
				return
			}
			if d > 20*time.Second {
				t.Fatalf("%d of %d notes are those of branch %s", found, n, branch)
			}
		}
	}
	all("two")
	git("checkout", "-q", "one")
	all("one")
	want := []string{"one 11", "two 11", "one 11"}
	if has := versions(t, st, "f4/11.md"); !slices.Equal(has, want) {
		t.Errorf("%q, want %q", has, want)
	}
	git("diff", "--exit-code")
}

// TestFirstByHand: the first note of a store is a file that was created by hand, while a process watches
// and while none does.
func TestFirstByHand(t *testing.T) {
	dir := t.TempDir()
	st := watched(t, dir)
	_, err := st.Put(t.Context(), varve.Memory{ID: "a", Content: "x"})
	must(t, err)
	save(t, at(dir, "deep/a.md"), "by hand")
	await(t, st, "deep/a.md", "by hand")
	must(t, st.Close())

	dir = t.TempDir()
	must(t, opened(t, dir).Close())
	save(t, at(dir, "b.md"), "by hand")
	st, err = varve.Open(t.Context(), dir, nil)
	must(t, err)
	defer st.Close()
	await(t, st, "b.md", "by hand")
	clean(t, st)
}

// TestSavedOverDeletion: a file that is saved where a note was deleted a moment ago is adopted when the watcher looks
// at it, not by a later flush: the file may be saved again before that.
func TestSavedOverDeletion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
	must(t, err)
	defer st.Close()
	write(t, st, "a.md", "first\n")
	must(t, st.Flush(t.Context()))
	must(t, st.Notes().Delete(t.Context(), "a.md"))
	files := adopt.NewFiles(storetest.Inner(st).Adopter)
	for _, text := range []string{"second\n", "third\n"} {
		save(t, at(dir, "a.md"), text)
		_, err := files.Look(t.Context(), "notes", []string{"a.md"})
		must(t, err)
	}
	list := versions(t, st, "a.md")
	for _, want := range []string{"first\n", "second\n", "third\n"} {
		if !slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("%q is not in the history: %q", want, list)
		}
	}
}
