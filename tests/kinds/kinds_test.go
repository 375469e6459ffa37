package kinds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/fswatch"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

func TestMain(m *testing.M) {
	if err := Register(); err != nil {
		panic(err)
	}
	storetest.Main(m, putting)
}

func opened(t *testing.T, dir string) *varve.Store {
	t.Helper()
	st, err := varve.Open(t.Context(), dir, &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

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

func notes(st *varve.Store) *engine.Kind {
	k, err := storetest.Inner(st).Engine.Kinds().Named(Notes.Letter)
	if err != nil {
		panic(err)
	}
	return k
}

// put stores a note as a package for notes would: by its document.
func put(ctx context.Context, st *varve.Store, id, text string) error {
	_, err := storetest.Inner(st).Committer.PutDocument(ctx, notes(st), id, []byte(text))
	return err
}

func remove(ctx context.Context, st *varve.Store, id string) error {
	return storetest.Inner(st).Committer.DeleteDocument(ctx, notes(st), id)
}

// none stands for the text of a note that does not exist.
const none = "(none)"

// text returns the text of a note, none if it does not exist.
func text(t *testing.T, st *varve.Store, id string) string {
	t.Helper()
	v, err := storetest.Inner(st).Engine.Find(t.Context(), notes(st), id, true)
	if errors.Is(err, varve.ErrNotFound) {
		return none
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(v.Doc)
}

func expect(t *testing.T, st *varve.Store, want map[string]string) {
	t.Helper()
	for id, w := range want {
		if has := text(t, st, id); has != w {
			t.Errorf("note %s is %q, want %q", id, has, w)
		}
	}
	eng, n, found := storetest.Inner(st).Engine, 0, 0
	for _, w := range want {
		if w != none {
			n++
		}
	}
	for _, err := range eng.IDs(t.Context(), notes(st), engine.Filters{}) {
		if err != nil {
			t.Fatal(err)
		}
		found++
	}
	if live := eng.State().Live(Notes.Letter); int(live) != n || found != n {
		t.Errorf("%d notes are counted, %d listed, want %d", live, found, n)
	}
}

// await waits until the notes have these texts.
func await(t *testing.T, st *varve.Store, want map[string]string) {
	t.Helper()
	for id, w := range want {
		for end := time.Now().Add(20 * time.Second); text(t, st, id) != w; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("note %s is %q, want %q", id, text(t, st, id), w)
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func clean(t *testing.T, st *varve.Store) {
	t.Helper()
	storetest.AllWell(t, st.Admin().Verify(t.Context(), varve.VerifyOptions{}))
}

// The ids of notes: one has the id of a memory, one is in folders, one in many, one is of a note without a text.
const (
	plain = "a"
	deep  = "b/c d/zebra.md"
	empty = "b/empty.md"
)

var long = strings.Repeat("a long name/", 30) + "ü@%.txt"

// filled makes a store with notes beside a memory and an assembly of the same id.
func filled(t *testing.T, dir string) *varve.Store {
	t.Helper()
	st := opened(t, dir)
	_, err := st.Put(t.Context(), varve.Memory{ID: "a", Content: "a memory"})
	must(t, err)
	_, err = st.Assemblies().Put(t.Context(), varve.Assembly{ID: "a", MemoryIDs: []string{"a"}})
	must(t, err)
	must(t, put(t.Context(), st, plain, "first"))
	must(t, put(t.Context(), st, deep, "the zebra sleeps"))
	must(t, put(t.Context(), st, long, "third"))
	must(t, put(t.Context(), st, empty, ""))
	return st
}

var all = map[string]string{plain: "first", deep: "the zebra sleeps", long: "third", empty: ""}

// TestPut: notes are put, replaced and deleted, before a flush and after it, by two handles.
func TestPut(t *testing.T) {
	dir := t.TempDir()
	st := filled(t, dir)
	expect(t, st, all)
	must(t, st.Flush(t.Context()))
	expect(t, st, all)
	b, err := os.ReadFile(filepath.Join(dir, Notes.File(plain)))
	if err != nil || string(b) != "first" {
		t.Errorf("the file has %q, %v", b, err)
	}
	other := opened(t, dir)
	must(t, put(t.Context(), other, plain, "second"))
	must(t, remove(t.Context(), other, deep))
	if err := remove(t.Context(), other, deep); !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("deleting what is not there: %v", err)
	}
	must(t, remove(t.Context(), other, empty))
	now := map[string]string{plain: "second", deep: none, long: "third", empty: none}
	expect(t, st, now)
	must(t, st.Flush(t.Context()))
	expect(t, other, now)
	if _, err := os.Stat(filepath.Join(dir, Notes.File(deep))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of a deleted note: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, Notes.Folder, "b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folders of a deleted note: %v", err)
	}
	must(t, put(t.Context(), st, deep, "again"))
	must(t, put(t.Context(), st, empty, ""))
	must(t, put(t.Context(), st, plain, ""))
	now[deep], now[empty], now[plain] = "again", "", ""
	must(t, st.Close())
	expect(t, other, now)
	clean(t, other)
	m, err := other.Get(t.Context(), "a")
	if err != nil || m.Content != "a memory" {
		t.Errorf("the memory of the same id: %+v, %v", m, err)
	}
}

func numbered(i int) string { return fmt.Sprintf("k%d/%d/n.md", i%3, i) }

// putting puts and deletes until it is killed, and flushes now and then.
func putting(ctx context.Context, _, dir string) error {
	st, err := varve.Open(ctx, dir, &varve.Options{NoBackground: true})
	for i := 0; err == nil; i++ {
		if err = put(ctx, st, numbered(i), fmt.Sprint("text ", i)); err == nil && i%7 == 0 {
			err = st.Flush(ctx)
		}
		if err == nil && i%5 == 4 {
			err = remove(ctx, st, numbered(i-2))
		}
		fmt.Println(i)
	}
	return err
}

// TestKilled: what was acknowledged before SIGKILL is there, and all files are right.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	for round := range storetest.Repeat(t, 3) {
		child, out := storetest.Start(t, "putting", dir)
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
			want := fmt.Sprint("text ", i)
			if has := text(t, st, numbered(i)); has != want && !(has == none && i%5 == 2) {
				t.Errorf("note %s is %q", numbered(i), has)
			}
		}
		must(t, st.Flush(t.Context()))
		clean(t, st)
		must(t, st.Close())
	}
}

