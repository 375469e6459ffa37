package adopted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// vanishing is a store with documents in a folder that vanishes.
type vanishing struct {
	t     *testing.T
	dir   string // of the store
	gone  string // the folder, below dir
	files int    // in it
	path  func(i int) string
	write func(st *varve.Store, i int) error
	read  func(st *varve.Store, i int) error
}

// noteIn is a vanishing store of notes in an adopted folder.
func noteIn(t *testing.T, gone string, files int) *vanishing {
	v := &vanishing{t: t, dir: t.TempDir(), gone: gone, files: files}
	id := func(i int) string { return fmt.Sprintf("vault/%d/%d.md", i%7, i) }
	v.path = func(i int) string { return "notes/" + id(i) }
	v.write = func(st *varve.Store, i int) error {
		_, err := st.Notes().Write(t.Context(), id(i), fmt.Appendf(nil, "text of %d", i))
		return err
	}
	v.read = func(st *varve.Store, i int) error {
		n, err := st.Notes().Read(t.Context(), id(i))
		if err == nil && string(n.Content) != fmt.Sprintf("text of %d", i) {
			err = fmt.Errorf("%s is %q", id(i), n.Content)
		}
		return err
	}
	return v
}

// memoriesIn is a vanishing store of memories.
func memoriesIn(t *testing.T, files int) *vanishing {
	v := &vanishing{t: t, dir: t.TempDir(), gone: "memories", files: files}
	v.path = func(i int) string { return fmt.Sprintf("memories/m%d.json", i) }
	v.write = func(st *varve.Store, i int) error {
		_, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprintf("m%d", i), Content: fmt.Sprintf("text of %d", i)})
		return err
	}
	v.read = func(st *varve.Store, i int) error {
		_, err := st.Get(t.Context(), fmt.Sprintf("m%d", i))
		return err
	}
	return v
}

func (v *vanishing) open() *varve.Store {
	v.t.Helper()
	st, err := varve.Open(v.t.Context(), v.dir, &varve.Options{NoBackground: true})
	must(v.t, err)
	return st
}

// fill writes the documents, and adopts the folder vault.
func (v *vanishing) fill() {
	v.t.Helper()
	st := v.open()
	for i := range v.files {
		must(v.t, v.write(st, i))
	}
	must(v.t, st.Flush(v.t.Context()))
	must(v.t, st.Close())
	line, err := json.Marshal(note.AdoptedFolder{Link: filepath.Join(v.dir, "link"), Folder: "vault", State: note.Adopted,
		Time: time.Now()})
	must(v.t, err)
	must(v.t, os.WriteFile(filepath.Join(v.dir, "wal", "adopted"), append(line, '\n'), 0o600))
}

// there returns how many of the files exist.
func (v *vanishing) there() (n int) {
	for i := range v.files {
		if _, err := os.Lstat(filepath.Join(v.dir, filepath.FromSlash(v.path(i)))); err == nil {
			n++
		}
	}
	return n
}

// aged makes the folders of documents ones in which nothing has happened for a while.
func (v *vanishing) aged() {
	v.t.Helper()
	past := time.Now().Add(-time.Minute)
	top, _, _ := strings.Cut(v.gone, "/")
	must(v.t, filepath.WalkDir(filepath.Join(v.dir, top), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !d.IsDir() {
			return nil
		}
		must(v.t, err)
		return os.Chtimes(path, past, past)
	}))
}

func (v *vanishing) restoring() bool {
	_, err := os.Stat(filepath.Join(v.dir, filepath.FromSlash(docfile.RestoringFile)))
	return err == nil
}

// all checks that no document is deleted, and that each has its file again.
func (v *vanishing) all(st *varve.Store) {
	v.t.Helper()
	bad := 0
	for i := range v.files {
		if err := v.read(st, i); err != nil {
			if bad++; bad < 4 {
				v.t.Errorf("%s: %v", v.path(i), err)
			}
		}
	}
	if bad > 0 {
		v.t.Fatalf("%d of %d documents are gone", bad, v.files)
	}
	if n := v.there(); n != v.files {
		v.t.Errorf("%d of %d files are there", n, v.files)
	}
	if v.restoring() {
		v.t.Error("the restoring does not end")
	}
	must(v.t, st.Flush(v.t.Context()))
	storetest.AllWell(v.t, st.Admin().Verify(v.t.Context(), varve.VerifyOptions{}))
}

