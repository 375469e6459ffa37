package purges

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/adopt"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

// longTold is long enough to be recognized in any document.
const longTold = "the combination of the safe is seventeen, four and ninety"

// returning makes a store in which ada and a short text are purged, and returns their former files.
func returning(t *testing.T) (dir string, files map[string][]byte) {
	t.Helper()
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "s")
	st := openLasting(t, dir)
	files = map[string][]byte{}
	for id, content := range map[string]string{"ada": longTold, "short": "ok", "other": "something else"} {
		_, err := st.Put(ctx, varve.Memory{ID: id, Content: content})
		fixture.Must(t, err)
	}
	fixture.Must(t, st.Flush(ctx))
	for _, id := range []string{"ada", "short"} {
		b, err := os.ReadFile(filepath.Join(dir, "memories", id+".json"))
		fixture.Must(t, err)
		files[id+".json"] = b
	}
	_, err := st.Admin().Purge(ctx, "ada", "short")
	fixture.Must(t, err)
	fixture.Must(t, st.Close())
	return dir, files
}

func putBack(t *testing.T, dir string, name string, b []byte) {
	t.Helper()
	path := filepath.Join(dir, "memories", name)
	fixture.Must(t, os.WriteFile(path, b, 0o600))
	now := time.Now().Add(-time.Minute) // an editor is not saving it now
	fixture.Must(t, os.Chtimes(path, now, now))
}

// Files that return, as from the trash, a copy or a checkout, are not adopted: not by the process that
// watches, not by a repair, and not by an index that is rebuilt from the files. They stay, and status
// and verify say why.
func TestPurgedFilesComeBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir, files := returning(t)
	for name, b := range files {
		putBack(t, dir, name, b)
	}
	// The text in a document of another id, and in an edit of one that lives.
	putBack(t, dir, "copy.json", bytes.ReplaceAll(files["ada.json"], []byte(`"ada"`), []byte(`"copy"`)))
	other, err := os.ReadFile(filepath.Join(dir, "memories", "other.json"))
	fixture.Must(t, err)
	edited := bytes.ReplaceAll(other, []byte("something else"), []byte(longTold))
	putBack(t, dir, "other.json", edited)
	// A short text is recognized only with its id.
	fine := bytes.ReplaceAll(files["short.json"], []byte(`"short"`), []byte(`"fine"`))
	putBack(t, dir, "fine.json", fine)
	refused := []string{"ada.json", "copy.json", "other.json", "short.json"}

	check := func(when string, st *varve.Store, want ...string) {
		t.Helper()
		if ids := held(t, st); !slices.Equal(ids, want) {
			t.Errorf("%s: %v", when, ids)
		}
		m, err := st.Get(ctx, "other")
		if err != nil || slices.Contains(refused, "other.json") && m.Content != "something else" {
			t.Errorf("%s: %q, %v", when, m.Content, err)
		}
		var names []string
		for r, err := range st.Admin().RefusedEdits(ctx) {
			fixture.Must(t, err)
			if !errors.Is(r.Err, varve.ErrPurged) || !strings.Contains(r.Err.Error(), "--force-purged") {
				t.Errorf("%s: %s: %v", when, r.Path, r.Err)
			}
			names = append(names, strings.TrimPrefix(r.Path, "memories/"))
		}
		if slices.Sort(names); !slices.Equal(names, refused) {
			t.Errorf("%s: refused are %v", when, names)
		}
		found := map[string]bool{}
		for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
			fixture.Must(t, err)
			if errors.Is(f.Err, varve.ErrPurged) {
				found[strings.TrimPrefix(f.Path, "memories/")] = true
			}
		}
		for _, name := range refused {
			if !found[name] {
				t.Errorf("%s: verify does not say why %s is no memory", when, name)
			}
			if _, err := os.Stat(filepath.Join(dir, "memories", name)); err != nil {
				t.Errorf("%s: the user's file: %v", when, err)
			}
		}
	}
	st := openLasting(t, dir)
	_, err = adopt.NewFiles(storetest.Inner(st).Adopter).Look(ctx, "memories", append(slices.Clone(refused), "fine.json"))
	fixture.Must(t, err)
	check("watched", st, "fine", "other")
	// An index that is made from the files takes them as they are: another document may have had the text all along. Files
	// of the ids that were purged are left out.
	refused = []string{"ada.json", "short.json"}
	fixture.Must(t, st.Admin().RebuildIndex(ctx))
	check("rebuilt", st, "copy", "fine", "other")
	fixture.Must(t, st.Close())

	for _, name := range []string{"memory_index.json", "memory_index.delta.json"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	backups, _ := filepath.Glob(filepath.Join(dir, "backups", "memory_index.*"))
	for _, name := range backups {
		fixture.Must(t, os.Remove(name))
	}
	st = openLasting(t, dir)
	check("made from the files", st, "copy", "fine", "other")
	fixture.Must(t, st.Close())

	plan, err := varve.PlanRepair(ctx, dir, lasting(), varve.VerifyOptions{})
	fixture.Must(t, err)
	_, err = plan.Apply(ctx)
	fixture.Must(t, err)
	st = openLasting(t, dir)
	if ids := held(t, st); !slices.Equal(ids, []string{"copy", "fine", "other"}) {
		t.Errorf("after the repair: %v", ids)
	}
	if aside, err := filepath.Glob(filepath.Join(dir, "quarantine", "*")); err != nil {
		t.Error(err)
	} else {
		for _, name := range aside {
			if b, _ := os.ReadFile(name); bytes.Contains(b, []byte("combination")) {
				t.Errorf("the text is in %s", name)
			}
		}
	}
}