// TestRebuild: the index is rebuilt from the files, and from the log.
func TestRebuild(t *testing.T) {
	dir := t.TempDir()
	st := filled(t, dir)
	must(t, st.Admin().RebuildIndex(t.Context()))
	expect(t, st, all)
	clean(t, st)
	must(t, st.Close())
	for _, pattern := range []string{"memory_index*", "backups/*", "checkpoint", "wal"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		must(t, err)
		for _, name := range names {
			must(t, os.RemoveAll(name))
		}
		st = opened(t, dir)
		expect(t, st, all)
		must(t, st.Flush(t.Context()))
		clean(t, st)
		must(t, st.Close())
	}
}

// TestEdit: a user's edit of the file of a note, and a new file, are adopted; a file that a user deletes
// is noticed.
func TestEdit(t *testing.T) {
	dir := t.TempDir()
	st := filled(t, dir)
	must(t, st.Flush(t.Context()))
	name := filepath.Join(dir, Notes.File(plain))
	b, err := os.ReadFile(name)
	must(t, err)
	must(t, os.WriteFile(name, bytes.Replace(b, []byte("first"), []byte("edited by hand"), 1), 0o600))
	now := map[string]string{plain: "edited by hand", deep: all[deep], long: all[long], empty: ""}
	expect(t, st, now)
	must(t, st.Flush(t.Context()))
	clean(t, st)
	must(t, os.WriteFile(name, nil, 0o600))
	expect(t, st, now) // an editor may be about to write it
	old := time.Now().Add(-time.Minute)
	must(t, os.Chtimes(name, old, old))
	now[plain] = ""
	expect(t, st, now)
	must(t, st.Flush(t.Context()))
	clean(t, st)
}