// TestKilledWhileRestoring: a folder that has to exist vanishes, and a process that restores its files is killed with
// SIGKILL when it has restored most of them, so that the others look like deleted ones. The next process restores these
// too. After that, a file that is deleted is a deletion again.
func TestKilledWhileRestoring(t *testing.T) {
	const files = 2500
	for name, v := range map[string]*vanishing{
		"root": noteIn(t, "notes/vault", files), "notes": noteIn(t, "notes", files), "memories": memoriesIn(t, files),
	} {
		t.Run(name, func(t *testing.T) {
			v.t = t
			v.fill()
			for try := 0; ; try++ {
				if try == 20 {
					t.Fatal("no process was killed in time")
				}
				must(t, os.RemoveAll(filepath.Join(v.dir, filepath.FromSlash(v.gone))))
				cmd, _ := storetest.Start(t, "adopt", v.dir)
				n := 0
				for end := time.Now().Add(30 * time.Second); 5*n < 3*v.files && time.Now().Before(end); {
					n = v.there()
				}
				must(t, cmd.Process.Kill())
				_ = cmd.Wait()
				if n = v.there(); 2*n > v.files && n < v.files {
					t.Logf("killed with %d of %d files", n, v.files)
					break
				}
			}
			v.aged()
			st := v.open()
			v.all(st)
			must(t, st.Close())
			st = v.open()
			defer st.Close()
			must(t, os.Remove(filepath.Join(v.dir, filepath.FromSlash(v.path(0)))))
			v.aged()
			if err := v.read(st, 0); !errors.Is(err, varve.ErrNotFound) {
				t.Errorf("a file that was deleted afterwards: %v", err)
			}
		})
	}
}

// TestWrittenBeforeTheLossIsSeen: a document that is written into a folder that has vanished makes the folder again,
// and what is missing in it is restored: when it is read, or when the process is closed.
func TestWrittenBeforeTheLossIsSeen(t *testing.T) {
	for _, again := range []bool{false, true} {
		v := noteIn(t, "notes/vault", 30)
		v.fill()
		st := v.open()
		must(t, os.RemoveAll(filepath.Join(v.dir, "notes", "vault")))
		v.files++
		must(t, v.write(st, v.files-1))
		must(t, st.Flush(t.Context()))
		if n := v.there(); n == 0 || n == v.files {
			t.Fatalf("%d files", n)
		}
		h := st.Health(t.Context())
		if want := "notes/vault was missing, and 30 files in it are not restored yet"; h.OK ||
			!strings.Contains(errors.Join(h.Problems...).Error(), want) {
			t.Errorf("%v", h.Problems)
		}
		if again {
			must(t, st.Close())
			st = v.open()
			if h := st.Health(t.Context()); !h.OK || v.there() != v.files {
				t.Errorf("after a close: %d of %d files, %v", v.there(), v.files, h.Problems)
			}
		}
		v.aged()
		v.all(st)
		must(t, st.Close())
	}
}

// TestVanishedBesideBackground: a process with background goroutines, and without a watcher, restores the files by
// itself after it has written into a folder that had vanished, and so does one that is opened after that.
func TestVanishedBesideBackground(t *testing.T) {
	for _, again := range []bool{false, true} {
		v := noteIn(t, "notes/vault", 30)
		v.fill()
		st := v.open()
		must(t, os.RemoveAll(filepath.Join(v.dir, "notes", "vault")))
		v.files++
		if again {
			must(t, v.write(st, v.files-1))
			must(t, st.Flush(t.Context()))
		}
		must(t, st.Close())
		st, err := varve.Open(t.Context(), v.dir, nil)
		must(t, err)
		if !again {
			must(t, v.write(st, v.files-1))
		}
		for end := time.Now().Add(30 * time.Second); v.there() < v.files || v.restoring(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d of %d files are there", v.there(), v.files)
			}
		}
		v.all(st)
		must(t, st.Close())
	}
}

// TestVanishedBeforeOpening: the folder of memories was missing when a store was opened. What was in it is restored,
// however many memories are put before the loss is noticed.
func TestVanishedBeforeOpening(t *testing.T) {
	for _, c := range []struct{ lost, put int }{{1, 0}, {1, 1}, {2, 1}, {30, 31}} {
		v := memoriesIn(t, c.lost)
		v.fill()
		must(t, os.RemoveAll(filepath.Join(v.dir, "memories")))
		st := v.open()
		for range c.put {
			v.files++
			must(t, v.write(st, v.files-1))
		}
		must(t, st.Flush(t.Context()))
		must(t, st.Close())
		v.aged()
		st = v.open()
		v.all(st)
		must(t, st.Close())
	}
}

