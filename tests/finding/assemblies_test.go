package finding

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
)

func TestAssemblies(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, dir, nil)
	as := st.Assemblies()
	fixture.Put(t, st, "x", 1, 0)
	fixture.Put(t, st, "y", 0, 2)
	fixture.Put(t, st, "plain")
	a := fixture.Group(t, st, "a", "x", "y")
	root := float32(math.Sqrt(0.5))
	if !fixture.Near(a.CompositeEmbedding, []float32{root, root}) || a.Version == 0 || a.VectorIndexUpdatedAt.IsZero() {
		t.Fatalf("put: %+v", a)
	}
	fixture.Group(t, st, "b", "x", "plain")
	check := func(when string) {
		t.Helper()
		got := fixture.Grouped(t, st, "a")
		if !got.Equal(&a) || got.Version != a.Version {
			t.Errorf("%s: %+v, want %+v", when, got, a)
		}
		if got := fixture.Containing(t, st, "x"); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("%s: x is in %q", when, got)
		}
		if got := fixture.Containing(t, st, "none"); len(got) > 0 {
			t.Errorf("%s: none is in %q", when, got)
		}
		var ids []string
		for a, err := range as.All(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, a.ID)
		}
		if n, err := as.Count(ctx); err != nil || n != 2 || !slices.Equal(ids, []string{"a", "b"}) {
			t.Errorf("%s: %d, %v, %q", when, n, err, ids)
		}
		n := 0
		for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
			if n++; err != nil || f.Severity != varve.SeverityInfo {
				t.Errorf("%s: %s %v", when, f.String(), err)
			}
		}
	}
	check("in the log")
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	check("in files")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = fixture.Open(t, dir, nil)
	as = st.Assemblies()
	check("opened again")
	if err := st.Admin().RebuildIndex(ctx); err != nil {
		t.Fatal(err)
	}
	check("with the index made again")

	// Memories in assemblies: deleted, embedded again.
	if err := st.Delete(ctx, "y"); err != nil {
		t.Fatal(err)
	}
	if a = fixture.Grouped(t, st, "a"); !slices.Equal(a.MemoryIDs, []string{"x"}) ||
		!fixture.Near(a.CompositeEmbedding, []float32{1, 0}) {
		t.Errorf("after the deletion of y: %+v", a)
	}
	fixture.Put(t, st, "x", 0, 3)
	for _, id := range []string{"a", "b"} {
		if got := fixture.Grouped(t, st, id); !fixture.Near(got.CompositeEmbedding, []float32{0, 1}) {
			t.Errorf("x embedded anew: %s has %v", id, got.CompositeEmbedding)
		}
	}
	before := fixture.Grouped(t, st, "b")
	fixture.Put(t, st, "plain")
	if got := fixture.Grouped(t, st, "b"); got.Version != before.Version {
		t.Error("a memory without an embedding was put and its assembly written")
	}

	// The members.
	if _, err := as.Add(ctx, "a", []string{"plain", "ghost"}); !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("adding what is not there: %v", err)
	} else if missing := (*varve.MissingMembersError)(nil); !errors.As(err, &missing) ||
		!slices.Equal(missing.IDs, []string{"ghost"}) {
		t.Errorf("%v", err)
	}
	if a, err := as.Add(ctx, "a", []string{"plain", "ghost"},
		varve.AllowMissing()); err != nil || !slices.Equal(a.MemoryIDs, []string{"x", "plain", "ghost"}) {
		t.Errorf("%+v, %v", a, err)
	}
	// The missing member is created: it counts.
	fixture.Put(t, st, "ghost", 1, 0)
	if got := fixture.Grouped(t, st, "a"); !fixture.Near(got.CompositeEmbedding, []float32{root, root}) {
		t.Errorf("with the member that was missing: %v", got.CompositeEmbedding)
	}
	v := fixture.Grouped(t, st, "a").Version
	if a, err := as.Remove(ctx, "a", []string{"nobody"}); err != nil || a.Version != v {
		t.Errorf("removing nobody: version %d, was %d, %v", a.Version, v, err)
	}
	if _, err := as.Remove(ctx, "a", []string{"x"}, varve.IfVersion(1)); !errors.Is(err, varve.ErrConflict) {
		t.Errorf("under a condition: %v", err)
	}
	if a, err := as.Remove(ctx, "a", []string{"ghost"}, varve.IfVersion(v)); err != nil || a.Has("ghost") {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := as.Put(ctx, varve.Assembly{ID: "a"}, varve.IfAbsent()); !errors.Is(err, varve.ErrConflict) {
		t.Errorf("put if absent: %v", err)
	}
	if err := as.Delete(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	if err := as.Delete(ctx, "b"); !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	if got := fixture.Containing(t, st, "x"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("x is in %q", got)
	}
	if m, err := st.Get(ctx, "x"); err != nil || m.Content == "" {
		t.Errorf("the members stay: %v", err)
	}
}

// The same id for a memory and an assembly: two documents.
func TestAssemblyNamedLikeMemory(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), nil)
	fixture.Put(t, st, "same", 1)
	fixture.Group(t, st, "same", "same")
	b := new(varve.Batch)
	b.Put(varve.Memory{ID: "same", Content: "changed"})
	b.PutAssembly(varve.Assembly{ID: "same", Name: "changed", MemoryIDs: []string{"same"}})
	if err := st.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time from the cache
		m, err := st.Get(ctx, "same")
		if a := fixture.Grouped(t, st, "same"); err != nil || m.Content != "changed" || a.Name != "changed" ||
			a.CompositeEmbedding != nil {
			t.Errorf("%+v, %v, %+v", m, err, a)
		}
	}
	if _, err := st.Get(ctx, "\xffsame"); err == nil {
		t.Error("an assembly was taken for a memory")
	}
	if err := st.Delete(ctx, "same"); err != nil {
		t.Fatal(err)
	}
	if a := fixture.Grouped(t, st, "same"); len(a.MemoryIDs) > 0 {
		t.Errorf("%+v", a)
	}
}

