package purges

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/vector"
)

// A purged memory is in no version of an assembly either: that would have its id, and a composite
// computed from its embedding.
func TestPurgeMember(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	clock := fixture.ClockAt(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC))
	st := fixture.Open(t, dir, &varve.Options{SegmentSize: 64 << 10, NoBackground: true, Clock: clock.Now})
	const secret = "the-secret-one"
	fixture.Put(t, st, secret, 3, 4)
	fixture.Put(t, st, "other", 1, 0)
	fixture.Group(t, st, "alone", secret)
	fixture.Group(t, st, "both", "other", secret)
	fixture.Group(t, st, "neither", "other")
	for i := range 12 { // into archive and index backups
		if _, err := st.Put(ctx,
			varve.Memory{ID: fmt.Sprint("f", i), Content: strings.Repeat(fmt.Sprint(i, " "), 8000)}); err != nil {
			t.Fatal(err)
		}
		clock.Add(time.Hour)
		if err := st.Admin().Compact(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"alone", "neither"} {
		if _, err := st.Assemblies().Activate(ctx, id, 0.5); err != nil {
			t.Fatal(err)
		}
	}
	versions := func(id string) (members [][]string) {
		for v, err := range st.Assemblies().History(ctx, id) {
			if err != nil {
				t.Fatal(err)
			}
			a, err := v.DecodeAssembly()
			if err != nil {
				t.Fatal(err)
			}
			members = append(members, a.MemoryIDs)
		}
		return members
	}
	if v := versions("alone"); len(v) != 2 {
		t.Fatalf("before: %q", v)
	}
	r, err := st.Admin().Purge(ctx, secret)
	if err != nil || !slices.Equal(r.Deleted, []string{secret}) || r.Backups == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if v := versions("alone"); len(v) != 1 || len(v[0]) != 0 {
		t.Errorf("alone: %q", v)
	}
	if v := versions("both"); len(v) != 1 || !slices.Equal(v[0], []string{"other"}) {
		t.Errorf("both: %q", v)
	}
	if v := versions("neither"); len(v) != 2 {
		t.Errorf("the history of an assembly that never had it: %q", v)
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s has it", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil || f.Severity != varve.SeverityInfo {
			t.Errorf("%s %v", f.String(), err)
		}
	}
}