// TestRestoringEnds: a process was killed when it had restored all files of a folder, and before it recorded that. The
// next one records it: when it is closed, if it has no background goroutine, or else every few seconds.
func TestRestoringEnds(t *testing.T) {
	v := noteIn(t, "notes/vault", 30)
	v.fill()
	killed := func() {
		must(t, os.WriteFile(filepath.Join(v.dir, filepath.FromSlash(docfile.RestoringFile)),
			[]byte(`{"folder":"notes/vault"}`+"\n"), 0o600))
	}
	killed()
	must(t, v.open().Close())
	if v.restoring() {
		t.Error("closing a process without background does not end it")
	}
	st, err := varve.Open(t.Context(), v.dir, nil)
	must(t, err)
	killed()
	for end := time.Now().Add(30 * time.Second); v.restoring(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a process with background does not end it")
		}
	}
	v.all(st)
	must(t, st.Close())
}

// TestFlushedBeforeTheLossIsSeen: a folder of documents vanishes, and the first to notice it is the flush of a write.
// It creates the folder again, and nothing counts as deleted.
func TestFlushedBeforeTheLossIsSeen(t *testing.T) {
	all := noteIn(t, "notes", 30)
	all.path = func(i int) string { return fmt.Sprintf("notes/vault/%d/%d.md", i%7, i) }
	for _, v := range []*vanishing{all, memoriesIn(t, 30)} {
		v.fill()
		st := v.open()
		must(t, os.RemoveAll(filepath.Join(v.dir, filepath.FromSlash(v.gone))))
		v.files++
		must(t, v.write(st, v.files-1))
		must(t, st.Flush(t.Context()))
		if !v.restoring() {
			t.Error("it is not recorded that the files of", v.gone, "are to be restored")
		}
		must(t, st.Close())
		v.aged()
		st = v.open()
		v.all(st)
		must(t, st.Close())
		if v.restoring() {
			t.Error("restoring", v.gone, "does not end")
		}
	}
}

// TestRestoringOfAFewFiles: some files of a folder that has vanished cannot be put back. The others are, and for these
// a deletion by hand counts again. The few come back when they can.
func TestRestoringOfAFewFiles(t *testing.T) {
	v := noteIn(t, "notes/vault", 30)
	v.fill()
	must(t, os.RemoveAll(filepath.Join(v.dir, "notes", "vault")))
	v.aged()
	o := &varve.Options{NoBackground: true}
	storetest.Of(o).System.FS = fault.New(vfs.OS(), func(op *fault.Op) error {
		if op.Kind == wrap.Mkdir && strings.HasSuffix(filepath.ToSlash(op.Path), "vault/3") {
			return syscall.EACCES
		}
		return nil
	})
	st, err := varve.Open(t.Context(), v.dir, o)
	must(t, err)
	must(t, v.read(st, 1))
	must(t, st.Close())
	if n := v.there(); n != v.files-4 {
		t.Errorf("%d of %d files are there", n, v.files-4)
	}
	deleted := filepath.Join(v.dir, filepath.FromSlash(v.path(1)))
	must(t, os.Remove(deleted))
	v.aged()
	st, err = varve.Open(t.Context(), v.dir, o)
	must(t, err)
	if err := v.read(st, 1); !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("a file that was deleted afterwards: %v", err)
	}
	must(t, v.read(st, 3))
	want := "notes/vault/3/3.md was missing, and 1 file in it is not restored yet"
	if h := st.Health(t.Context()); h.OK || !strings.Contains(errors.Join(h.Problems...).Error(), want) {
		t.Errorf("%v", h.Problems)
	}
	must(t, st.Close())
	if _, err := os.Stat(deleted); err == nil {
		t.Error("a file that was deleted afterwards is restored")
	}
	st = v.open()
	must(t, v.read(st, 3))
	must(t, v.write(st, 1))
	must(t, st.Flush(t.Context()))
	v.all(st)
	must(t, st.Close())
}

