package vectorfiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/view/vectors"
	"github.com/varve-db/varve/vector"
)

// withVectors makes a closed store of 60 memories with vectors, in a base and a delta.
func withVectors(t testing.TB, r *rand.Rand) string {
	t.Helper()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true},
		storetest.Environment{System: vfs.System{SmallVectors: 1}}))
	fixture.PutVectors(t, st, r, 0, 57)
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	fixture.PutVectors(t, st, r, 55, 60)
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(vector.DeltaMapping))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestVectorsHeal: whatever happens to the files, a search finds what it found before, and afterwards
// the files are complete again. FAILURES 33 (lost at each restart), 36 (a damaged file treated as an
// empty one), 41 (dropped before the new one exists).
func TestVectorsHeal(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	r := rand.New(rand.NewPCG(5, 5))
	base := withVectors(t, r)
	numbers := vectorNumbers(t, base)
	names := []string{"memory_vectors.faiss", "mapping.json", "memory_vectors.delta.faiss", "mapping.delta.json"}
	change := func(f func(path string, b []byte) error) func(dir, name string) error {
		return func(dir, name string) error {
			path := filepath.Join(dir, vector.Folder, name)
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return f(path, b)
		}
	}
	n := 0
	for what, harm := range map[string]func(dir, name string) error{
		"gone":       func(dir, name string) error { return os.Remove(filepath.Join(dir, vector.Folder, name)) },
		"all gone":   func(dir, name string) error { return os.RemoveAll(filepath.Join(dir, vector.Folder)) },
		"empty":      change(func(path string, b []byte) error { return os.WriteFile(path, nil, 0o600) }),
		"cut":        change(func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)/2], 0o600) }),
		"rot":        change(func(path string, b []byte) error { b[len(b)/2] ^= 4; return rot(path, b) }),
		"rot, first": change(func(path string, b []byte) error { b[90] ^= 4; return rot(path, b) }),
		"another's":  change(func(path string, b []byte) error { return os.WriteFile(path, []byte("{}"), 0o600) }),
	} {
		for _, name := range names {
			if n++; n%proofs.Every(1) != 0 {
				continue
			}
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(base)); err != nil {
				t.Fatal(err)
			}
			if err := harm(dir, name); err != nil {
				t.Fatal(what, name, err)
			}
			for again := range 2 {
				st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
				q := fixture.RandomVector(r, 16)
				sameSearch(t, st, fmt.Sprint(what, " ", name, " ", again), q, varve.Query{Vector: q, Limit: 20})
				fixture.CheckVectors(t, st, fmt.Sprint(what, " ", name, " ", again), 60)
				if err := st.Close(); err != nil {
					t.Fatal(err)
				}
				if got := vectorNumbers(t, dir); !maps.Equal(got, numbers) {
					t.Fatalf("%s %s: the vectors have other numbers: %v, not %v", what, name, got, numbers)
				}
			}
			ro := fixture.Open(t, dir, &varve.Options{ReadOnly: true})
			fixture.CheckVectors(t, ro, fmt.Sprint(what, " ", name, " read-only"), 60)
		}
	}
}

// vectorNumbers returns the numbers in the files of a store, which must be valid.
func vectorNumbers(t testing.TB, dir string) map[string]int64 {
	t.Helper()
	st := fixture.Open(t, dir, &varve.Options{ReadOnly: true})
	set, err := storetest.Inner(st).Vectors.Load(nil)
	if set == nil || err != nil {
		t.Fatal(err)
	}
	defer set.Release()
	for err := range vector.Verify(set) {
		t.Fatal(err)
	}
	numbers := map[string]int64{}
	if err := set.Walk(vector.Memories, func(id string, n int64) error { numbers[id] = n; return nil }); err != nil {
		t.Fatal(err)
	}
	return numbers
}