// TestWatched: if a process watches, a user's changes of files and folders are adopted: an edit, a new
// file in new folders, a file and a folder that are removed, and a folder that is renamed.
func TestWatched(t *testing.T) {
	dir := t.TempDir()
	st := watched(t, dir)
	for i := range 8 { // more than half of them stay
		must(t, put(t.Context(), st, fmt.Sprintf("stay/%d.md", i), "stays"))
	}
	must(t, put(t.Context(), st, "x/y/edit.md", "before"))
	must(t, put(t.Context(), st, "x/gone.md", "before"))
	must(t, put(t.Context(), st, "all/gone.md", "before"))
	must(t, put(t.Context(), st, "old/name.md", "moved"))
	must(t, st.Flush(t.Context()))
	await := func(id, want string) {
		t.Helper()
		await(t, st, map[string]string{id: want})
	}
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(Notes.File(name))) }
	must(t, os.WriteFile(at("x/y/edit.md"), []byte("after"), 0o600))
	must(t, os.MkdirAll(at("new/folder/in"), 0o700))
	must(t, os.WriteFile(at("new/folder/in/it.txt"), []byte("found"), 0o600))
	await("x/y/edit.md", "after")
	await("new/folder/in/it.txt", "found")
	must(t, os.WriteFile(at("new/folder/later"), []byte("seen"), 0o600))
	await("new/folder/later", "seen")
	must(t, os.Remove(at("x/gone.md")))
	must(t, os.RemoveAll(at("all")))
	await("x/gone.md", none)
	await("all/gone.md", none)
	must(t, os.Rename(at("old"), at("other")))
	await("other/name.md", "moved")
	await("old/name.md", none)
	must(t, st.Flush(t.Context()))
	clean(t, st)
}

// TestVerify: verify names the faults in the file of a note, and repair fixes them.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	st := filled(t, dir)
	must(t, st.Flush(t.Context()))
	must(t, st.Close())
	name := filepath.Join(dir, Notes.File(deep))
	info, err := os.Stat(name)
	must(t, err)
	b, err := os.ReadFile(name)
	must(t, err)
	b[len(b)/2] ^= 1
	must(t, os.WriteFile(name, b, 0o600))
	must(t, os.Chtimes(name, info.ModTime(), info.ModTime()))
	found := 0
	st = opened(t, dir)
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		must(t, err)
		if f.Path == Notes.File(deep) {
			found++
		}
	}
	if found == 0 {
		t.Error("a flipped bit was not found")
	}
	must(t, st.Close())
	plan, err := varve.PlanRepair(t.Context(), dir, nil, varve.VerifyOptions{})
	must(t, err)
	_, err = plan.Apply(t.Context())
	must(t, err)
	st = opened(t, dir)
	expect(t, st, all)
	clean(t, st)
}

// TestPurge: nothing of a purged note is left in the store; the others, and the memory and the
// assembly of the same id, stay.
func TestPurge(t *testing.T) {
	dir := t.TempDir()
	st := filled(t, dir)
	must(t, st.Flush(t.Context()))
	must(t, put(t.Context(), st, deep, "the zebra wakes"))
	must(t, st.Flush(t.Context()))
	_, err := storetest.Inner(st).Purger.Purge(t.Context(), notes(st), []string{deep})
	must(t, err)
	expect(t, st, map[string]string{plain: "first", deep: none, long: "third", empty: ""})
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte("zebra")) {
			t.Errorf("%s has the text", path)
		}
		return err
	}))
	if _, err := st.Get(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	clean(t, st)
}