// TestRestoringWaits: none of the files of a folder that has vanished can be put back. A process with a background
// tries that at growing intervals, not every few seconds, and does not try each of the files.
func TestRestoringWaits(t *testing.T) {
	const files = 1200
	for name, c := range map[string]struct {
		v    *vanishing
		fail func(op *fault.Op) bool
	}{
		"notes": {noteIn(t, "notes/vault", files), func(op *fault.Op) bool {
			return op.Kind == wrap.Mkdir && strings.HasSuffix(filepath.ToSlash(op.Path), "notes/vault")
		}},
		"memories": {memoriesIn(t, files), func(op *fault.Op) bool {
			is := op.Kind == wrap.RenameNew || op.Kind == wrap.Exchange
			return is && strings.Contains(filepath.ToSlash(op.To), "memories/m")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.v.t = t
			c.v.fill()
			must(t, os.RemoveAll(filepath.Join(c.v.dir, filepath.FromSlash(c.v.gone))))
			c.v.aged()
			must(t, os.WriteFile(filepath.Join(c.v.dir, filepath.FromSlash(docfile.RestoringFile)),
				fmt.Appendf(nil, `{"folder":%q}`+"\n", c.v.gone), 0o600))
			var mu sync.Mutex
			tries, attempts, last := 0, 0, time.Time{}
			o := &varve.Options{}
			storetest.Of(o).System.FS = fault.New(vfs.OS(), func(op *fault.Op) error {
				if !c.fail(op) {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				if tries++; time.Since(last) > 2*time.Second {
					attempts++
				}
				last = time.Now()
				return syscall.EACCES
			})
			st, err := varve.Open(t.Context(), c.v.dir, o)
			must(t, err)
			time.Sleep(9 * time.Second) // the first interval is ten seconds
			mu.Lock()
			if attempts != 1 || tries > files {
				t.Errorf("%d tries in %d attempts", tries, attempts)
			}
			mu.Unlock()
			must(t, st.Close())
		})
	}
}

// TestVanishedAndReplaced: an adopted folder vanishes and comes back with a folder where a note was, and with a note
// where a folder was, as git does that checks out another branch. What the user put there stays, and what it replaces
// is in the history.
func TestVanishedAndReplaced(t *testing.T) {
	v := noteIn(t, "notes/vault", 30)
	v.fill()
	st := v.open()
	for _, path := range []string{"vault/1/1.md", "vault/3/3.md", "vault/4/4.md"} { // the first two are replaced
		_, err := st.Notes().SetProperties(t.Context(), path, varve.NoteProperties{Tags: []string{"tag"}})
		must(t, err)
	}
	must(t, st.Flush(t.Context()))
	must(t, st.Close())
	vault := filepath.Join(v.dir, "notes", "vault")
	must(t, os.RemoveAll(vault))
	must(t, os.RemoveAll(filepath.Join(v.dir, "notes", ".varve")))
	st = v.open()
	v.files++
	must(t, v.write(st, v.files-1)) // which records the loss
	must(t, st.Flush(t.Context()))
	must(t, os.MkdirAll(filepath.Join(vault, "1", "1.md"), 0o700))
	must(t, os.WriteFile(filepath.Join(vault, "1", "1.md", "inner.md"), []byte("inner"), 0o600))
	must(t, os.WriteFile(filepath.Join(vault, "3"), []byte("outer"), 0o600))
	must(t, st.Close())
	v.aged()
	st, err := varve.Open(t.Context(), v.dir, nil)
	must(t, err)
	adopted := func() bool {
		_, inner := st.Notes().Read(t.Context(), "vault/1/1.md/inner.md")
		_, outer := st.Notes().Read(t.Context(), "vault/3")
		return inner == nil && outer == nil && !v.restoring()
	}
	for end := time.Now().Add(30 * time.Second); !adopted(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not adopted: %v", st.Health(t.Context()).Problems)
		}
	}
	for path, want := range map[string]string{"vault/1/1.md/inner.md": "inner", "vault/3": "outer"} {
		if n, err := st.Notes().Read(t.Context(), path); err != nil || string(n.Content) != want {
			t.Errorf("%s: %q, %v", path, n.Content, err)
		}
		if data, err := os.ReadFile(filepath.Join(v.dir, "notes", filepath.FromSlash(path))); string(data) != want {
			t.Errorf("%s: file: %q, %v", path, data, err)
		}
	}
	for i := range v.files {
		err := v.read(st, i)
		if gone := i == 1 || i%7 == 3; gone != errors.Is(err, varve.ErrNotFound) || err != nil && !gone {
			t.Errorf("%s: %v", v.path(i), err)
		}
	}
	for path, is := range map[string]bool{"1/.1.md": false, "3/.3.md": false, "4/.4.md": true} {
		_, err := os.Stat(filepath.Join(v.dir, "notes", ".varve", "vault", filepath.FromSlash(path+".json")))
		if is != (err == nil) {
			t.Errorf("the properties of vault/%s: %v", path, err)
		}
	}
	if v.restoring() {
		t.Error("the restoring does not end")
	}
	must(t, st.Close())
	if moved, err := filepath.Glob(filepath.Join(v.dir, "quarantine", "*")); len(moved) > 0 || err != nil {
		t.Errorf("in quarantine: %v, %v", moved, err)
	}
}

