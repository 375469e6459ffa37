package letters

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/views"
	"github.com/varve-db/varve/repair"
)

func TestMain(m *testing.M) {
	storetest.Main(m, putting)
}

func options(letters bool) *varve.Options {
	list := []views.Maker{}
	if letters {
		list = append(list, New)
	}
	return storetest.In(&varve.Options{NoBackground: true}, storetest.Environment{Views: list})
}

func opened(t *testing.T, dir string, letters bool) *varve.Store {
	t.Helper()
	st, err := varve.Open(t.Context(), dir, options(letters))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func put(t *testing.T, st *varve.Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if _, err := st.Put(t.Context(), varve.Memory{ID: id, Content: "about " + id}); err != nil {
			t.Fatal(err)
		}
	}
}

func flush(t *testing.T, st *varve.Store) {
	t.Helper()
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// stored returns the ids in the view's file; nil if there is none.
func stored(t *testing.T, dir string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, Folder, File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var has file
	if err == nil {
		err = json.Unmarshal(data, &has)
	}
	if err != nil {
		t.Fatal(err)
	}
	return has.IDs
}

func expect(t *testing.T, dir string, ids ...string) {
	t.Helper()
	if has := stored(t, dir); !slices.Equal(has, ids) {
		t.Errorf("the file has %q, want %q", has, ids)
	}
}

func clean(t *testing.T, st *varve.Store) {
	t.Helper()
	storetest.AllWell(t, st.Admin().Verify(t.Context(), varve.VerifyOptions{}))
}

// TestRounds: each flush completes the file, also with what other processes wrote.
func TestRounds(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir, true)
	put(t, st, "anna", "bert", "alma")
	flush(t, st)
	expect(t, dir, "alma", "anna", "bert")
	other := opened(t, dir, true)
	put(t, other, "cleo")
	if err := other.Delete(t.Context(), "bert"); err != nil {
		t.Fatal(err)
	}
	flush(t, st)
	expect(t, dir, "alma", "anna", "cleo")
	put(t, st, "dora")
	flush(t, other)
	expect(t, dir, "alma", "anna", "cleo", "dora")
	clean(t, st)
}

// TestQuery: a query includes what any process has made durable, and starts from the files.
func TestQuery(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir, true)
	put(t, st, "anna", "bert")
	flush(t, st)
	other := opened(t, dir, true)
	q := NewQuery(storetest.Inner(other).Engine)
	counted := func(want string) {
		t.Helper()
		counts, err := q.Counts(t.Context())
		if err != nil || fmt.Sprint(counts) != want {
			t.Errorf("%v, %v; want %s", counts, err, want)
		}
	}
	counted("map[97:1 98:1]")
	put(t, st, "alma")
	counted("map[97:2 98:1]")
	if err := st.Delete(t.Context(), "bert"); err != nil {
		t.Fatal(err)
	}
	counted("map[97:2]")
	flush(t, st)
	counted("map[97:2]")
	if q.view.resets != 0 {
		t.Errorf("it was made from the index %d times", q.view.resets)
	}
	write(t, filepath.Join(dir, Folder, File), "damaged")
	q = NewQuery(storetest.Inner(other).Engine)
	counted("map[97:2]")
	if q.view.resets != 1 {
		t.Errorf("with a damaged file it was made from the index %d times", q.view.resets)
	}
}

// TestBehind: what a program without the view writes is added later, from the log or, if the files are
// missing, from the index.
func TestBehind(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir, true)
	put(t, st, "anna")
	flush(t, st)
	without := opened(t, dir, false)
	put(t, without, "bert")
	flush(t, without)
	expect(t, dir, "anna")
	clean(t, st)
	put(t, st, "cleo")
	flush(t, st)
	expect(t, dir, "anna", "bert", "cleo")
	if err := os.Remove(filepath.Join(dir, Folder, File)); err != nil {
		t.Fatal(err)
	}
	put(t, st, "dora")
	flush(t, st)
	expect(t, dir, "anna", "bert", "cleo", "dora")
}

// TestFirstFlush: a store that has memories and no files yet gets them without a further write.
func TestFirstFlush(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir, false)
	put(t, st, "anna")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	flush(t, opened(t, dir, true))
	expect(t, dir, "anna")
}

// TestWrong: verify finds files that are damaged or wrong, and repair rebuilds them.
func TestWrong(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"damaged": func(b []byte) []byte { return b[:len(b)/2] },
		"wrong":   func(b []byte) []byte { return bytes.Replace(b, []byte("anna"), []byte("otto"), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			st := opened(t, dir, true)
			put(t, st, "anna", "bert")
			flush(t, st)
			spoil(t, dir, change)
			var found []varve.Finding
			for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, f)
			}
			if len(found) != 1 || found[0].Kind != repair.ViewWrong || found[0].Path != Folder {
				t.Fatalf("verify found %+v", found)
			}
			plan, err := varve.PlanRepair(t.Context(), dir, options(true), varve.VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := plan.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			expect(t, dir, "anna", "bert")
			clean(t, st)
		})
	}
}

