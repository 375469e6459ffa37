package varve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// copyDir copies a closed store, times included.
func copyDir(t testing.TB, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := to + strings.TrimPrefix(path, from)
		if d.IsDir() {
			return os.Mkdir(target, 0o700)
		}
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(target, b, 0o600)
		}
		info, ierr := d.Info()
		if err = errors.Join(err, ierr); err != nil {
			return err
		}
		return os.Chtimes(target, info.ModTime(), info.ModTime())
	})
	if err != nil {
		t.Fatal(err)
	}
}

var smallLog = &Options{SegmentSize: 64 << 10, NoBackground: true}

// aged is a closed store whose oldest segments were recycled, with index backups
// of several ages, and what Get says of each of its memories.
func aged(t testing.TB) (dir string, want map[string]Memory) {
	t.Helper()
	ctx := context.Background()
	dir = filepath.Join(t.TempDir(), "s")
	st := openTest(t, dir, smallLog)
	c := st.Admin().Config()
	always := 0
	c.BackupInterval = &always
	if err := st.Admin().SetConfig(c); err != nil {
		t.Fatal(err)
	}
	for round := range 12 {
		for i := range 60 {
			id := fmt.Sprint("k", (round*37+i)%150)
			if i%11 == 3 {
				if err := st.Delete(ctx, id); err != nil && !errors.Is(err, ErrNotFound) {
					t.Fatal(err)
				}
				continue
			}
			if _, err := st.Put(ctx, Memory{ID: id, Content: fmt.Sprint(round, strings.Repeat("x", 600)), Metadata: map[string]any{"session_id": fmt.Sprint("s", i%4)}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.Admin().Compact(ctx); err != nil {
			t.Fatal(err)
		}
	}
	want = contents(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, want
}

func contents(t testing.TB, st *Store) map[string]Memory {
	t.Helper()
	all := map[string]Memory{}
	for m, err := range st.Memories(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		all[m.ID] = m
	}
	return all
}

// compare says where two stores' contents differ; versions count only if asked for.
func compare(t testing.TB, got, want map[string]Memory, versions bool) {
	t.Helper()
	for id, w := range want {
		g, ok := got[id]
		switch {
		case !ok:
			t.Errorf("%s is missing", id)
		case g.Content != w.Content:
			t.Errorf("%s: %.20q, want %.20q", id, g.Content, w.Content)
		case versions && g.Version != w.Version:
			t.Errorf("%s has version %d, it was %d", id, g.Version, w.Version)
		case !g.CreatedAt.Equal(w.CreatedAt) || !g.UpdatedAt.Equal(w.UpdatedAt):
			t.Errorf("%s: its times are others", id)
		}
	}
	for id := range got {
		if _, ok := want[id]; !ok {
			t.Errorf("%s has come back", id)
		}
	}
}

func alter(t testing.TB, path string, f func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b = f(b); b == nil {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var indexDamage = map[string]func(b []byte) []byte{
	"bit flip":  func(b []byte) []byte { b[len(b)/3] ^= 4; return b },
	"flip meta": func(b []byte) []byte { b[len(b)-100] ^= 1; return b },
	"cut":       func(b []byte) []byte { return b[:len(b)/2] },
	"emptied":   func(b []byte) []byte { return b[:0] },
	"braces":    func(b []byte) []byte { return []byte("{}") },
	"deleted":   func(b []byte) []byte { return nil },
}

// remade opens a store whose index is damaged, has it made again, and says from what.
func remade(t testing.TB, dir string) (from string, got map[string]Memory) {
	t.Helper()
	ctx := context.Background()
	made := ""
	o := *smallLog
	o.Listener = func(e Event) {
		if e.Kind == EventRebuilt {
			made = e.Note
		}
	}
	st := openTest(t, dir, &o)
	for _, err := range st.Memories(ctx) { // a flipped bit is found by who reads there
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
	}
	if _, err := st.Get(ctx, "k70"); err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if r := st.Admin().OpenReport().Rebuilt; r != nil && engine.Origin(r.From) != strings.TrimPrefix(made, "from ") {
		t.Errorf("the report says %q, the event %q", r.From, made)
	}
	if made == "" {
		t.Fatal("the index was not made again")
	}
	for f, err := range st.Admin().Verify(ctx, VerifyOptions{}) {
		if err != nil || f.Severity != SeverityInfo && !strings.HasPrefix(f.Path, "backups/") {
			t.Errorf("verify: %v %v", f, err)
		}
	}
	return made, contents(t, st)
}

// A damaged index is made again from the newest backup that serves and the log
// since, over segments that were recycled: every version stays what it was.
func TestIndexFallBack(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	dir, want := aged(t)
	backups := func(dir string) (list []string) {
		all, err := index.Backups(vfs.OS(), dir)
		if err != nil || len(all) != 3 {
			t.Fatalf("%v, %v", all, err)
		}
		for _, b := range all {
			list = append(list, b.Name)
		}
		return list
	}
	use := func(t *testing.T, what string, prepare func(t *testing.T, dir string, b []string)) (string, map[string]Memory, []string) {
		d := filepath.Join(t.TempDir(), "s")
		copyDir(t, dir, d)
		alter(t, filepath.Join(d, index.BaseName), indexDamage[what])
		b := backups(d)
		if prepare != nil {
			prepare(t, d, b)
		}
		from, got := remade(t, d)
		return from, got, b
	}
	for what := range indexDamage {
		t.Run(what, func(t *testing.T) {
			from, got, b := use(t, what, nil)
			if !strings.Contains(from, b[0]) {
				t.Errorf("it was made %s, not from %s", from, b[0])
			}
			compare(t, got, want, true)
		})
		t.Run(what+" and the newest backup", func(t *testing.T) {
			from, got, b := use(t, "cut", func(t *testing.T, d string, b []string) {
				if what == "deleted" {
					what = "emptied"
				}
				alter(t, filepath.Join(d, b[0]), indexDamage[what])
			})
			if !strings.Contains(from, b[1]) {
				t.Errorf("it was made %s, not from %s", from, b[1])
			}
			compare(t, got, want, true)
		})
	}
	noArchive := func(t *testing.T, d string, _ []string) {
		if err := os.RemoveAll(filepath.Join(d, "wal", "archive")); err != nil {
			t.Fatal(err)
		}
	}
	files := func(t *testing.T, from string, got map[string]Memory) {
		t.Helper()
		if from != "from the files" {
			t.Errorf("it was made %s", from)
		}
		compare(t, got, want, false)
	}
	t.Run("backups too old", func(t *testing.T) {
		from, got, _ := use(t, "deleted", func(t *testing.T, d string, b []string) {
			noArchive(t, d, b)
			for _, name := range b[:2] { // the oldest lies below what the log still has
				if err := os.Remove(filepath.Join(d, name)); err != nil {
					t.Fatal(err)
				}
			}
		})
		files(t, from, got)
	})
	t.Run("a hole in the archive", func(t *testing.T) {
		from, got, _ := use(t, "deleted", func(t *testing.T, d string, b []string) {
			for _, name := range b[:2] {
				if err := os.Remove(filepath.Join(d, name)); err != nil {
					t.Fatal(err)
				}
			}
			all, err := filepath.Glob(filepath.Join(d, "wal", "archive", "*.zst"))
			if err != nil || len(all) < 3 {
				t.Fatal(all, err)
			}
			if err := os.Remove(all[len(all)-1]); err != nil {
				t.Fatal(err)
			}
		})
		files(t, from, got)
	})
	t.Run("no backups", func(t *testing.T) {
		from, got, _ := use(t, "cut", func(t *testing.T, d string, _ []string) {
			if err := os.RemoveAll(filepath.Join(d, "backups")); err != nil {
				t.Fatal(err)
			}
		})
		files(t, from, got)
	})
}

// A backup of another life of the store is not used, even where its name fits.
func TestIndexFallBackOfAnotherLife(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	dir, want := aged(t)
	other, _ := aged(t)
	list, err := index.Backups(vfs.OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := index.Backups(vfs.OS(), other)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range list {
		alter(t, filepath.Join(dir, b.Name), func([]byte) []byte {
			f, err := os.ReadFile(filepath.Join(other, foreign[i].Name))
			if err != nil {
				t.Fatal(err)
			}
			return f
		})
	}
	alter(t, filepath.Join(dir, index.BaseName), indexDamage["cut"])
	from, got := remade(t, dir)
	if from != "from the files" {
		t.Errorf("it was made %s", from)
	}
	compare(t, got, want, false)
}

// A damaged delta costs no version either: the base under it and the log have all.
func TestIndexFallBackOnTheBase(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	st := openTest(t, dir, smallLog)
	put := func(from, to int) {
		b := new(Batch)
		for i := from; i < to; i++ {
			b.Put(Memory{ID: fmt.Sprint("k", i%1500), Content: fmt.Sprint(i)})
			if i%20 == 19 || i == to-1 {
				if err := st.Apply(ctx, b); err != nil {
					t.Fatal(err)
				}
				b = new(Batch)
			}
		}
	}
	put(0, 1500)
	if err := st.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	put(1500, 1600)
	if err := st.Delete(ctx, "k700"); err != nil {
		t.Fatal(err)
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	want := contents(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"bit flip", "cut", "deleted"} {
		t.Run(what, func(t *testing.T) {
			d := filepath.Join(t.TempDir(), "s")
			copyDir(t, dir, d)
			alter(t, filepath.Join(d, index.DeltaName), indexDamage[what])
			from, got := remade(t, d)
			if !strings.Contains(from, index.BaseName) {
				t.Errorf("it was made %s", from)
			}
			compare(t, got, want, true)
		})
	}
}

// FAILURES 17: a backup that cannot be opened just now is not taken for a bad one,
// which would cost the versions.
func TestIndexFallBackPassingError(t *testing.T) {
	t.Parallel()
	dir, want := aged(t)
	alter(t, filepath.Join(dir, index.BaseName), indexDamage["cut"])
	o := *smallLog
	storetest.Of(&o).System = vfs.System{FS: fault.New(vfs.OS(), fault.Nth(1, 1, func(op *fault.Op) bool {
		return op.Kind == wrap.Open && strings.Contains(filepath.ToSlash(op.Path), "/backups/")
	}, syscall.EMFILE))}
	if st, err := Open(context.Background(), dir, &o); !errors.Is(err, syscall.EMFILE) {
		if err == nil {
			st.Close()
		}
		t.Fatalf("opened without its backup: %v", err)
	}
	_, got := remade(t, dir)
	compare(t, got, want, true)
}
