package notes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// leftOut makes files that are no notes, of each reason, and returns them as LeftOut does.
func leftOut(t *testing.T, dir string) []varve.LeftOut {
	t.Helper()
	in := func(name string) string { return filepath.Join(dir, "notes", "vault", filepath.FromSlash(name)) }
	save(t, in(".obsidian/app.json"), "{}")
	save(t, in("sub/.a.md.swp"), "swap")
	save(t, in("a.md~"), "backup")
	save(t, in("b\xff.md"), "no UTF-8")
	save(t, in("large.bin"), "")
	must(t, os.Truncate(in("large.bin"), note.MostBytes+1))
	must(t, os.Symlink("a.md", in("link.md")))
	must(t, os.Symlink(t.TempDir(), in("sub/folder")))
	must(t, os.Symlink("nowhere", in("dangling")))
	return []varve.LeftOut{
		{Path: "notes/vault/.obsidian/app.json", Why: varve.LeftOutHidden},
		{Path: "notes/vault/a.md~", Why: varve.LeftOutIgnored},
		{Path: "notes/vault/b\xff.md", Why: varve.LeftOutName},
		{Path: "notes/vault/dangling", Why: varve.LeftOutLink},
		{Path: "notes/vault/large.bin", Why: varve.LeftOutLarge},
		{Path: "notes/vault/link.md", Why: varve.LeftOutLink},
		{Path: "notes/vault/sub/.a.md.swp", Why: varve.LeftOutHidden},
		{Path: "notes/vault/sub/folder", Why: varve.LeftOutLink},
	}
}

// TestLeftOut: what in the folder of notes is no note belongs to the user: links, hidden files, files over the limit
// and those with names that no note can have. Nothing is wrong with them, LeftOut names them, and no process reports
// them while it watches or opens the store.
func TestLeftOut(t *testing.T) {
	dir := t.TempDir()
	st := watched(t, dir)
	write(t, st, "vault/a.md", "one")
	must(t, st.Flush(t.Context()))
	want := leftOut(t, dir)
	save(t, at(dir, "vault/last.md"), "adopted last")
	await(t, st, "vault/last.md", "adopted last")
	for range 2 {
		var has []varve.LeftOut
		for l, err := range st.Notes().LeftOut(t.Context()) {
			must(t, err)
			has = append(has, l)
		}
		if !slices.Equal(has, want) {
			t.Errorf("%q", has)
		}
		if h := st.Health(t.Context()); !h.OK || h.Notes.Count != 2 {
			t.Errorf("%+v", h)
		}
		for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
			t.Errorf("%+v, %v", f, err)
		}
		for e, err := range st.Admin().RefusedEdits(t.Context()) {
			t.Errorf("%+v, %v", e, err)
		}
		expect(t, st, map[string]string{"vault/a.md": "one", "vault/last.md": "adopted last"})
		must(t, st.Flush(t.Context()))
		must(t, st.Close())
		st = opened(t, dir)
		if d := st.Admin().OpenReport().Drift; d != nil && d.Count > 0 {
			t.Errorf("%+v", d)
		}
	}
	for _, l := range want {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(l.Path))); err != nil {
			t.Error(err)
		}
	}
}

// TestLeftOutOnce verifies that LeftOut looks for another store once in each folder, and not once for each file.
func TestLeftOutOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var looks atomic.Int64
	fsys := wrap.New(vfs.OS(), func(op *wrap.Op, call func() error) error {
		if op.Kind == wrap.Stat && strings.HasSuffix(filepath.ToSlash(op.Path), "/wal/open.lock") &&
			strings.Contains(filepath.ToSlash(op.Path), "/notes/") {
			looks.Add(1)
		}
		return call()
	})
	st := fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{FS: fsys}}))
	write(t, st, "a/b/note.md", "text")
	must(t, st.Flush(t.Context()))
	const n = 50
	for i := range n {
		save(t, at(dir, fmt.Sprintf("a/b/%d.md~", i)), "backup")
	}
	looks.Store(0)
	found := 0
	for l, err := range st.Notes().LeftOut(t.Context()) {
		must(t, err)
		if l.Why == varve.LeftOutIgnored {
			found++
		}
	}
	if found != n || looks.Load() > 2 {
		t.Errorf("%d files, want %d; looked for a store %d times in 2 folders", found, n, looks.Load())
	}
}

