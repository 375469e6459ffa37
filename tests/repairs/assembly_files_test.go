package repairs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// byHand edits a file as a user does, a while later.
func byHand(t *testing.T, path, from, to string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, []byte(from)) {
		t.Fatalf("%s lacks %s: %s", path, from, b)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(b, []byte(from), []byte(to)), 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(time.Minute)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestAssemblyEditedByHand(t *testing.T) {
	t.Parallel()
	dir := fixture.GroupedStore(t)
	byHand(t, filepath.Join(dir, "assemblies", "a.json"), "group a", "by hand")
	byHand(t, filepath.Join(dir, "assemblies", "b.json"), `"x"`, `"y"`)
	var adopted []string
	st := fixture.Open(t, dir, &varve.Options{Listener: func(e varve.Event) {
		if e.Kind == varve.EventAdopted {
			adopted = append(adopted, e.Path)
		}
	}, NoBackground: true})
	before := fixture.Grouped(t, st, "a")
	if before.Name != "by hand" || len(before.MemoryIDs) != 2 {
		t.Errorf("%+v", before)
	}
	if b := fixture.Grouped(t, st, "b"); !slices.Equal(b.MemoryIDs, []string{"y"}) {
		t.Errorf("%+v", b)
	}
	if !slices.Equal(adopted, []string{"assemblies/a.json", "assemblies/b.json"}) {
		t.Errorf("adopted %q", adopted)
	}
	if got := fixture.Containing(t, st, "x"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("x is in %q", got)
	}
	if err := st.Delete(context.Background(), "y"); err != nil {
		t.Fatal(err)
	}
	if b := fixture.Grouped(t, st, "b"); len(b.MemoryIDs) > 0 {
		t.Errorf("%+v", b)
	}
}

// An edit that cannot be read stays where it is, and the previous version is served.
func TestAssemblyEditedBadly(t *testing.T) {
	t.Parallel()
	dir := fixture.GroupedStore(t)
	byHand(t, filepath.Join(dir, "assemblies", "a.json"), `"x",`, `"x"`)
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	if a := fixture.Grouped(t, st, "a"); a.Name != "group a" || len(a.MemoryIDs) != 2 {
		t.Errorf("%+v", a)
	}
	// It does not prevent deleting a member, and is set aside.
	if err := st.Delete(context.Background(), "y"); err != nil {
		t.Fatal(err)
	}
	if err := st.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if a := fixture.Grouped(t, st, "a"); !slices.Equal(a.MemoryIDs, []string{"x"}) {
		t.Errorf("%+v", a)
	}
	names, err := os.ReadDir(filepath.Join(dir, "quarantine"))
	if err != nil || !slices.ContainsFunc(names,
		func(e os.DirEntry) bool { return strings.Contains(e.Name(), "a.json") }) {
		t.Errorf("quarantine holds %v, %v", names, err)
	}
}

// A memory whose file got another embedding by hand changes its assemblies in the commit that adopts it.
func TestMemberEmbeddedByHand(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := fixture.GroupedStore(t)
	file := filepath.Join(dir, "memories", "x.json")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	from := string(b[bytes.Index(b, []byte(`"embedding": [`)) : bytes.IndexByte(b, ']')+1])
	byHand(t, file, from, `"embedding": [0, 5]`)
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	from0 := st.Admin().Stats().Durable
	if m, err := st.Get(ctx, "x"); err != nil || !fixture.Near(m.Embedding, []float32{0, 5}) {
		t.Fatalf("%+v, %v", m, err)
	}
	for _, id := range []string{"a", "b"} {
		if a := fixture.Grouped(t, st, id); !fixture.Near(a.CompositeEmbedding, []float32{0, 1}) {
			t.Errorf("%s has %v", id, a.CompositeEmbedding)
		}
	}
	n := 0
	for c, err := range st.Watch(ctx, from0) {
		if n++; err != nil || c.More != (n < 3) {
			t.Errorf("change %d: %+v, %v", n, c, err)
		}
		if !c.More {
			break
		}
	}
}

// A missing file was deleted by hand, or is restored at open; an unknown file is reported.
func TestAssemblyFileGone(t *testing.T) {
	t.Parallel()
	t.Run("deleted", func(t *testing.T) { t.Parallel(); assemblyFileGone(t, true) })
	t.Run("restored", func(t *testing.T) { t.Parallel(); assemblyFileGone(t, false) })
}

func assemblyFileGone(t *testing.T, adopt bool) {
	dir := fixture.GroupedStore(t)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), fmt.Appendf(nil, `{"varve":1,"adopt_deletions":%v}`, adopt),
		0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "assemblies", "a.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "assemblies", "new.json"),
		[]byte(`{"assembly_id":"new","name":"n","memory_ids":["x"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	// the folder has not changed for a while
	st := fixture.Open(t, dir, &varve.Options{Clock: func() time.Time { return time.Now().Add(time.Hour) }})
	var d *varve.Drift
	for begun := time.Now(); d == nil && time.Since(begun) < 10*time.Second; time.Sleep(time.Millisecond) {
		d = st.Admin().OpenReport().AssemblyDrift
	}
	if d == nil || !slices.Equal(d.Missing, []string{"a"}) || !slices.Equal(d.Restored, []string{"a"}) && !adopt ||
		!slices.Equal(d.Deleted, []string{"a"}) && adopt || !slices.Equal(d.Stranger, []string{"new.json"}) {
		t.Fatalf("%+v", d)
	}
	if st.Admin().OpenReport().Drift != nil {
		t.Error("memories/ was compared, though nobody touched it")
	}
	if _, err := os.Stat(filepath.Join(dir, "assemblies", "a.json")); (err == nil) == adopt {
		t.Error(err)
	}
}

// A store as git has it: only the files and config.json.
func TestAssembliesCloned(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := fixture.GroupedStore(t)
	clone := t.TempDir()
	for _, name := range []string{"memories", "assemblies", "config.json"} {
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(clone, name)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 { // made from the files, then from the index
		st := fixture.Open(t, clone, nil)
		if i == 0 && st.Admin().OpenReport().Rebuilt == nil {
			t.Error("not rebuilt")
		}
		if a := fixture.Grouped(t, st, "a"); a.Name != "group a" || a.Version == 0 {
			t.Errorf("%+v", a)
		}
		if got := fixture.Containing(t, st, "x"); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("x is in %q", got)
		}
		if i == 1 {
			if err := st.Delete(ctx, "x"); err != nil {
				t.Fatal(err)
			}
			if a, b := fixture.Grouped(t, st, "a"), fixture.Grouped(t, st, "b"); len(a.MemoryIDs) != 1 || len(b.MemoryIDs) != 0 {
				t.Errorf("%+v, %+v", a, b)
			}
		}
		if s := st.Admin().Stats(); s.Assemblies != 2 {
			t.Errorf("%+v", s)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A missing index is rebuilt, from a backup and the log or from the files, with the assemblies and their
// versions.
func TestAssembliesIndexGone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, keep := range []bool{true, false} {
		dir := t.TempDir()
		clock := fixture.ClockAt(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC))
		o := &varve.Options{NoBackground: true, Clock: clock.Now}
		st := fixture.Open(t, dir, o)
		fixture.Put(t, st, "x", 1, 0)
		fixture.Group(t, st, "a", "x")
		for range 2 { // the second keeps the first as a backup
			if err := st.Admin().Compact(ctx); err != nil {
				t.Fatal(err)
			}
			clock.Add(2 * time.Hour)
			fixture.Group(t, st, "b", "x")
		}
		want := fixture.Grouped(t, st, "b")
		if err := st.Admin().Compact(ctx); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "memory_index.json")); err != nil {
			t.Fatal(err)
		}
		if !keep {
			if err := os.RemoveAll(filepath.Join(dir, "backups")); err != nil {
				t.Fatal(err)
			}
		}
		st = fixture.Open(t, dir, o)
		r := st.Admin().OpenReport().Rebuilt
		if r == nil || (r.From != "") != keep {
			t.Fatalf("%+v", r)
		}
		if b := fixture.Grouped(t, st, "b"); !b.Equal(&want) || keep && b.Version != want.Version {
			t.Errorf("%+v, want %+v", b, want)
		}
		if got := fixture.Containing(t, st, "x"); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("x is in %q", got)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A read-only handle sees the groups that a writer makes.
func TestAssembliesReadOnly(t *testing.T) {
	t.Parallel()
	dir := fixture.GroupedStore(t)
	st := fixture.Open(t, dir, nil)
	ro := fixture.Open(t, dir, &varve.Options{ReadOnly: true})
	fixture.Group(t, st, "c", "y")
	if got := fixture.Containing(t, ro, "y"); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("y is in %q", got)
	}
	if _, err := ro.Assemblies().Put(context.Background(), varve.Assembly{ID: "d"}); err == nil {
		t.Error("it wrote")
	}
}

// A member whose embedding has another dimension than the store's does not count.
func TestMemberOfAnotherDimension(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := fixture.GroupedStore(t)
	file := filepath.Join(dir, "memories", "x.json")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	byHand(t, file, string(b[bytes.Index(b, []byte(`"embedding": [`)):bytes.IndexByte(b, ']')+1]),
		`"embedding": [1, 2, 3]`)
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	if m, err := st.Get(ctx, "x"); err != nil || len(m.Embedding) != 3 {
		t.Fatalf("%+v, %v", m, err)
	}
	fixture.Put(t, st, "z", 1, 0)
	if a := fixture.Group(t, st, "new", "x", "z", "y"); len(a.CompositeEmbedding) != 2 ||
		!fixture.Near(a.CompositeEmbedding, []float32{0.70710678, 0.70710678}) {
		t.Errorf("%v", a.CompositeEmbedding)
	}
}