// TestVectorsStay: FAILURES 33: the mapping is saved under one name and loaded under another, and lost
// at each restart. Here every process that opens the store uses the files, and nothing is written again
// for it.
func TestVectorsStay(t *testing.T) {
	t.Parallel()
	dir := withVectors(t, rand.New(rand.NewPCG(11, 11)))
	for range 2 {
		st := fixture.Open(t, dir, &varve.Options{NoBackground: true, Listener: func(e varve.Event) {
			if e.Kind == varve.EventVectors || e.Kind == varve.EventVectorsRebuilt {
				t.Errorf("%+v", e)
			}
		}})
		if s := st.Admin().Stats(); s.Vectors != 60 || s.Dimension != 16 || !s.VectorsKnown {
			t.Fatalf("%+v", s)
		}
		fixture.CheckVectors(t, st, "opened again", 60)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTimeInMetadata: FAILURES 37: a datetime stops every later save.
func TestTimeInMetadata(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := fixture.Open(t, t.TempDir(), &varve.Options{NoBackground: true})
	_, err := st.Put(ctx,
		varve.Memory{ID: "time", Metadata: map[string]any{"when": time.Unix(1, 5), "how long": time.Second}})
	if err != nil && !errors.Is(err, varve.ErrInvalid) {
		t.Fatal(err)
	}
	fixture.PutVectors(t, st, rand.New(rand.NewPCG(1, 1)), 0, 5)
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if n, err := st.Count(ctx); err != nil || n < 5 {
		t.Fatal(n, err)
	}
}

func rot(path string, b []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		return err
	}
	return os.Chtimes(path, info.ModTime(), info.ModTime())
}

// TestVectorsOfReader: a process that may not write has all vectors too, on its heap.
func TestVectorsOfReader(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 6))
	dir := withVectors(t, r)
	if err := os.RemoveAll(filepath.Join(dir, vector.Folder)); err != nil {
		t.Fatal(err)
	}
	ro := fixture.Open(t, dir, &varve.Options{ReadOnly: true})
	q := fixture.RandomVector(r, 16)
	sameSearch(t, ro, "without files", q, varve.Query{Vector: q, Limit: 20})
	fixture.CheckVectors(t, ro, "without files", 60)
	if _, err := os.Stat(filepath.Join(dir, vector.Folder)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("a reader wrote them", err)
	}
}

// TestVectorsFail: the vectors cannot be written for a while. Puts, flushes and searches work
// nevertheless, and afterwards everything is complete, including the vectors that come then.
func TestVectorsFail(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, no := range []error{syscall.ENOSPC, syscall.EIO} {
		r := rand.New(rand.NewPCG(7, 7))
		dir := withVectors(t, r)
		var broken atomic.Bool
		broken.Store(true)
		fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
			if broken.Load() && strings.Contains(op.Path, ".vectors.faiss") && op.Kind.Changes() {
				return no
			}
			return nil
		})
		var unvectored int
		st := fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true, Listener: func(e varve.Event) {
			if e.Kind == varve.EventVectorsSkipped {
				unvectored++
			}
		}}, storetest.Environment{System: vfs.System{FS: fsys}}))
		fixture.PutVectors(t, st, r, 58, 65)
		if err := st.Delete(ctx, "m3"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			fixture.PutVectors(t, st, r, 65, 66)
		}
		if unvectored == 0 {
			t.Fatal("nothing failed")
		}
		if h := st.Health(ctx); h.OK || !h.Writable {
			t.Fatalf("%+v", h)
		}
		// No overlay has the missing vectors anymore.
		q := fixture.RandomVector(r, 16)
		sameSearch(t, st, "while nothing can be written", q, varve.Query{Vector: q, Limit: 20})
		fixture.CheckVectors(t, st, "while nothing can be written", 65)
		broken.Store(false)
		other := fixture.Open(t, dir, &varve.Options{NoBackground: true})
		for _, st := range []*varve.Store{st, other} {
			q := fixture.RandomVector(r, 16)
			sameSearch(t, st, no.Error(), q, varve.Query{Vector: q, Limit: 20})
			fixture.CheckVectors(t, st, no.Error(), 65)
		}
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if h := st.Health(ctx); !h.OK {
			t.Fatalf("%+v", h)
		}
	}
}