// TestRebuild: if the index is rebuilt, so is the view, although the index is of the same moment.
func TestRebuild(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir, true)
	put(t, st, "anna", "bert")
	flush(t, st)
	spoil(t, dir, func(b []byte) []byte { return bytes.Replace(b, []byte("anna"), []byte("otto"), 1) })
	if err := st.Admin().RebuildIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, dir, "anna", "bert")
	clean(t, st)
}

// spoil changes the view's file.
func spoil(t *testing.T, dir string, change func([]byte) []byte) {
	t.Helper()
	path := filepath.Join(dir, Folder, File)
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(data), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestPurge: nothing of a purged id is left, also in a file of a view that the purging program
// does not know.
func TestPurge(t *testing.T) {
	for _, knows := range []bool{true, false} {
		t.Run(fmt.Sprint(knows), func(t *testing.T) {
			dir := t.TempDir()
			st := opened(t, dir, true)
			put(t, st, "anna", "secret")
			flush(t, st)
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			st = opened(t, dir, knows)
			r, err := st.Admin().Purge(t.Context(), "secret")
			if err != nil || len(r.Left)+len(r.Unlinked)+len(r.Mentions) > 0 {
				t.Errorf("purge: %+v, %v", r, err)
			}
			if knows {
				expect(t, dir, "anna")
			} else {
				expect(t, dir)
			}
			err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return err
				}
				data, err := os.ReadFile(path)
				if bytes.Contains(data, []byte("secret")) {
					t.Errorf("%s has it", path)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
			clean(t, st)
		})
	}
}

// TestCopies: a backup omits the view, a restored store rebuilds the file, and a store that is moved has
// it.
func TestCopies(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir, true)
	put(t, st, "anna", "bert")
	flush(t, st)
	backup, restored, moved := filepath.Join(t.TempDir(), "b"), filepath.Join(t.TempDir(), "r"),
		filepath.Join(t.TempDir(), "m")
	// A program that knows of no views restores it as any other.
	if info, err := st.Backup(t.Context(), backup,
		varve.BackupOptions{}); err != nil || info.Format != 1 || info.Features != "" {
		t.Fatalf("%+v, %v", info, err)
	}
	put(t, st, "cleo")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := varve.Restore(t.Context(), backup, restored, &varve.RestoreOptions{Options: options(true)}); err != nil {
		t.Fatal(err)
	}
	st = opened(t, restored, true)
	flush(t, st)
	expect(t, restored, "anna", "bert")
	clean(t, st)
	if _, err := varve.Migrate(t.Context(), dir, moved,
		&varve.MigrateOptions{Options: options(true), Switch: true}); err != nil {
		t.Fatal(err)
	}
	st = opened(t, moved, true)
	expect(t, moved, "anna", "bert", "cleo")
	clean(t, st)
}

// putting puts until it is killed, and flushes now and then.
func putting(ctx context.Context, _, dir string) error {
	st, err := varve.Open(ctx, dir, options(true))
	for i := 0; err == nil; i++ {
		if _, err = st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i), Content: "x"}); err == nil && i%7 == 0 {
			err = st.Flush(ctx)
		}
		fmt.Println(i)
	}
	return err
}

// TestKilled: a process that is killed while writing leaves files that are right or are rebuilt.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	for round := range storetest.Repeat(t, 5) {
		child, out := storetest.Start(t, "putting", dir)
		for range 20 + 13*round {
			if _, err := out.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		_ = child.Process.Kill()
		_ = child.Wait()
		st := opened(t, dir, true)
		clean(t, st)
		flush(t, st)
		n, err := st.Count(t.Context())
		if has := stored(t, dir); err != nil || int(n) != len(has) || !strings.HasPrefix(has[0], "k") {
			t.Errorf("%d memories (%v), the file has %d", n, err, len(has))
		}
		clean(t, st)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOtherLog: files of a store whose log diverged, put here by hand, are not continued.
func TestOtherLog(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, other} {
		st := opened(t, d, true)
		put(t, st, filepath.Base(filepath.Dir(d))+"-"+filepath.Base(d))
		flush(t, st)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(filepath.Join(other, Folder, File))
	if err != nil {
		t.Fatal(err)
	}
	spoil(t, dir, func([]byte) []byte { return data })
	st := opened(t, dir, true)
	put(t, st, "next")
	flush(t, st)
	if has := stored(t, dir); len(has) != 2 ||
		slices.Contains(has, filepath.Base(filepath.Dir(other))+"-"+filepath.Base(other)) {
		t.Errorf("the file has %q", has)
	}
	clean(t, st)
}