// TestFileInPlaceOfARoot: an adopted folder vanishes, and a file is in its place. No note is deleted, whether a process
// watches or not; status says what to do; and once the file is moved away, the folder is restored.
func TestFileInPlaceOfARoot(t *testing.T) {
	for name, watched := range map[string]bool{"watched": true, "not watched": false} {
		t.Run(name, func(t *testing.T) {
			v := noteIn(t, "notes/vault", 30)
			v.fill()
			vault, o := filepath.Join(v.dir, "notes", "vault"), &varve.Options{NoBackground: true}
			if watched {
				o = &varve.Options{WatchFiles: true}
			}
			st, err := varve.Open(t.Context(), v.dir, o)
			must(t, err)
			must(t, os.RemoveAll(vault))
			must(t, os.WriteFile(vault, []byte("not a folder"), 0o600))
			v.aged()
			for range 60 { // until a watcher has decided about what is missing
				must(t, v.read(st, 3))
				if watched {
					time.Sleep(100 * time.Millisecond)
				}
			}
			for i := range v.files {
				if err := v.read(st, i); err != nil {
					t.Fatalf("%s: %v", v.path(i), err)
				}
			}
			want := "notes/vault, an adopted folder, is missing, with 30 files: a regular file is in its place"
			if h := st.Health(t.Context()); h.OK || !strings.Contains(errors.Join(h.Problems...).Error(), want) {
				t.Errorf("%v", h.Problems)
			}
			if data, err := os.ReadFile(vault); string(data) != "not a folder" {
				t.Errorf("the file: %q, %v", data, err)
			}
			must(t, st.Close())
			must(t, os.Rename(vault, filepath.Join(t.TempDir(), "away")))
			v.aged()
			st = v.open()
			must(t, v.read(st, 0))
			v.all(st)
			must(t, st.Close())
		})
	}
}

// putting puts two memories without flushing them, writes the version of the first, and waits to be killed.
func putting(ctx context.Context, _, dir string) error {
	st, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true})
	if err != nil {
		return err
	}
	m, err := st.Put(ctx, varve.Memory{ID: "x", Content: "one"})
	if err == nil {
		_, err = st.Put(ctx, varve.Memory{ID: "y", Content: "two"})
	}
	if err != nil {
		return err
	}
	fmt.Println(m.Version)
	select {}
}

// TestVanishedBesideDamage: a folder of documents vanishes while the log is damaged, and the store is opened before it
// is repaired. None of the documents counts as deleted, then or later.
func TestVanishedBesideDamage(t *testing.T) {
	all := noteIn(t, "notes", 30)
	all.path = func(i int) string { return fmt.Sprintf("notes/vault/%d/%d.md", i%7, i) }
	for _, v := range []*vanishing{all, memoriesIn(t, 30)} {
		v.fill()
		cmd, out := storetest.Start(t, "put", v.dir)
		var at int64
		_, err := fmt.Fscan(out, &at)
		must(t, err)
		must(t, cmd.Process.Kill())
		_ = cmd.Wait()
		segments, err := filepath.Glob(filepath.Join(v.dir, "wal", "*.wal"))
		must(t, err)
		slices.Sort(segments)
		f, err := os.OpenFile(segments[0], os.O_WRONLY, 0)
		must(t, err)
		_, err = f.WriteAt([]byte{0xff}, at%(64<<20)+70)
		must(t, err)
		must(t, f.Close())
		must(t, os.RemoveAll(filepath.Join(v.dir, v.gone)))
		st := v.open()
		if st.Admin().OpenReport().Damage == nil {
			t.Fatal("the log is not damaged")
		}
		if _, err := os.Stat(filepath.Join(v.dir, v.gone)); err == nil {
			t.Errorf("%s exists again before the repair, which would not see that it was missing", v.gone)
		}
		_ = v.read(st, 1) // its file is gone, and an entry behind its own cannot be read
		_ = st.Close()
		v.aged()
		plan, err := varve.PlanRepair(t.Context(), v.dir, nil, varve.VerifyOptions{})
		must(t, err)
		r, err := plan.Apply(t.Context())
		must(t, err)
		for _, done := range r.Done {
			if done.Err != nil {
				t.Errorf("%v: %v", done.Action, done.Err)
			}
		}
		v.aged()
		st = v.open()
		v.all(st)
		must(t, st.Close())
	}
}
