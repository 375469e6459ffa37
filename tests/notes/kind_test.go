package notes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// writing writes, edits, renames and deletes notes until it is killed.
func writing(ctx context.Context, _, dir string) error {
	st, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true})
	if err != nil {
		return err
	}
	ns := st.Notes()
	for i := 0; err == nil; i++ {
		path := fmt.Sprintf("f%d/%d.md", i%3, i)
		if _, err = ns.Write(ctx, path, fmt.Appendf(nil, "text %d", i)); err != nil {
			break
		}
		switch i % 4 {
		case 1:
			_, err = ns.Edit(ctx, path, "text", "edited")
		case 2:
			_, err = ns.Rename(ctx, path, "moved/"+path)
		case 3:
			err = ns.Delete(ctx, path)
		}
		if err == nil && i%7 == 0 {
			err = st.Flush(ctx)
		}
		fmt.Println(i)
	}
	return err
}

// filled makes a store with notes, of which one has properties and one was renamed, beside a memory.
func filled(t testing.TB, dir string) (*varve.Store, map[string]string) {
	t.Helper()
	st := opened(t, dir)
	_, err := st.Put(t.Context(), varve.Memory{ID: "a", Content: "a memory"})
	must(t, err)
	all := map[string]string{"a": "first", "b/c d/zebra.md": "the zebra sleeps", "b/.env": "x", "empty": "",
		"moved/to.md": "moved text"}
	for path, s := range all {
		if path != "moved/to.md" {
			write(t, st, path, s)
		}
	}
	write(t, st, "from.md", "moved text")
	_, err = st.Notes().Rename(t.Context(), "from.md", "moved/to.md")
	must(t, err)
	_, err = st.Notes().SetProperties(t.Context(), "a", varve.NoteProperties{Tags: []string{"tag"}})
	must(t, err)
	return st, all
}

// same compares all notes, and the properties that only sidecars have.
func same(t testing.TB, st *varve.Store, all map[string]string) {
	t.Helper()
	expect(t, st, all)
	n, err := st.Notes().Read(t.Context(), "moved/to.md")
	if err != nil || n.ID != note.ID("from.md") {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err = st.Notes().Read(t.Context(), "a"); err != nil || len(n.Properties.Tags) != 1 {
		t.Errorf("%+v, %v", n, err)
	}
	clean(t, st)
}

// TestKilled: writes that were acknowledged before SIGKILL are there, and all files are right.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	for round := range storetest.Repeat(t, 3) {
		child, out := storetest.Start(t, "writing", dir)
		n := 20 + 13*round
		for range n {
			if _, err := out.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		_ = child.Process.Kill()
		_ = child.Wait()
		st := opened(t, dir)
		clean(t, st)
		for i := range n {
			path, want := fmt.Sprintf("f%d/%d.md", i%3, i), fmt.Sprint("text ", i)
			switch i % 4 {
			case 1:
				want = fmt.Sprint("edited ", i)
			case 2:
				path = "moved/" + path
			case 3:
				want = none
			}
			if has := text(t, st, path); has != want && i < n-1 {
				t.Errorf("note %s is %q, want %q", path, has, want)
			}
		}
		if _, err := st.Notes().DeleteFolder(t.Context(), "moved"); err != nil { // the next round moves the same
			t.Error(err)
		}
		must(t, st.Flush(t.Context()))
		clean(t, st)
		must(t, st.Close())
	}
}

// TestRebuild: the index is rebuilt from the files, without index, checkpoint and log, one after the
// other, and from the files alone. The feature is set again.
func TestRebuild(t *testing.T) {
	dir := t.TempDir()
	st, all := filled(t, dir)
	must(t, st.Admin().RebuildIndex(t.Context()))
	same(t, st, all)
	must(t, st.Close())
	for _, patterns := range [][]string{{"memory_index*"}, {"backups/*"}, {"checkpoint"}, {"wal"},
		{"memory_index*", "backups", "checkpoint", "wal", "tmp", "view_index", "vector_index", "config.json"}} {
		for _, pattern := range patterns {
			names, err := filepath.Glob(filepath.Join(dir, pattern))
			must(t, err)
			for _, name := range names {
				must(t, os.RemoveAll(name))
			}
		}
		st = opened(t, dir)
		same(t, st, all)
		must(t, st.Flush(t.Context()))
		clean(t, st)
		must(t, st.Close())
		log, err := wal.ReadCheckpoint(vfs.OS(), dir)
		if err != nil || log.Features&wal.FeatureNotes == 0 {
			t.Errorf("%q: the features are %s, %v", patterns, log.Features, err)
		}
	}
}