// The other ways back: an import and quarantine are refused, and so are put and remember with
// block_purged; without it a text that is put on purpose is stored, and then treated like any other.
func TestPurgedTextsComeBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir, files := returning(t)
	st := openLasting(t, dir)
	refused := func(what string, err error) {
		t.Helper()
		var purged *varve.PurgedError
		if !errors.Is(err, varve.ErrPurged) || !errors.As(err, &purged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	put := func(id, content string, options ...varve.PutOption) error {
		_, err := st.Put(ctx, varve.Memory{ID: id, Content: content}, options...)
		return err
	}
	refused("an import", put("ada", longTold, varve.RefusePurged()))
	refused("with spaces", put("new", " "+longTold+"\n", varve.RefusePurged()))
	refused("a short one", put("short", "ok", varve.RefusePurged()))
	fixture.Must(t, put("elsewhere", "ok", varve.RefusePurged()))
	name := "ada.json"
	fixture.Must(t, os.WriteFile(filepath.Join(dir, "quarantine", name), files[name], 0o600))
	_, err := st.Admin().Quarantine().Restore(ctx, name)
	refused("quarantine", err)
	_, err = st.PutAll(ctx, slices.Values([]varve.Memory{{ID: "x", Content: "fine"}, {ID: "y", Content: longTold}}),
		varve.RefusePurged())
	refused("many", err)

	fixture.Must(t, put("ada", longTold)) // the setting is off
	fixture.Must(t, st.Delete(ctx, "ada"))
	c := st.Admin().Config()
	c.BlockPurged = true
	fixture.Must(t, st.Admin().SetConfig(c))
	refused("put", put("ada", longTold))
	_, err = st.Put(ctx, varve.Memory{Content: longTold})
	refused("without an id", err)
	b := new(varve.Batch)
	b.Put(varve.Memory{ID: "b", Content: longTold})
	refused("a batch", st.Apply(ctx, b))
	_, err = st.Assemblies().Put(ctx, varve.Assembly{ID: "g", Name: "fine"})
	fixture.Must(t, err)

	fixture.Must(t, put("ada", longTold, varve.ForcePurged()))
	fixture.Must(t, put("again", longTold))
	fixture.Must(t, put("short", "ok", varve.ForcePurged()))
	fixture.Must(t, put("short", "ok"))
	// What a document has it may keep, and its file may be edited.
	_, err = st.Admin().Purge(ctx, "again")
	fixture.Must(t, err)
	m, err := st.Get(ctx, "ada")
	fixture.Must(t, err)
	m.Metadata = map[string]any{"tags": []any{"a"}}
	_, err = st.Put(ctx, m)
	fixture.Must(t, err)
	fixture.Must(t, st.Close())

	// No file has a text, or an id, of what is purged.
	b2, err := os.ReadFile(filepath.Join(dir, "wal", "purged-texts"))
	fixture.Must(t, err)
	if bytes.Contains(b2, []byte("combination")) {
		t.Errorf("%s", b2)
	}
	info, err := os.Stat(filepath.Join(dir, "wal", "purged-texts"))
	fixture.Must(t, err)
	if info.Mode().Perm()&0o077 != 0 {
		t.Error(info.Mode())
	}
}

// A migration copies the records of purges; a restore has the ids and not the texts, and a clone by git
// nothing.
func TestPurgedElsewhere(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir, files := returning(t)
	backup, restored, moved := dir+"-backup", dir+"-restored", dir+"-moved"
	st := openLasting(t, dir)
	_, err := st.Backup(ctx, backup, varve.BackupOptions{})
	fixture.Must(t, err)
	fixture.Must(t, st.Close())
	fixture.Must(t, filepath.Walk(backup, func(name string, info os.FileInfo, err error) error {
		if err == nil && strings.Contains(name, "purged-texts") {
			t.Error("a backup has", name)
		}
		return err
	}))
	_, err = varve.Restore(ctx, backup, restored, &varve.RestoreOptions{Options: lasting()})
	fixture.Must(t, err)
	_, err = varve.Migrate(ctx, dir, moved, &varve.MigrateOptions{Switch: true})
	fixture.Must(t, err)
	for to, knows := range map[string]bool{restored: false, moved: true} {
		st := openLasting(t, to)
		remembers(t, st, "ada", "short")
		_, err := st.Put(ctx, varve.Memory{ID: "ada", Content: longTold}, varve.RefusePurged())
		if errors.Is(err, varve.ErrPurged) != knows {
			t.Errorf("%s: %v", to, err)
		}
		fixture.Must(t, st.Close())
	}
	clone := dir + "-clone"
	fixture.Must(t, os.MkdirAll(filepath.Join(clone, "memories"), 0o700))
	putBack(t, clone, "ada.json", files["ada.json"])
	fixture.Must(t, os.WriteFile(filepath.Join(clone, "config.json"), []byte(`{"varve":1}`), 0o600))
	if ids := held(t, openLasting(t, clone)); fmt.Sprint(ids) != "[ada]" {
		t.Error(ids)
	}
}

// Damaged lines of wal/purged-texts are reported, and the others apply.
func TestPurgedTextsDamaged(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, line := range []int{0, 1} {
		dir, _ := returning(t)
		name := filepath.Join(dir, "wal", "purged-texts")
		storetest.Rewrite(t, name, func(b []byte) []byte {
			lines := bytes.SplitAfter(b, []byte("\n"))
			lines[line][20] ^= 1
			return bytes.Join(lines, nil)
		})
		st := openLasting(t, dir)
		found := 0
		for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
			fixture.Must(t, err)
			if f.Kind == repair.PurgesDamaged {
				found++
			}
		}
		fixture.Must(t, st.Close())
		plan, err := varve.PlanRepair(ctx, dir, lasting(), varve.VerifyOptions{})
		fixture.Must(t, err)
		report, err := plan.Apply(ctx)
		fixture.Must(t, err)
		if found != 1 || len(report.Remaining) > 0 {
			t.Errorf("line %d: found %d, remaining %v", line, found, report.Remaining)
		}
		st = openLasting(t, dir)
		_, err = st.Put(ctx, varve.Memory{ID: "next", Content: longTold + "!"})
		fixture.Must(t, err)
		_, err = st.Admin().Purge(ctx, "next")
		fixture.Must(t, err)
		if _, err := st.Put(ctx, varve.Memory{ID: "n", Content: longTold + "!"}, varve.RefusePurged()); !errors.Is(err,
			varve.ErrPurged) {
			t.Errorf("line %d: %v", line, err)
		}
		fixture.Must(t, st.Close())
		toldSecrets("next").traces(t, vfs.OS(), dir)
	}
}

