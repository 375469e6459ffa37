package letters

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/views"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestForeignFolder: a folder of this name that the user created is left unchanged, by a store with the
// view and by one without.
func TestForeignFolder(t *testing.T) {
	for _, letters := range []bool{false, true} {
		dir := t.TempDir()
		st := opened(t, dir, false)
		put(t, st, "anna", "bert")
		flush(t, st)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		mine := filepath.Join(dir, places.Views, "mine", "notes.md")
		write(t, mine, "my own notes")
		st = opened(t, dir, letters)
		put(t, st, "cleo")
		flush(t, st)
		if err := st.Admin().RebuildIndex(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Admin().Purge(t.Context(), "bert"); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(mine); string(b) != "my own notes" {
			t.Errorf("with the view %v: %q, %v", letters, b, err)
		}
	}
}

// refusing is a file system that refuses to remove a view's file.
type refusing struct {
	vfs.FS
	on *bool
}

func (f refusing) Remove(name string) error {
	if *f.on && strings.HasSuffix(name, File) {
		return &os.PathError{Op: "remove", Path: name, Err: syscall.EACCES}
	}
	return f.FS.Remove(name)
}

// TestPurgeSaysWhatIsLeft: if the file of a view cannot be removed, a purge is not complete.
func TestPurgeSaysWhatIsLeft(t *testing.T) {
	dir, on := t.TempDir(), false
	st, err := varve.Open(t.Context(), dir, storetest.In(&varve.Options{NoBackground: true}, storetest.Environment{
		Views: []views.Maker{New}, System: vfs.System{FS: refusing{vfs.OS(), &on}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	put(t, st, "anna", "secret")
	flush(t, st)
	on = true
	if r, err := st.Admin().Purge(t.Context(), "secret"); err == nil || len(r.Left) == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	on = false
	// nothing else has it
	if _, err := st.Admin().Purge(t.Context(), "secret"); err != nil && !errors.Is(err, varve.ErrNotFound) {
		t.Error(err)
	}
	expect(t, dir, "anna")
}

// TestHalfWritten: a file that a killed process has left half written does not outlive a purge.
func TestHalfWritten(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir, true)
	put(t, st, "anna")
	if _, err := st.Put(t.Context(), varve.Memory{ID: "bert", Content: "the zebra sleeps beside the river"}); err != nil {
		t.Fatal(err)
	}
	flush(t, st)
	own := filepath.Base(storetest.Inner(st).Engine.ViewFolder(Name).Temp)
	_, rest, _ := strings.Cut(own, "-")
	write(t, filepath.Join(dir, "tmp", "index.999999-"+rest), "terms: beside river sleeps the zebra")
	if !strings.HasPrefix(own, "index.") {
		t.Errorf("the name %s is not one that a flush removes", own)
	}
	if _, err := st.Admin().Purge(t.Context(), "bert"); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte("zebra")) {
			t.Errorf("%s has it", path)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// TestInTheWay: a view that cannot be written does not stop the store.
func TestInTheWay(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"a folder in it": func(dir string) error { return os.MkdirAll(filepath.Join(dir, Folder, "sub"), 0o700) },
		"a long name": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, Folder, strings.Repeat("x", 245)), nil, 0o600)
		},
		"a file": func(dir string) error {
			if err := os.RemoveAll(filepath.Join(dir, places.Views)); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, places.Views), nil, 0o600)
		},
		"a link": func(dir string) error {
			if err := os.RemoveAll(filepath.Join(dir, Folder)); err != nil {
				return err
			}
			return os.Symlink(os.TempDir(), filepath.Join(dir, Folder))
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			dir := t.TempDir()
			st := opened(t, dir, true)
			put(t, st, "anna", "bert", "cleo")
			flush(t, st)
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			flush(t, st)
			if err := st.Admin().RebuildIndex(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := st.Admin().Purge(t.Context(), "bert"); err != nil {
				t.Error(err)
			}
			put(t, st, "dora")
			flush(t, st)
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			for _, pattern := range []string{"memory_index*", "backups/*"} {
				names, _ := filepath.Glob(filepath.Join(dir, pattern))
				for _, name := range names {
					if err := os.RemoveAll(name); err != nil {
						t.Fatal(err)
					}
				}
			}
			st = opened(t, dir, true)
			if n, err := st.Count(t.Context()); n != 3 || err != nil {
				t.Errorf("%d memories, %v", n, err)
			}
		})
	}
}

// TestBackground: files are written although no process writes to the store.
func TestBackground(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir, false)
	put(t, st, "anna")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	made := make(chan struct{}, 100)
	o := options(true)
	o.NoBackground = false
	storetest.Of(o).System.FS = noticing{vfs.OS(), made}
	st, err := varve.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	<-made
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, dir, "anna")
}

// noticing reports when a view's file is put in place.
type noticing struct {
	vfs.FS
	made chan struct{}
}

func (f noticing) Rename(old, name string) error {
	err := f.FS.Rename(old, name)
	if strings.HasSuffix(name, File) {
		f.made <- struct{}{}
	}
	return err
}

// TestFollowerKeepsItsFold: a canceled query does not lead to a rebuild.
func TestFollowerKeepsItsFold(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir, false)
	put(t, st, "anna")
	flush(t, st)
	put(t, st, "bert")
	counted := &resets{Letters: Letters{eng: storetest.Inner(st).Engine}}
	follow := engine.Follower{Fold: counted}
	for range 10 {
		err := follow.With(t.Context(), counted.eng, func(*index.Set, int64) error { return context.Canceled })
		if !errors.Is(err, context.Canceled) || len(counted.ids) != 2 {
			t.Errorf("%v, %v", err, counted.ids)
		}
	}
	if counted.n != 1 {
		t.Errorf("made %d times", counted.n)
	}
}

type resets struct {
	Letters
	n int
}

func (r *resets) Reset(ctx context.Context, set *index.Set) error {
	r.n++
	return r.Letters.Reset(ctx, set)
}