// TestBackup: a backup has the notes, passes its check, and is restored, also as of a moment.
func TestBackup(t *testing.T) {
	dir, to, back := t.TempDir(), filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "back")
	st := filled(t, dir)
	info, err := st.Backup(t.Context(), to, varve.BackupOptions{})
	must(t, err)
	if info.Others[Notes.Folder] != 4 || info.Memories != 1 || info.Assemblies != 1 {
		t.Errorf("the backup has %d memories, %d assemblies, others %v", info.Memories, info.Assemblies, info.Others)
	}
	_, err = varve.CheckBackup(t.Context(), to)
	must(t, err)
	must(t, put(t.Context(), st, "d", "after the backup"))
	must(t, st.Close())
	report, err := varve.Restore(t.Context(), to, back, &varve.RestoreOptions{Log: dir})
	must(t, err)
	if report.Others[Notes.Folder] != 5 {
		t.Errorf("restored: %+v", report)
	}
	st = opened(t, back)
	expect(t, st, map[string]string{plain: "first", deep: all[deep], long: "third", empty: "", "d": "after the backup"})
	clean(t, st)
}

// TestMigrate: a store is moved with its notes.
func TestMigrate(t *testing.T) {
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "new")
	st := filled(t, dir)
	must(t, st.Close())
	_, err := varve.Migrate(t.Context(), dir, to, &varve.MigrateOptions{Switch: true})
	must(t, err)
	st = opened(t, to)
	expect(t, st, all)
	clean(t, st)
}

// TestPowerCut: acknowledged writes survive a loss of power at any moment, with any part of the unsynced
// data on the disk, and all files are right afterwards.
func TestPowerCut(t *testing.T) {
	clock := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run := func(disk *crash.Disk, dieAt int, job func(st *varve.Store) error) (ops int, died bool) {
		process := disk.Process("p")
		disk.SetClock(func() time.Time { return clock })
		fsys := wrap.New(process, func(_ *wrap.Op, call func() error) error {
			clock = clock.Add(10 * time.Microsecond)
			if ops++; ops == dieAt {
				disk.Kill(process)
				runtime.Goexit()
			}
			return call()
		})
		options := storetest.In(&varve.Options{Clock: func() time.Time { return clock }, SegmentSize: 64 << 10,
			NoBackground: true},
			storetest.Environment{System: vfs.System{FS: fsys, Inline: true, Rand: rand.NewChaCha8([32]byte{byte(dieAt)}),
				Sleep: func(ctx context.Context, d time.Duration) error {
					clock = clock.Add(d)
					return ctx.Err()
				}}})
		died = true
		done := make(chan struct{})
		go func() {
			defer close(done)
			st, err := varve.Open(t.Context(), "/store", options)
			if err == nil {
				err = errors.Join(job(st), st.Close())
			}
			if err != nil {
				t.Error(err)
			}
			died = false
		}()
		<-done
		return ops, died
	}
	patterns := crash.Patterns()
	died := true
	for dieAt, n := 1, 0; died && !t.Failed(); dieAt, n = dieAt+29, n+1 {
		disk := crash.New()
		acknowledged, begun := map[string]string{}, map[string]string{}
		change := func(st *varve.Store, id, text string) (err error) {
			if _, ok := acknowledged[id]; !ok {
				acknowledged[id] = none
			}
			begun[id] = text
			if text == none {
				err = remove(t.Context(), st, id)
			} else {
				err = put(t.Context(), st, id, text)
			}
			if err == nil {
				acknowledged[id] = text
			}
			return err
		}
		_, died = run(disk, dieAt, func(st *varve.Store) error {
			for i, c := range [][2]string{
				{"a/x.md", "first"}, {deep, "second"}, {long, "third"}, {"a/x.md", "first again"}, {deep, none}, {"b/e", "fourth"},
				{deep, "back"}, {"b/e", none}, {"b/e", ""}, {"a/x.md", none}, {"a", "a file now"}, {deep, ""}, {"a", none},
				{"a/y/z.md", "a folder again"},
			} {
				if err := change(st, c[0], c[1]); err != nil {
					return err
				}
				if i%3 == 2 {
					if err := st.Flush(t.Context()); err != nil {
						return err
					}
				}
			}
			return nil
		})
		pattern := patterns[n%len(patterns)]
		clock = clock.Add(time.Second)
		run(disk.Crash(pattern, rand.New(rand.NewPCG(uint64(dieAt), uint64(pattern)))), 0, func(st *varve.Store) error {
			for id, want := range begun {
				if has := text(t, st, id); has != want && has != acknowledged[id] {
					t.Errorf("cut at operation %d, %s: note %s is %q, want %q or %q", dieAt, pattern, id, has, want, acknowledged[id])
				}
			}
			if err := st.Flush(t.Context()); err != nil {
				return err
			}
			clean(t, st)
			return nil
		})
	}
}