// A batch writes each assembly once, however many of its memories the batch deletes, and also when the
// batch itself names it.
func TestAssemblyInBatch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), nil)
	for i := range 6 {
		fixture.Put(t, st, fmt.Sprint("m", i), float32(i+1), 1)
	}
	fixture.Group(t, st, "a", "m0", "m1", "m2", "m3")
	fixture.Group(t, st, "b", "m1", "m2")
	from := st.Admin().Stats().Durable
	b := new(varve.Batch)
	b.Delete("m1")
	b.Put(varve.Memory{ID: "new", Embedding: []float32{5, 5}})
	b.PutAssembly(varve.Assembly{ID: "a", Name: "named", MemoryIDs: []string{"m0", "m2", "m3", "new"}})
	b.Delete("m2")
	b.DeleteAssembly("none")
	if err := st.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
	if got := fixture.Grouped(t, st, "a"); got.Name != "named" ||
		!slices.Equal(got.MemoryIDs, []string{"m0", "m3", "new"}) {
		t.Errorf("%+v", got)
	}
	if got := fixture.Grouped(t, st, "b"); len(got.MemoryIDs) > 0 || got.CompositeEmbedding != nil {
		t.Errorf("%+v", got)
	}
	var seen []string
	watch, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	for c, err := range st.Watch(watch, from) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, c.Kind+" "+c.ID)
		if c.Kind == "assembly" && !c.Deleted && c.Assembly.Version != c.LSN {
			t.Errorf("%+v", c)
		}
		if !c.More {
			break
		}
	}
	if want := []string{"memory m1", "memory new", "assembly a", "memory m2", "assembly b"}; !slices.Equal(seen, want) {
		t.Errorf("one commit with %q, want %q", seen, want)
	}
	// A memory that was deleted before is not there.
	b = new(varve.Batch)
	b.Delete("m3")
	b.PutAssembly(varve.Assembly{ID: "c", MemoryIDs: []string{"m3"}})
	var be *varve.BatchError
	if err := st.Apply(ctx, b); !errors.Is(err, varve.ErrNotFound) || !errors.As(err, &be) || be.Index != 1 {
		t.Errorf("%v", err)
	}
	if _, err := st.Get(ctx, "m3"); err != nil {
		t.Errorf("half of a refused batch was done: %v", err)
	}
}