// TestBackup: a backup has the notes, passes its check, and is restored, also as of a moment; a store is
// moved with its notes.
func TestBackup(t *testing.T) {
	dir, to, back := t.TempDir(), filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "back")
	st, all := filled(t, dir)
	info, err := st.Backup(t.Context(), to, varve.BackupOptions{})
	must(t, err)
	if info.Others["notes"] != 7 || info.Memories != 1 { // two sidecars
		t.Errorf("the backup has %d memories, others %v", info.Memories, info.Others)
	}
	_, err = varve.CheckBackup(t.Context(), to)
	must(t, err)
	write(t, st, "later", "after the backup")
	must(t, st.Close())
	_, err = varve.Restore(t.Context(), to, back, &varve.RestoreOptions{Log: dir})
	must(t, err)
	all["later"] = "after the backup"
	st = opened(t, back)
	same(t, st, all)
	must(t, st.Close())
	moved := filepath.Join(t.TempDir(), "moved")
	_, err = varve.Migrate(t.Context(), back, moved, &varve.MigrateOptions{Switch: true})
	must(t, err)
	same(t, opened(t, moved), all)

	// A backup of a store without notes has no folder for them, and neither has what is restored of it.
	dir, to, back = t.TempDir(), filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "back")
	st = opened(t, dir)
	_, err = st.Put(t.Context(), varve.Memory{ID: "a", Content: "a memory"})
	must(t, err)
	_, err = st.Backup(t.Context(), to, varve.BackupOptions{})
	must(t, err)
	_, err = varve.Restore(t.Context(), to, back, nil)
	must(t, err)
	for _, dir := range []string{dir, to, back} {
		if _, err := os.Stat(filepath.Join(dir, "notes")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s has notes/: %v", dir, err)
		}
	}
}

// TestVerify: verify names the faults in the file of a note, and repair fixes them.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	st, all := filled(t, dir)
	must(t, st.Flush(t.Context()))
	must(t, st.Close())
	name := at(dir, "b/c d/zebra.md")
	info, err := os.Stat(name)
	must(t, err)
	b, err := os.ReadFile(name)
	must(t, err)
	b[len(b)/2] ^= 1
	must(t, os.WriteFile(name, b, 0o600))
	must(t, os.Chtimes(name, info.ModTime(), info.ModTime()))
	must(t, os.Remove(at(dir, "a")))
	st = opened(t, dir)
	found := map[string]bool{}
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		must(t, err)
		found[f.Path] = true
	}
	if !found["notes/b/c d/zebra.md"] {
		t.Errorf("a flipped bit was not found: %v", found)
	}
	must(t, st.Close())
	plan, err := varve.PlanRepair(t.Context(), dir, nil, varve.VerifyOptions{})
	must(t, err)
	_, err = plan.Apply(t.Context())
	must(t, err)
	st = opened(t, dir)
	all["a"] = text(t, st, "a") // deleted by hand, or restored
	expect(t, st, all)
	clean(t, st)
}

// TestPurge: nothing of a purged note is left in the store; the others stay.
func TestPurge(t *testing.T) {
	dir := t.TempDir()
	st, all := filled(t, dir)
	must(t, st.Flush(t.Context()))
	write(t, st, "b/c d/zebra.md", "the zebra wakes")
	must(t, st.Flush(t.Context()))
	inner := storetest.Inner(st)
	k, err := inner.Engine.Kinds().Named(record.Note)
	must(t, err)
	_, err = inner.Purger.Purge(t.Context(), k, []string{"b/c d/zebra.md"})
	must(t, err)
	all["b/c d/zebra.md"] = none
	same(t, st, all)
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "zebra") {
			t.Errorf("%s has the text", path)
		}
		return err
	}))
}

// TestPast: the changes of notes are reported, with those of sidecars, and the state of a moment
// includes them.
func TestPast(t *testing.T) {
	st, _ := filled(t, t.TempDir())
	var seen []string
	for c, err := range st.Admin().Changes(t.Context(), 0) {
		must(t, err)
		if c.Kind == "note" {
			seen = append(seen, fmt.Sprint(c.ID, " ", c.Deleted))
		}
	}
	for _, want := range []string{"from.md false", "from.md true", "moved/to.md false", "a false"} {
		if !slices.Contains(seen, want) {
			t.Errorf("%q lacks %s", seen, want)
		}
	}
}