// TestPast: history and watch have the versions of a note; verify counts it.
func TestPast(t *testing.T) {
	st := filled(t, t.TempDir())
	must(t, put(t.Context(), st, plain, "second"))
	must(t, remove(t.Context(), st, plain))
	var seen []string
	for c, err := range st.Admin().Changes(t.Context(), 0) {
		must(t, err)
		seen = append(seen, fmt.Sprint(c.Kind, " ", c.ID, " ", c.Deleted))
		if c.Kind == Notes.Noun && (c.Memory.ID != "" || c.Assembly.ID != "") {
			t.Errorf("the change of a note has a memory or an assembly: %+v", c)
		}
		if has := string(c.Document); c.Kind == Notes.Noun && !c.Deleted && has != all[c.ID] && has != "second" {
			t.Errorf("the change of note %s has the document %q", c.ID, has)
		}
	}
	want := []string{"memory a false", "assembly a false", "paper a false", "paper " + deep + " false",
		"paper " + long + " false", "paper " + empty + " false", "paper a false", "paper a true"}
	if !slices.Equal(seen, want) {
		t.Errorf("seen %q, want %q", seen, want)
	}
	var versions []string
	history.New(storetest.Inner(st).Engine).Each(t.Context(), notes(st), plain, func(v history.Version, err error) bool {
		must(t, err)
		if v.Deleted {
			versions = append(versions, "")
		} else {
			versions = append(versions, string(v.Document))
		}
		return true
	})
	slices.Sort(versions)
	if !slices.Equal(versions, []string{"", "first", "second"}) {
		t.Errorf("the history is %q", versions)
	}
	must(t, st.Flush(t.Context()))
	var sum varve.VerifySummary
	storetest.AllWell(t, st.Admin().Verify(t.Context(), varve.VerifyOptions{Summary: &sum}))
	if sum.Memories != 1 || sum.Assemblies != 1 || sum.Others[Notes.Folder] != 3 {
		t.Errorf("compared %d memories, %d assemblies, others %v", sum.Memories, sum.Assemblies, sum.Others)
	}
}

// TestSalvage: a note that neither index nor log knows is restored from its file.
func TestSalvage(t *testing.T) {
	dir := t.TempDir()
	st := filled(t, dir)
	must(t, st.Flush(t.Context()))
	must(t, st.Close())
	const broken = `{"note_id": "b", "text": "the zebra sle`
	must(t, os.WriteFile(filepath.Join(dir, Notes.File(deep)), []byte(broken), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, Notes.File("empty.md")), nil, 0o600))
	for _, pattern := range []string{"memory_index*", "backups/*", "checkpoint", "wal"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		must(t, err)
		for _, name := range names {
			must(t, os.RemoveAll(name))
		}
	}
	plan, err := varve.PlanRepair(t.Context(), dir, nil, varve.VerifyOptions{})
	must(t, err)
	_, err = plan.Apply(t.Context())
	must(t, err)
	st = opened(t, dir)
	expect(t, st, map[string]string{plain: "first", deep: broken, long: "third", empty: "", "empty.md": ""})
}