// TestGrown: a note whose file becomes larger than a note may be, or is replaced by a link, is not read, set aside or
// deleted: the version before is served, and Health says that the file cannot be taken over.
func TestGrown(t *testing.T) {
	for _, what := range []string{"large", "link"} {
		t.Run(what, func(t *testing.T) { testGrown(t, what == "link") })
	}
}

func testGrown(t *testing.T, link bool) {
	dir := t.TempDir()
	st := opened(t, dir)
	write(t, st, "a.md", "one")
	must(t, st.Flush(t.Context()))
	if link {
		must(t, os.Remove(at(dir, "a.md")))
		must(t, os.Symlink("elsewhere", at(dir, "a.md")))
	} else {
		must(t, os.Truncate(at(dir, "a.md"), note.MostBytes+1))
	}
	for range 2 {
		expect(t, st, map[string]string{"a.md": "one"})
		if h := st.Health(t.Context()); h.OK || !strings.Contains(errors.Join(h.Problems...).Error(), "a.md") {
			t.Errorf("%+v", h.Problems)
		}
		must(t, st.Flush(t.Context()))
		must(t, st.Close())
		st = opened(t, dir)
	}
	info, err := os.Lstat(at(dir, "a.md"))
	if err != nil || link != (info.Mode()&os.ModeSymlink != 0) || !link && info.Size() != note.MostBytes+1 {
		t.Errorf("%+v, %v", info, err)
	}
	if link {
		must(t, os.Remove(at(dir, "a.md")))
	}
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		t.Logf("%+v, %v", f, err)
	}
	past := time.Now().Add(-time.Minute)
	save(t, at(dir, "a.md"), "short again")
	must(t, os.Chtimes(at(dir, "a.md"), past, past))
	expect(t, st, map[string]string{"a.md": "short again"})
	clean(t, st)
}

// TestZeros: a note may be empty, or consist of NUL bytes only, from a program and by hand, and is the same after a
// rebuild of the index, in a backup, and in a store that is restored from it.
func TestZeros(t *testing.T) {
	dir := t.TempDir()
	st := opened(t, dir)
	all := map[string]string{"none": "", "one": "\x00", "mib": strings.Repeat("\x00", 1<<20),
		"mibs": strings.Repeat("\x00", 3<<20+1), "limit": strings.Repeat("\x00", note.MostBytes),
		"text": "text" + strings.Repeat("\x00", 4<<20) + "text"}
	for path, s := range all {
		write(t, st, path, s)
	}
	must(t, st.Flush(t.Context()))
	past := time.Now().Add(-time.Minute)
	for path, s := range map[string]string{"by hand": strings.Repeat("\x00", 2<<20), "empty by hand": "",
		"one": strings.Repeat("\x00", 5<<20)} {
		save(t, at(dir, path), s)
		must(t, os.Chtimes(at(dir, path), past, past))
		all[path] = s
	}
	_, err := st.Notes().AdoptFiles(t.Context(), "")
	must(t, err)
	expect(t, st, all)
	clean(t, st)
	must(t, st.Admin().RebuildIndex(t.Context()))
	expect(t, st, all)
	backup, restored := filepath.Join(t.TempDir(), "b"), filepath.Join(t.TempDir(), "r")
	_, err = st.Backup(t.Context(), backup, varve.BackupOptions{})
	must(t, err)
	report, err := varve.Restore(t.Context(), backup, restored, nil)
	must(t, err)
	if len(report.Damage) > 0 {
		t.Errorf("%+v", report)
	}
	other := opened(t, restored)
	expect(t, other, all)
	clean(t, other)
}