// A memory that has the text of a purged one keeps it: in an edit of its other members, and in a put,
// even if neither log nor archive have its version.
func TestPurgedTextOfAnother(t *testing.T) {
	t.Parallel()
	for _, archive := range []bool{true, false} {
		ctx, dir := t.Context(), filepath.Join(t.TempDir(), "s")
		st := openLasting(t, dir)
		c := st.Admin().Config()
		if c.BlockPurged = true; !archive {
			c.HistoryBytes = new(int64)
		}
		fixture.Must(t, st.Admin().SetConfig(c))
		for _, id := range []string{"ada", "bob", "eve"} {
			_, err := st.Put(ctx, varve.Memory{ID: id, Content: longTold})
			fixture.Must(t, err)
		}
		fixture.Must(t, st.Flush(ctx))
		_, err := st.Admin().Purge(ctx, "ada")
		fixture.Must(t, err)
		b, err := os.ReadFile(filepath.Join(dir, "memories", "bob.json"))
		fixture.Must(t, err)
		putBack(t, dir, "bob.json", bytes.Replace(b, []byte(`"metadata": {}`), []byte(`"metadata": {"n": 1}`), 1))
		if m, err := st.Get(ctx, "bob"); err != nil || m.Content != longTold || len(m.Metadata) != 1 {
			t.Errorf("archive %t, an edit: %v, %v", archive, m, err)
		}
		if _, err := st.Put(ctx, varve.Memory{ID: "eve", Content: longTold, QuickRecalScore: 0.5}); err != nil {
			t.Errorf("archive %t, a put: %v", archive, err)
		}
		for _, id := range []string{"ada", "new"} {
			if _, err := st.Put(ctx, varve.Memory{ID: id, Content: longTold}); !errors.Is(err, varve.ErrPurged) {
				t.Errorf("archive %t, %s: %v", archive, id, err)
			}
		}
		fixture.Must(t, st.Close())
	}
}