// having returns the files of a store that contain one of some byte sequences.
func having(t *testing.T, dir string, parts ...[]byte) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, part := range parts {
			if bytes.Contains(b, part) || strings.Contains(path, string(part)) {
				names = append(names, path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A purged assembly leaves nothing: not its versions, its composite, its lines, nor its files that were
// set aside. Its members stay, and a memory of the same id stays with all its data.
func TestPurgeAssembly(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	clock := fixture.ClockAt(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC))
	o := storetest.In(&varve.Options{SegmentSize: 64 << 10, NoBackground: true, Clock: clock.Now},
		storetest.Environment{System: vfs.System{SmallVectors: 1}})
	st := fixture.Open(t, dir, o)
	const secret, says = "the-secret-group", "those who know of the thing that is not to be told"
	fixture.Put(t, st, "a", 3, 4)
	fixture.Put(t, st, "b", 1, 0)
	write := func(name string) {
		t.Helper()
		if _, err := st.Assemblies().Put(ctx,
			varve.Assembly{ID: secret, Name: name, Description: says, MemoryIDs: []string{"a", "b"}}); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	fixture.Group(t, st, "other", "a")
	for i := range 12 { // into archive and index backups
		if _, err := st.Put(ctx,
			varve.Memory{ID: fmt.Sprint("f", i), Content: strings.Repeat(fmt.Sprint(i, " "), 8000)}); err != nil {
			t.Fatal(err)
		}
		clock.Add(time.Hour)
		if err := st.Admin().Compact(ctx); err != nil {
			t.Fatal(err)
		}
	}
	// A damaged file of it goes to quarantine when it is written again, and a displaced one is in the
	// pool.
	path := filepath.Join(dir, "assemblies", jsondoc.FileName(secret))
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, b[:len(b)*3/4], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	write("two")
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	write("three")
	if err := st.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	a, err := st.Assemblies().Get(ctx, secret)
	if err != nil {
		t.Fatal(err)
	}
	row := vector.IP.Row(nil, a.CompositeEmbedding)
	if names := strings.Join(having(t, dir, []byte(secret), row), " "); !strings.Contains(names, "quarantine") ||
		!strings.Contains(names, "backups/") ||
		!strings.Contains(names, "memory_vectors") {
		t.Fatalf("the case is too weak: only %s have it", names)
	}
	unknown, err := st.Assemblies().Unknown(ctx, secret, "a", "other")
	if err != nil || !slices.Equal(unknown, []string{"a"}) {
		t.Fatal(unknown, err)
	}
	r, err := st.Assemblies().Purge(ctx, secret)
	if err != nil || !slices.Equal(r.Deleted, []string{secret}) || r.Backups == 0 || r.Frames == 0 || len(r.Removed) == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if names := having(t, dir, []byte(secret), []byte(says), row); len(names) > 0 {
		t.Errorf("%q still have it", names)
	}
	if _, err := st.Assemblies().Purge(ctx, secret); !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("again: %v", err)
	}
	for _, id := range []string{"a", "b"} {
		if _, err := st.Get(ctx, id); err != nil {
			t.Error(err)
		}
	}
	if _, err := st.Assemblies().Get(ctx, "other"); err != nil {
		t.Error(err)
	}
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil || f.Severity != varve.SeverityInfo {
			t.Errorf("%s %v", f.String(), err)
		}
	}
}

// A memory and an assembly with one id have files with one name, in two folders: purging the one leaves
// the other, its versions, and its files that were set aside.
func TestPurgeOfOneKind(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, which := range []string{"memory", "assembly"} {
		dir := t.TempDir()
		st := fixture.Open(t, dir, fixture.SmallLog)
		const id = "twice-named"
		spoil := func(folder string) {
			t.Helper()
			path := filepath.Join(dir, folder, jsondoc.FileName(id))
			b, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, b[:len(b)-4], 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range 2 {
			fixture.Put(t, st, id, 3, 4)
			fixture.Group(t, st, id)
			if _, err := st.Assemblies().Activate(ctx, id, 0.1+float64(i)/10); err != nil {
				t.Fatal(err)
			}
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				spoil("memories")
				spoil("assemblies")
				if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "written over it"}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := len(fixture.Quarantined(t, dir)); n != 4 { // two files, two notes
			t.Fatalf("quarantine has %d", n)
		}
		versions := func(all func(context.Context, string) iter.Seq2[varve.Version, error]) (n int) {
			for _, err := range all(ctx, id) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			return n
		}
		purge, kept, history, folder := st.Admin().Purge, "assemblies", st.Assemblies().History, "memories/"
		if which == "assembly" {
			purge, kept, history, folder = st.Assemblies().Purge, "memories", st.History, "assemblies/"
		}
		before := versions(history)
		r, err := purge(ctx, id)
		if which == "memory" && len(r.Left) == 1 && errors.Is(err, varve.ErrCorrupt) {
			err = nil // what is left of the assembly's file may name it as a member
		}
		if err != nil {
			t.Fatalf("%s: %+v, %v", which, r, err)
		}
		if n := versions(history); n != before {
			t.Errorf("%s: the other has %d versions, not %d", which, n, before)
		}
		if _, err := os.Stat(filepath.Join(dir, kept, jsondoc.FileName(id))); err != nil {
			t.Error(which, err)
		}
		if _, err := os.Stat(filepath.Join(dir, folder, jsondoc.FileName(id))); err == nil {
			t.Errorf("%s: its file stands", which)
		}
		if n := len(fixture.Quarantined(t, dir)); n != 2 {
			t.Errorf("%s: quarantine has %d, not what is the other's: %v", which, n, r.Removed)
		}
	}
}

// A memory that does not exist, but is named by an assembly, is removed from it; and set-aside files of
// an assembly with that memory are reported, since the composite was computed from it.
func TestPurgeMissingMember(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, dir, fixture.SmallLog)
	fixture.Put(t, st, "there", 1, 0)
	if _, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "g", MemoryIDs: []string{"there", "gone"}},
		varve.AllowMissing()); err != nil {
		t.Fatal(err)
	}
	r, err := st.Admin().Purge(ctx, "gone")
	if err != nil || !slices.Equal(r.TakenOut, []string{"g"}) {
		t.Fatalf("%+v, %v", r, err)
	}
	if a, err := st.Assemblies().Get(ctx, "g"); err != nil || !slices.Equal(a.MemoryIDs, []string{"there"}) {
		t.Errorf("%+v, %v", a, err)
	}
	q := docfile.NewQuarantine(docfile.Layout{FS: vfs.OS(), Root: dir}, time.Now)
	where, err := q.Bytes("assemblies/g.json", []byte(`{"assembly_id":"g","memory_ids":["x","there"]}`),
		docfile.Note{Why: "an edit", From: "assemblies/g.json"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := st.Admin().Purge(ctx, "there"); !errors.Is(err,
		varve.ErrCorrupt) || len(r.Left) != 1 || !strings.Contains(err.Error(), where) {
		t.Errorf("%+v, %v", r, err)
	}
}

// An assembly that cannot be read does not prevent a purge, and is reported.
func TestPurgeUnreadableAssembly(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, dir, fixture.SmallLog)
	if _, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "g", MemoryIDs: []string{"gone"}},
		varve.AllowMissing()); err != nil {
		t.Fatal(err)
	}
	fixture.Put(t, st, "x", 1, 0)
	if _, err := st.Admin().Purge(ctx, "x"); err != nil { // the log lets go of g
		t.Fatal(err)
	}
	archive, err := filepath.Glob(filepath.Join(dir, "wal", "archive", "*"))
	for _, name := range archive {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil || len(archive) == 0 {
		t.Fatal(archive, err)
	}
	path := filepath.Join(dir, "assemblies", "g.json")
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.Replace(b, []byte("gone"), []byte("g\x00ne"), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Assemblies().Get(ctx, "g"); err == nil {
		t.Fatal("it was healed")
	}
	r, err := st.Admin().Purge(ctx, "gone")
	if !errors.Is(err, varve.ErrCorrupt) || len(r.Left) == 0 ||
		!strings.Contains(r.Left[0].Error(), `finding the assemblies that contain memory "gone"`) {
		t.Errorf("%+v, %v", r, err)
	}
}

// Set-aside files of index and vectors may still be mapped: they are removed, and a process that has
// them open continues to read the old content.
func TestPurgeMappedAside(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("who has a file mapped is known on Linux only")
	}
	ctx := context.Background()
	for _, held := range []bool{true, false} {
		dir := t.TempDir()
		st := fixture.Open(t, dir, fixture.SmallLog)
		fixture.Put(t, st, "unspeakable", 1, 0)
		q := docfile.NewQuarantine(docfile.Layout{FS: vfs.OS(), Root: dir}, time.Now)
		texts := map[string]string{"memory_index.json": `{"memories":{"unspeakable":{"filepath":"memories/unspeakable.json"}}}`, "vector_index/memory_vectors.faiss": "vectors"}
		files := map[string]*os.File{}
		for from, text := range texts {
			where, err := q.Bytes(from, []byte(text), docfile.Note{Why: "it is damaged", From: from})
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(filepath.Join(dir, where))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			if files[from] = f; !held {
				_ = f.Close()
			}
		}
		r, err := st.Admin().Purge(ctx, "unspeakable")
		if err != nil {
			t.Fatal(err)
		}
		told := 0
		for _, name := range r.Unlinked {
			if strings.HasPrefix(name, "quarantine/") {
				told++
			}
		}
		if n := len(fixture.Quarantined(t, dir)); n != 0 || told != map[bool]int{true: 2}[held] {
			t.Errorf("held %v: %d left in quarantine, %q not overwritten", held, n, r.Unlinked)
		}
		for from, f := range files {
			if !held {
				continue
			}
			if b, err := io.ReadAll(f); err != nil || string(b) != texts[from] {
				t.Errorf("who has %s open reads %q, %v", from, b, err)
			}
		}
	}
}