// TestBeside: a note cannot be in the place of another's folder, nor at a path that differs only in case
// or in how Unicode is written. A refusal changes nothing.
func TestBeside(t *testing.T) {
	dir := t.TempDir()
	st := filled(t, dir)
	must(t, put(t.Context(), st, "k/caf\u00e9.md", "composed"))
	for _, flushed := range []bool{false, true} {
		for id, with := range map[string]string{"a/b": "a", "a/b/c": "a", "b": "b/", "b/c d": deep, "B/new.md": "b/",
			"A": "a", "b/C D/x": deep, "b/EMPTY.md": empty, "k/cafe\u0301.md": "caf\u00e9", "B": "b/"} {
			err := put(t.Context(), st, id, "refused")
			if !errors.Is(err, varve.ErrInvalid) || !strings.Contains(err.Error(), with) {
				t.Errorf("flushed %v: %s: %v", flushed, id, err)
			}
		}
		for _, id := range []string{"", "/a", "x/", "x//y", "x/../y", ".x", "x/.y", `x\y`, "x\ny",
			strings.Repeat("d/", 60) + "x", "x/" + strings.Repeat("n", 256), strings.Repeat("long/", 250)} {
			err := put(t.Context(), st, id, "refused")
			if !errors.Is(err, varve.ErrInvalid) && !errors.Is(err, varve.ErrTooLarge) {
				t.Errorf("flushed %v: %q: %v", flushed, id, err)
			}
		}
		must(t, st.Flush(t.Context()))
	}
	must(t, put(t.Context(), st, "b/other.md", "beside"))
	must(t, put(t.Context(), st, strings.Repeat("d/", 59)+"x", "the deepest"))
	// A file becomes a folder, and a folder a file, in one round.
	for range 2 {
		must(t, remove(t.Context(), st, "a"))
		must(t, put(t.Context(), st, "a/b/c", "below"))
		must(t, st.Flush(t.Context()))
		clean(t, st)
		must(t, remove(t.Context(), st, "a/b/c"))
		must(t, put(t.Context(), st, "a", "first"))
		must(t, st.Flush(t.Context()))
		clean(t, st)
	}
	now := map[string]string{"k/caf\u00e9.md": "composed", "b/other.md": "beside",
		strings.Repeat("d/", 59) + "x": "the deepest"}
	for id, text := range all {
		now[id] = text
	}
	expect(t, st, now)
}

// TestBesideTogether: if two processes at once create a file and a folder of one name, or names that
// differ in case, one is refused.
func TestBesideTogether(t *testing.T) {
	dir := t.TempDir()
	stores := []*varve.Store{opened(t, dir), opened(t, dir)}
	for i := range 60 {
		ids := []string{fmt.Sprintf("x%d", i), fmt.Sprintf("x%d/in/y", i), fmt.Sprintf("X%d", i), fmt.Sprintf("X%d/z", i)}
		fails := make([]error, len(ids))
		var wg sync.WaitGroup
		for j, id := range ids {
			wg.Go(func() { fails[j] = put(t.Context(), stores[j%2], id, "text") })
		}
		wg.Wait()
		done := 0
		for j, err := range fails {
			if err == nil {
				done++
			} else if !errors.Is(err, varve.ErrInvalid) {
				t.Errorf("%s: %v", ids[j], err)
			}
		}
		if done != 1 {
			t.Fatalf("of %q %d were created: %v", ids, done, fails)
		}
	}
	must(t, stores[0].Flush(t.Context()))
	clean(t, stores[1])
}