func TestAssemblyTransaction(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), nil)
	fixture.Put(t, st, "x", 1, 0)
	fixture.Put(t, st, "y", 0, 1)
	fixture.Group(t, st, "a", "x")
	runs := 0
	err := st.Transact(ctx, func(tx *varve.Tx) error {
		runs++
		a, err := tx.Assembly("a")
		if err != nil {
			return err
		}
		if runs == 1 { // another writer, between the check and the commit
			if _, err := st.Assemblies().Add(ctx, "a", []string{"y"}); err != nil {
				return err
			}
		}
		a.Description = fmt.Sprint(len(a.MemoryIDs), " members")
		if _, err := tx.PutAssembly(a); err != nil {
			return err
		}
		m, err := tx.Get("x")
		if err != nil {
			return err
		}
		m.Content = "changed with it"
		_, err = tx.Put(m)
		return err
	})
	if err != nil || runs != 2 {
		t.Fatalf("%d runs, %v", runs, err)
	}
	if a := fixture.Grouped(t, st, "a"); a.Description != "2 members" || !a.Has("y") {
		t.Errorf("%+v", a)
	}
}

func TestAssemblyMerge(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), nil)
	as := st.Assemblies()
	for i := range 4 {
		fixture.Put(t, st, fmt.Sprint("m", i), float32(i), 1)
	}
	fixture.Group(t, st, "a", "m0")
	fixture.Group(t, st, "b", "m1", "m2")
	if _, err := as.Put(ctx, varve.Assembly{ID: "c", MemoryIDs: []string{"m2", "gone"}},
		varve.AllowMissing()); err != nil {
		t.Fatal(err)
	}
	merged, err := as.Merge(ctx, "a", "b", "c", "b")
	if err != nil || !slices.Equal(merged.MemoryIDs, []string{"m0", "m1", "m2", "gone"}) ||
		!slices.Equal(merged.MergedFrom, []string{"b", "c"}) {
		t.Fatalf("%+v, %v", merged, err)
	}
	for _, id := range []string{"b", "c"} {
		if _, err := as.Get(ctx, id); !errors.Is(err, varve.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if got := fixture.Containing(t, st, "m2"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("m2 is in %q", got)
	}
	// In a circle: an assembly that was merged is created again, and the one that it was merged into is
	// merged into it.
	fixture.Group(t, st, "b", "m3")
	if merged, err = as.Merge(ctx, "b", "a"); err != nil || !slices.Equal(merged.MergedFrom, []string{"c", "a"}) {
		t.Errorf("%q, %v", merged.MergedFrom, err)
	}
	if _, err := as.Merge(ctx, "b", "b"); !errors.Is(err, varve.ErrInvalid) {
		t.Errorf("into itself: %v", err)
	}
	if _, err := as.Merge(ctx, "b", "none"); !errors.Is(err, varve.ErrNotFound) {
		t.Errorf("with none: %v", err)
	}
	var names []string
	for v, err := range as.History(ctx, "b") {
		if err != nil {
			t.Fatal(err)
		}
		if v.Deleted {
			names = append(names, "-")
			continue
		}
		a, err := v.DecodeAssembly()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprint(a.MemoryIDs))
		if at, err := as.GetAt(ctx, "b", v.LSN); err != nil || string(at.Document) != string(v.Document) {
			t.Errorf("version %d: %v", v.LSN, err)
		}
	}
	if want := []string{"[m1 m2]", "-", "[m3]", "[m3 m0 m1 m2 gone]"}; !slices.Equal(names, want) {
		t.Errorf("history: %q, want %q", names, want)
	}
	if _, err := as.GetAt(ctx, "b", 3); err == nil || err.Error()[:8] != "assembly" {
		t.Errorf("%v", err)
	}
}