// TestVectorIDs: FAILURES 34 (ids reused after deletes), 35 (adding an id again adds a second vector),
// 39 (a document that was not indexed is recorded as indexed).
func TestVectorIDs(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	r := rand.New(rand.NewPCG(8, 8))
	seen := map[int64]string{}
	number := func(id string) int64 {
		t.Helper()
		view, err := storetest.Inner(st).Vectors.View(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer view.Release()
		_, n, ok, err := view.Row(nil, vector.Memories, id)
		if err != nil || !ok {
			t.Fatal(id, ok, err)
		}
		return n
	}
	for round := range 4 {
		for i := range 10 {
			id := fmt.Sprint("m", i)
			m, err := st.Put(ctx, varve.Memory{ID: id, Embedding: fixture.RandomVector(r, 16)})
			if err != nil {
				t.Fatal(err)
			}
			n := number(id)
			if other, used := seen[n]; used || n != int64(m.Version) {
				t.Fatalf("round %d: %s has %d, which %s had; version %d", round, id, n, other, m.Version)
			}
			seen[n] = id
			if round%2 == 1 { // another content: the same vector, the same number
				m.Content = "new"
				if _, err := st.Put(ctx, m); err != nil {
					t.Fatal(err)
				}
				if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "newer", Embedding: m.Embedding}); err != nil {
					t.Fatal(err)
				}
				if got := number(id); got != n {
					t.Fatalf("%s had %d, now %d, for the same vector", id, n, got)
				}
			}
			if i%3 == 0 {
				if err := st.Delete(ctx, id); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		fixture.CheckVectors(t, st, fmt.Sprint("round ", round), 6)
	}
	set, err := storetest.Inner(st).Vectors.Load(nil)
	if set == nil || err != nil {
		t.Fatal(err)
	}
	defer set.Release()
	for err := range vector.Verify(set) {
		t.Fatal(err)
	}
}

// TestPurgeVectors: no file has a purged memory's id or row, even if it was deleted before and is under
// a delta.
func TestPurgeVectors(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, before := range []bool{false, true} {
		dir := t.TempDir()
		st := fixture.Open(t, dir, storetest.In(&varve.Options{NoBackground: true},
			storetest.Environment{System: vfs.System{SmallVectors: 1}}))
		r := rand.New(rand.NewPCG(9, 9))
		fixture.PutVectors(t, st, r, 0, 50)
		secret := fixture.RandomVector(r, 16)
		if _, err := st.Put(ctx, varve.Memory{ID: "unspeakable", Embedding: secret}); err != nil {
			t.Fatal(err)
		}
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if before {
			if err := st.Delete(ctx, "unspeakable"); err != nil {
				t.Fatal(err)
			}
			if err := st.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := st.Admin().Purge(ctx, "unspeakable"); err != nil {
			t.Fatal(err)
		}
		row := vector.IP.Row(nil, secret)
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			if bytes.Contains(b, []byte("unspeakable")) || bytes.Contains(b, row) {
				t.Errorf("%s still has it", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		fixture.CheckVectors(t, st, "purged", 50)
	}
}

// TestVectorsAhead: vectors that a search completed are ahead of a round that takes only a part of what
// is due.
func TestVectorsAhead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := rand.New(rand.NewPCG(10, 10))
	for _, known := range []bool{true, false} {
		dir := withVectors(t, r)
		if err := os.RemoveAll(filepath.Join(dir, vector.Folder)); err != nil {
			t.Fatal(err)
		}
		st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
		m, err := st.Put(ctx, varve.Memory{ID: "early", Embedding: fixture.RandomVector(r, 16)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Put(ctx, varve.Memory{ID: "late", Embedding: fixture.RandomVector(r, 16)}); err != nil {
			t.Fatal(err)
		}
		fixture.CheckVectors(t, st, "healed", 62)
		if !known {
			storetest.Inner(st).Vectors.Heal = vectors.Healed{}
		}
		idx := storetest.Inner(st).Engine.State().Set()
		to, err := storetest.Inner(st).Engine.Log().MarkBefore(ctx, m.Version)
		if err != nil {
			t.Fatal(err)
		}
		list, _, err := storetest.Inner(st).Engine.StateAt(ctx, idx.LSN(), to.LSN)
		if err != nil {
			t.Fatal(err)
		}
		held, err := storetest.Inner(st).Engine.Log().LockFlush(ctx)
		if err != nil {
			t.Fatal(err)
		}
		at, _, err := storetest.Inner(st).Vectors.Write(ctx, held, idx, to, list, false)
		held.Unlock()
		if err != nil || at <= to.LSN {
			t.Fatal(at, err)
		}
		_ = idx.Release()
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		fixture.CheckVectors(t, fixture.Open(t, dir, &varve.Options{NoBackground: true}), "flushed", 62)
	}
}

// TestCompositeVectors: assemblies have vectors as memories do, which follow their members, are found,
// and are rebuilt from the assemblies' files.
func TestCompositeVectors(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	r := rand.New(rand.NewPCG(12, 12))
	fixture.PutVectors(t, st, r, 0, 20)
	for i := range 4 {
		if _, err := st.Assemblies().Put(ctx,
			varve.Assembly{ID: fmt.Sprint("g", i), MemoryIDs: []string{fmt.Sprint("m", i), fmt.Sprint("m", i+1)}}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(st *varve.Store, what string, composites int64) {
		t.Helper()
		report, err := storetest.CheckVectors(ctx, st)
		if err != nil || report.Drift() != 0 || report.Composites != composites {
			t.Fatalf("%s: %+v, %v; want %d composites", what, report, err, composites)
		}
		for a, err := range st.Assemblies().All(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			hits, err := st.Assemblies().Search(ctx, varve.Query{Vector: a.CompositeEmbedding, Limit: 1})
			if err != nil || len(hits) != 1 || hits[0].ID != a.ID || hits[0].Score < 0.999 || hits[0].Assembly.ID != a.ID {
				t.Fatalf("%s: %s finds %v, %v", what, a.ID, hits, err)
			}
			if hits, err = st.Assemblies().Search(ctx, varve.Query{Like: a.ID}); err != nil || int64(len(hits)) != composites-1 {
				t.Fatalf("%s: like %s are %v, %v", what, a.ID, hits, err)
			}
		}
	}
	check(st, "in the log", 4)
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	check(st, "in files", 4)
	// g0 and g1 change with it
	if _, err := st.Put(ctx, varve.Memory{ID: "m1", Embedding: fixture.RandomVector(r, 16)}); err != nil {
		t.Fatal(err)
	}
	if err := st.Delete(ctx, "m4"); err != nil { // g3
		t.Fatal(err)
	}
	if err := st.Assemblies().Delete(ctx, "g2"); err != nil {
		t.Fatal(err)
	}
	check(st, "changed", 3)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, vector.Folder)); err != nil {
		t.Fatal(err)
	}
	check(fixture.Open(t, dir, &varve.Options{NoBackground: true}), "from the documents", 3)
	check(fixture.Open(t, dir, &varve.Options{ReadOnly: true}), "read only", 3)
}

// TestVectorNumberOfImport: an imported number is kept with its vector, unless this store could assign
// it, and no other vector gets it.
func TestVectorNumberOfImport(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	r := rand.New(rand.NewPCG(13, 13))
	const theirs = 8184237461236471239
	first, second := fixture.RandomVector(r, 16), fixture.RandomVector(r, 16)
	for i, c := range []struct {
		id     string
		v      []float32
		number int64
		kept   bool
	}{
		{"a", first, theirs, true},
		{"a", first, theirs, true},
		{"a", first, 0, true},        // the same vector again
		{"a", second, theirs, false}, // another one under the same number
		{"b", first, 4096, false},    // an ordinal, or a number of ours
	} {
		m, err := st.Put(ctx, varve.Memory{ID: c.id, Content: fmt.Sprint(i), Embedding: c.v}, varve.VectorNumber(c.number))
		if err != nil {
			t.Fatal(err)
		}
		fixture.CheckVectors(t, st, c.id, int64(1+i/4))
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		want := int64(m.Version)
		if c.kept {
			want = theirs
		}
		if got := vectorNumbers(t, dir)[c.id]; got != want {
			t.Fatalf("case %d: %s has %d, not %d", i, c.id, got, want)
		}
		fixture.CheckVectors(t, st, c.id, int64(1+i/4))
	}
}

// TestVectorDrift counts missing and surplus vectors in the files, without changing them.
func TestVectorDrift(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := withVectors(t, rand.New(rand.NewPCG(14, 14)))
	aside := filepath.Join(t.TempDir(), "aside")
	if err := os.CopyFS(aside, os.DirFS(filepath.Join(dir, vector.Folder))); err != nil {
		t.Fatal(err)
	}
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	r := rand.New(rand.NewPCG(15, 15))
	drift := func(want varve.VectorDrift) {
		t.Helper()
		got, err := st.Vectors().Drift(ctx)
		if err != nil || got != want {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
	}
	drift(varve.VectorDrift{})
	fixture.PutVectors(t, st, r, 59, 63) // one changes, three are new
	if err := st.Delete(ctx, "m0"); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "misfit", Embedding: []float32{1}}, varve.AnyDimension()); err != nil {
		t.Fatal(err)
	}
	drift(varve.VectorDrift{Pending: 6})
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	drift(varve.VectorDrift{Misfits: 1})
	if err := os.RemoveAll(filepath.Join(dir, vector.Folder)); err != nil {
		t.Fatal(err)
	}
	drift(varve.VectorDrift{Missing: 63})
	if err := os.CopyFS(filepath.Join(dir, vector.Folder), os.DirFS(aside)); err != nil {
		t.Fatal(err)
	}
	drift(varve.VectorDrift{Missing: 3, Stale: 1, Ghosts: 1, Misfits: 1})
	fixture.CheckVectors(t, st, "healed", 62)
	if got, err := st.Vectors().Drift(ctx); err != nil || !got.None() {
		t.Fatal(got, err)
	}
}

// TestVectorsOfAnotherLife: the folder was copied, both copies continued alike, and the vectors of the
// one are copied into the other: the numbers are equal, and the vectors are not.
func TestVectorsOfAnotherLife(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	one := withVectors(t, rand.New(rand.NewPCG(16, 16)))
	two := t.TempDir()
	if err := os.CopyFS(two, os.DirFS(one)); err != nil {
		t.Fatal(err)
	}
	clock := time.Now()
	var other *varve.Store
	for i, dir := range []string{one, two} {
		other = fixture.Open(t, dir, &varve.Options{NoBackground: true, Clock: func() time.Time { return clock }})
		r := rand.New(rand.NewPCG(17, uint64(i)))
		for k := range 8 {
			v := fixture.RandomVector(r, 16)
			for j := range v {
				v[j] = float32(math.Round(float64(v[j])*4)/8 + 3) // of one length as JSON
			}
			if _, err := other.Put(ctx,
				varve.Memory{ID: fmt.Sprint("new", k), Content: strings.Repeat("x", 5000), Embedding: v}); err != nil {
				t.Fatal(err)
			}
		}
		if i == 0 {
			if err := other.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.RemoveAll(filepath.Join(two, vector.Folder)); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(two, vector.Folder), os.DirFS(filepath.Join(one, vector.Folder))); err != nil {
		t.Fatal(err)
	}
	fixture.CheckVectors(t, other, "at the end of the log", 68)
	fixture.PutVectors(t, other, rand.New(rand.NewPCG(18, 18)), 0, 3)
	if err := os.RemoveAll(filepath.Join(two, vector.Folder)); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(two, vector.Folder), os.DirFS(filepath.Join(one, vector.Folder))); err != nil {
		t.Fatal(err)
	}
	fixture.CheckVectors(t, fixture.Open(t, two, &varve.Options{NoBackground: true}), "within the log", 68)
}