// TestForeign: files in the folders that are not notes are named by verify and left alone, also by a
// repair unless they have the path of a note, and no link is followed.
func TestForeign(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	st := filled(t, dir)
	must(t, st.Flush(t.Context()))
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(Notes.File(name))) }
	must(t, os.WriteFile(filepath.Join(out, "secret.md"), []byte("outside"), 0o600))
	foreign := []string{".hidden", "b/.dot/f.md", "b/draft.md~", strings.Repeat("e/", 59) + "deep/er/x", "A"}
	if runtime.GOOS != "windows" {
		must(t, os.Symlink(out, at("b/link")))
		must(t, os.Symlink(filepath.Join(out, "secret.md"), at("b/link.md")))
		foreign = append(foreign, "b/link", "b/link.md")
	}
	for _, name := range foreign[:5] {
		must(t, os.MkdirAll(filepath.Dir(at(name)), 0o700))
		if _, err := os.Stat(at(name)); err == nil { // the file system ignores case
			foreign = slices.DeleteFunc(foreign, func(n string) bool { return n == name })
			continue
		}
		must(t, os.WriteFile(at(name), []byte("not a note"), 0o600))
	}
	must(t, put(t.Context(), st, "b/link/x", "in the place of the link"))
	must(t, st.Admin().RebuildIndex(t.Context()))
	must(t, st.Close())
	st = opened(t, dir)
	named := map[string]bool{}
	for f, err := range st.Admin().Verify(t.Context(), varve.VerifyOptions{}) {
		must(t, err)
		named[f.Path] = true
	}
	for _, name := range foreign {
		if name == "b/link" {
			continue // set aside, since a note needed the place
		}
		if !named[Notes.File(name)] {
			t.Errorf("%s is not named: %v", name, named)
		}
		if _, err := os.Lstat(at(name)); err != nil {
			t.Error(err)
		}
	}
	if names, err := os.ReadDir(out); err != nil || len(names) != 1 {
		t.Errorf("behind the link: %v, %v", names, err)
	}
	must(t, st.Close())
	plan, err := varve.PlanRepair(t.Context(), dir, nil, varve.VerifyOptions{})
	must(t, err)
	_, err = plan.Apply(t.Context())
	must(t, err)
	for _, name := range foreign { // a repair sets aside files with the path of a note, and leaves others alone
		_, err := os.Lstat(at(name))
		if aside := name == "A" || strings.HasPrefix(name, "b/link.md"); aside != (err != nil) && name != "b/link" {
			t.Errorf("%s after a repair: %v", name, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(out, "secret.md")); err != nil || string(b) != "outside" {
		t.Errorf("behind the link: %q, %v", b, err)
	}
	st = opened(t, dir)
	now := map[string]string{"b/link/x": "in the place of the link"}
	for id, text := range all {
		now[id] = text
	}
	expect(t, st, now)
}

// TestRenamed: a file that is renamed by hand is deleted, and created under the new name.
func TestRenamed(t *testing.T) {
	dir := t.TempDir()
	st := watched(t, dir)
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(Notes.File(name))) }
	must(t, put(t.Context(), st, "x/one.md", "the text"))
	must(t, put(t.Context(), st, "x/two.md", "another"))
	must(t, st.Flush(t.Context()))
	must(t, os.Rename(at("x/one.md"), at("one.md")))
	await(t, st, map[string]string{"one.md": "the text", "x/one.md": none, "x/two.md": "another"})
	// All files at once, by the name of their folder.
	must(t, os.Rename(at("x"), at("y")))
	await(t, st, map[string]string{"y/two.md": "another", "x/two.md": none})
	// A folder in the place of a file.
	must(t, os.Remove(at("one.md")))
	must(t, os.Mkdir(at("one.md"), 0o700))
	must(t, os.WriteFile(at("one.md/in.md"), []byte("below"), 0o600))
	await(t, st, map[string]string{"one.md": none, "one.md/in.md": "below"})
	must(t, st.Flush(t.Context()))
	clean(t, st)
	var versions []string
	history.New(storetest.Inner(st).Engine).Each(t.Context(), notes(st), "x/one.md",
		func(v history.Version, err error) bool {
			must(t, err)
			versions = append(versions, fmt.Sprint(v.Deleted, " ", string(v.Document)))
			return true
		})
	slices.Sort(versions)
	if !slices.Equal(versions, []string{"false the text", "true "}) {
		t.Errorf("the history is %q", versions)
	}
}