func TestAssemblyActivate(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	clock := fixture.ClockAt(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC))
	st := fixture.Open(t, t.TempDir(), &varve.Options{Clock: clock.Now, NoBackground: true})
	as := st.Assemblies()
	fixture.Group(t, st, "a")
	c := st.Admin().Config()
	c.ActivationHalfLife = 3600
	if err := st.Admin().SetConfig(c); err != nil {
		t.Fatal(err)
	}
	a, err := as.Activate(ctx, "a", 0.8)
	if err != nil || a.ActivationLevel != 0.8 || a.ActivationCount != 1 || !a.LastActivation.Equal(clock.Now()) {
		t.Fatalf("%+v, %v", a, err)
	}
	clock.Add(time.Hour)
	if got := as.Level(&a); math.Abs(got-0.4) > 1e-9 {
		t.Errorf("after a half-life: %v", got)
	}
	if a, err = as.Activate(ctx, "a", 0.8); err != nil || a.ActivationLevel != 1 || a.ActivationCount != 2 {
		t.Errorf("%+v, %v", a, err)
	}
}

// An expired member is absent for a caller that adds it, and is removed from the assembly when it is
// deleted.
func TestAssemblyExpiredMember(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	clock := fixture.ClockAt(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC))
	st := fixture.Open(t, t.TempDir(), &varve.Options{Clock: clock.Now, NoBackground: true})
	if _, err := st.Put(ctx, varve.Memory{ID: "x", ExpiresAt: clock.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	fixture.Group(t, st, "a", "x")
	clock.Add(2 * time.Hour)
	if a := fixture.Grouped(t, st, "a"); !a.Has("x") {
		t.Error("it left before it was deleted")
	}
	if _, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "b", MemoryIDs: []string{"x"}}); !errors.Is(err,
		varve.ErrNotFound) {
		t.Errorf("taken in when its time was over: %v", err)
	}
	b := new(varve.Batch)
	b.Delete("x")
	if err := st.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
	if a := fixture.Grouped(t, st, "a"); a.Has("x") {
		t.Error("deleted, and still a member")
	}
}

// A memory in so many assemblies that they do not fit in one commit: the error says so.
func TestAssemblyBatchTooLarge(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), &varve.Options{SegmentSize: 64 << 10, NoBackground: true})
	fixture.Put(t, st, "x", 1)
	for i := range 60 {
		fixture.Group(t, st, fmt.Sprint("a", i), "x")
	}
	err := st.Delete(ctx, "x")
	if !errors.Is(err, varve.ErrBatchTooLarge) || !strings.Contains(err.Error(), "also rewrites 60 assemblies") {
		t.Fatalf("%v", err)
	}
	for i := range 40 {
		if _, err := st.Assemblies().Remove(ctx, fmt.Sprint("a", i), []string{"x"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Delete(ctx, "x"); err != nil {
		t.Fatal(err)
	}
}

// The number of a composite's vector is the version that brought it, however often the assembly is
// written since; a new composite has a new number.
func TestCompositeNumber(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, cache := range []int64{-1, 1 << 20} {
		dir := t.TempDir()
		o := &varve.Options{NoBackground: true, CacheBytes: cache}
		st := fixture.Open(t, dir, o)
		fixture.Put(t, st, "x", 1, 0)
		fixture.Put(t, st, "y", 0, 2)
		first := fixture.Group(t, st, "a", "x")
		number := func() (version, id int64) {
			t.Helper()
			if err := st.Admin().Compact(ctx); err != nil {
				t.Fatal(err)
			}
			e, err := storetest.Inner(st).Engine.State().Line('a', "a")
			if err != nil {
				t.Fatal(err)
			}
			return int64(e.Version), e.VectorNumber()
		}
		for i := range 4 {
			if i == 2 {
				if err := st.Close(); err != nil {
					t.Fatal(err)
				}
				st = fixture.Open(t, dir, o)
			}
			if _, err := st.Assemblies().Activate(ctx, "a", 0.1); err != nil {
				t.Fatal(err)
			}
			if version, id := number(); id != int64(first.Version) || version == id {
				t.Errorf("write %d: version %d, number %d, want %d", i, version, id, first.Version)
			}
		}
		if _, err := st.Assemblies().Add(ctx, "a", []string{"y"}); err != nil {
			t.Fatal(err)
		}
		if version, id := number(); id != version {
			t.Errorf("a new composite: version %d, number %d", version, id)
		}
	}
}