// TestPurgeAside: a purge of a note removes its files that were set aside, under its path or without
// one, and nothing of another note.
func TestPurgeAside(t *testing.T) {
	dir := t.TempDir()
	st := filled(t, dir)
	must(t, put(t.Context(), st, "zebra.md", "of the name only"))
	must(t, st.Flush(t.Context()))
	aside := func(id, text string) {
		t.Helper()
		must(t, put(t.Context(), st, id, "newer"))
		must(t, os.WriteFile(filepath.Join(dir, Notes.File(id)), []byte(text), 0o600))
		must(t, st.Flush(t.Context()))
	}
	aside(deep, "an edit of the zebra that is aside")
	aside("zebra.md", "an edit that stays")
	lost := filepath.Join(dir, "quarantine", "0123456789abcdef-7")
	must(t, os.WriteFile(lost, []byte("the zebra sleeps"), 0o600))
	must(t, os.WriteFile(lost+".note.json", []byte(`{"why":"left in tmp/","from":"tmp/0123456789abcdef/0/7"}`), 0o600))
	texts := func() (list []string) {
		names, err := os.ReadDir(filepath.Join(dir, "quarantine"))
		must(t, err)
		for _, n := range names {
			b, err := os.ReadFile(filepath.Join(dir, "quarantine", n.Name()))
			if err == nil && !strings.HasSuffix(n.Name(), ".json") {
				list = append(list, string(b))
			}
		}
		slices.Sort(list)
		return list
	}
	if got := texts(); len(got) != 3 {
		t.Fatalf("set aside: %q", got)
	}
	_, err := storetest.Inner(st).Purger.Purge(t.Context(), notes(st), []string{deep})
	must(t, err)
	if got := texts(); !slices.Equal(got, []string{"an edit that stays"}) {
		t.Errorf("left: %q", got)
	}
}

// TestUndo: a run that replaced, deleted and created notes is undone to the exact bytes, even if a note
// that it created is in the way of an earlier folder, before a flush and after it, and the undo is
// undone.
func TestUndo(t *testing.T) {
	dir := t.TempDir()
	st := filled(t, dir)
	run := varve.WithWriter(t.Context(), varve.Writer{Program: "test", Session: "run"})
	must(t, st.Flush(t.Context()))
	for round, flush := range []bool{false, true} {
		must(t, put(run, st, plain, "by the run"))
		must(t, remove(run, st, deep))
		must(t, remove(run, st, empty))
		folder, _, _ := strings.Cut(deep, "/")
		if flush {
			must(t, st.Flush(t.Context()))
		}
		must(t, put(run, st, folder, "a note in the place of the folder"))
		must(t, put(run, st, "made/by/run.md", "new"))
		if flush {
			must(t, st.Flush(t.Context()))
		}
		now := map[string]string{plain: "by the run", deep: none, folder: "a note in the place of the folder", long: "third",
			empty: none, "made/by/run.md": "new"}
		expect(t, st, now)
		p, err := st.Undo(t.Context(), varve.UndoOptions{Run: "run"})
		if err != nil || p.Done != 5 {
			t.Fatalf("round %d: %+v, %v", round, p, err)
		}
		was := map[string]string{folder: none, "made/by/run.md": none}
		for id, content := range all {
			was[id] = content
		}
		expect(t, st, was)
		if flush {
			must(t, st.Flush(t.Context()))
			b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(Notes.File(deep))))
			if err != nil || string(b) != all[deep] {
				t.Errorf("round %d: the file has %q, %v", round, b, err)
			}
		}
		clean(t, st)
		if p, err = st.Undo(t.Context(), varve.UndoOptions{Position: p.Parts[0]}); err != nil || p.Done != 5 {
			t.Fatalf("round %d, the undo of the undo: %+v, %v", round, p, err)
		}
		expect(t, st, now)
		clean(t, st)
		if _, err = st.Undo(t.Context(), varve.UndoOptions{Position: p.Parts[0]}); err != nil {
			t.Fatal(err)
		}
		expect(t, st, was)
		clean(t, st)
	}
}
