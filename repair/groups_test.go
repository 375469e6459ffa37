package repair_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/repair"
)

const (
	grouped = 48 // memories with embeddings, in assemblies
	groups  = 6
	dims    = 16
)

func vectorOf(seed int) []float32 {
	r := rand.New(rand.NewPCG(uint64(seed), 7))
	v := make([]float32, dims)
	for i := range v {
		v[i] = r.Float32()*2 - 1
	}
	return v
}

func groupID(i int) string { return fmt.Sprintf("a-%d", i) }

func groupPath(i int) string { return "assemblies/" + groupID(i) + ".json" }

// groupStore returns the folder of a closed store with assemblies and vectors; some memories have no
// vector, some are in no assembly, one assembly is empty.
func groupStore(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "g")
	st := openStore(t, dir, &varve.Options{NoBackground: true})
	fillGroups(t, st)
	if err := st.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func fillGroups(t testing.TB, st *varve.Store) {
	t.Helper()
	ctx := context.Background()
	for i := range grouped {
		m := varve.Memory{ID: id(i), Content: fmt.Sprintf("memory %d", i), Embedding: vectorOf(i)}
		if i%12 == 11 {
			m.Embedding = nil
		}
		if _, err := st.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	for g := range groups {
		a := varve.Assembly{ID: groupID(g), Name: fmt.Sprintf("group %d", g)}
		for i := g; i < grouped-8 && g < groups-1; i += groups {
			a.MemoryIDs = append(a.MemoryIDs, id(i))
		}
		if _, err := st.Assemblies().Put(ctx, a); err != nil {
			t.Fatal(err)
		}
	}
}

// everything returns all that a store serves: documents, and the neighbours of each.
func everything(t testing.TB, dir string) map[string]string {
	t.Helper()
	st := openStore(t, dir, &varve.Options{NoBackground: true, MustExist: true})
	defer func() { _ = st.Close() }()
	all, err := served(st)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func served(st *varve.Store) (map[string]string, error) {
	ctx := context.Background()
	all := map[string]string{}
	for m, err := range st.Memories(ctx) {
		if err != nil {
			return nil, err
		}
		b, err := st.Admin().GetRaw(ctx, m.ID)
		if err != nil {
			return nil, err
		}
		all[m.ID] = string(b)
		var in []string
		for a, err := range st.Assemblies().Containing(ctx, m.ID) {
			if err != nil {
				return nil, err
			}
			in = append(in, a.ID)
		}
		all[m.ID+" is in"] = strings.Join(in, " ")
	}
	for a, err := range st.Assemblies().All(ctx) {
		if err != nil {
			return nil, err
		}
		b, err := st.Assemblies().GetRaw(ctx, a.ID)
		if err != nil {
			return nil, err
		}
		all[a.ID] = string(b)
	}
	for i := range 5 {
		hits, err := st.Search(ctx, varve.Query{Vector: vectorOf(i), Limit: 7})
		if err != nil {
			return nil, err
		}
		near := ""
		for _, h := range hits {
			near += fmt.Sprintf("%s %.4f ", h.ID, h.Score)
		}
		found, err := st.Assemblies().Search(ctx, varve.Query{Vector: vectorOf(i), Limit: groups})
		if err != nil {
			return nil, err
		}
		for _, h := range found {
			near += fmt.Sprintf("%s %.3f ", h.ID, h.Score)
		}
		all[fmt.Sprintf("near %d", i)] = near
	}
	r, err := storetest.CheckVectors(ctx, st)
	if err == nil && r.Drift() != 0 {
		err = fmt.Errorf("%d documents and vectors do not agree: %+v", r.Drift(), r)
	}
	all["vectors"] = fmt.Sprint(r.Vectors, r.Dimension)
	return all, err
}

// groupHarm is damage to assemblies or vectors, the findings of verify, and the actions of the plan.
// After the repair everything is as before, except for what changed names.
type groupHarm struct {
	name    string
	do      func(t *testing.T, dir string)
	wants   []want
	plan    []repair.Verb
	changed []string
}

func (h groupHarm) run(t *testing.T) {
	dir := groupStore(t)
	before := everything(t, dir)
	h.do(t, dir)
	harmed := tree(t, dir)
	check(t, folder(t, dir), h.wants)
	p := planOf(t, dir)
	var verbs []repair.Verb
	for _, a := range p.Actions {
		t.Log("plan:", a)
		if verbs = append(verbs, a.Do); a.Loses != "" {
			t.Errorf("loses %s", a.Loses)
		}
	}
	if verbs = slices.Compact(verbs); !slices.Equal(verbs, h.plan) {
		t.Errorf("the plan is %q, want %q", verbs, h.plan)
	}
	if now := tree(t, dir); now != harmed {
		t.Errorf("looking changed something:\n%s\n%s", harmed, now)
	}
	apply(t, p)
	for _, f := range folder(t, dir) {
		if f.Severity != repair.Info {
			t.Errorf("afterwards: %s", f)
		}
	}
	after := everything(t, dir)
	for _, key := range h.changed {
		if before[key] == after[key] {
			t.Errorf("%s is as it was", key)
		}
		delete(before, key)
		delete(after, key)
	}
	compare(t, before, after)
}

// folder returns what verify finds in a store that no process has open.
func folder(t testing.TB, dir string) (list []varve.Finding) {
	t.Helper()
	for f, err := range varve.VerifyFolder(t.Context(), dir, options(), varve.VerifyOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	}
	return list
}

func edit(t *testing.T, name, old, new string) {
	t.Helper()
	b := bytesOf(t, name)
	if !bytes.Contains(b, []byte(old)) {
		t.Fatalf("%s has no %s", name, old)
	}
	write(t, name, bytes.Replace(b, []byte(old), []byte(new), 1))
	later := time.Now().Add(time.Second)
	if err := os.Chtimes(name, later, later); err != nil {
		t.Fatal(err)
	}
}

var groupHarms = []groupHarm{
	{name: "an assembly's file is deleted", do: func(t *testing.T, dir string) {
		remove(t, file(dir, groupPath(1)))
	}, wants: []want{{repair.AssemblyMissing, groupPath(1), -1, repair.ByLog, repair.Healable}}, plan: []repair.Verb{repair.Restore}},
	{name: "all of them, with their folder", do: func(t *testing.T, dir string) {
		if err := os.RemoveAll(file(dir, "assemblies")); err != nil {
			t.Fatal(err)
		}
	}, wants: allGroups(repair.AssemblyMissing), plan: []repair.Verb{repair.Restore}},
	{name: "a bit in one", do: func(t *testing.T, dir string) {
		flip(t, file(dir, groupPath(2)), 40)
	}, wants: []want{{repair.AssemblyRot, groupPath(2), 40, repair.ByLog, repair.Healable}}, plan: []repair.Verb{repair.Restore}},
	{name: "one is empty", do: func(t *testing.T, dir string) {
		write(t, file(dir, groupPath(2)), nil)
	}, wants: []want{{repair.AssemblyEmpty, groupPath(2), -1, repair.ByLog, repair.Healable}}, plan: []repair.Verb{repair.Restore}},
	{name: "one is cut", do: func(t *testing.T, dir string) {
		write(t, file(dir, groupPath(2)), bytesOf(t, file(dir, groupPath(2)))[:100])
	}, wants: []want{{repair.AssemblyInvalid, groupPath(2), 100, repair.ByLog, repair.Healable}}, plan: []repair.Verb{repair.Restore}},
	{name: "conflict markers in one", do: func(t *testing.T, dir string) {
		b := bytesOf(t, file(dir, groupPath(2)))
		write(t, file(dir, groupPath(2)), append([]byte("<<<<<<< HEAD\n"), b...))
	}, wants: []want{{repair.AssemblyInvalid, groupPath(2), 0, repair.ByLog, repair.Healable}}, plan: []repair.Verb{repair.Restore}},
	{name: "another's bytes in one", do: func(t *testing.T, dir string) {
		write(t, file(dir, groupPath(2)), bytesOf(t, file(dir, groupPath(3))))
	}, wants: []want{{repair.AssemblyWrongID, groupPath(2), -1, repair.ByLog, repair.Healable}}, plan: []repair.Verb{repair.Restore}},
	{name: "one is edited", do: func(t *testing.T, dir string) {
		edit(t, file(dir, groupPath(2)), "group 2", "group two")
	}, wants: []want{{repair.AssemblyEdited, groupPath(2), -1, repair.ByAdoption, repair.Healable}}, plan: []repair.Verb{repair.Adopt}, changed: []string{groupID(2)}},
	{name: "a copy under another name", do: func(t *testing.T, dir string) {
		write(t, file(dir, "assemblies/copy.json"), bytesOf(t, file(dir, groupPath(2))))
	}, wants: []want{{repair.Misplaced, "assemblies/copy.json", -1, repair.ByMoving, repair.Healable}}, plan: []repair.Verb{repair.SetAside}},
	{name: "a stranger that is none", do: func(t *testing.T, dir string) {
		write(t, file(dir, "assemblies/junk.json"), []byte(`{"assembly_id": `))
	}, wants: []want{{repair.Unparsable, "assemblies/junk.json", 16, repair.ByMoving, repair.Healable}}, plan: []repair.Verb{repair.SetAside}},
	{name: "the vectors are deleted", do: func(t *testing.T, dir string) {
		if err := os.RemoveAll(file(dir, "vector_index")); err != nil {
			t.Fatal(err)
		}
	}, wants: []want{behind}, plan: []repair.Verb{repair.RebuildVectors}},
	{name: "the folder of the vectors is empty", do: func(t *testing.T, dir string) {
		remove(t, file(dir, "vector_index/mapping.json"))
		remove(t, file(dir, "vector_index/memory_vectors.faiss"))
	}, wants: []want{behind}, plan: []repair.Verb{repair.RebuildVectors}},
	{name: "the mapping is deleted", do: func(t *testing.T, dir string) {
		remove(t, file(dir, "vector_index/mapping.json"))
	}, wants: []want{behind}, plan: []repair.Verb{repair.RebuildVectors}},
	{name: "the FAISS file is deleted", do: func(t *testing.T, dir string) {
		remove(t, file(dir, "vector_index/memory_vectors.faiss"))
	}, wants: []want{vectorsDamaged("memory_vectors.faiss", -1)}, plan: []repair.Verb{repair.RebuildVectors}},
	{name: "the FAISS file is cut", do: func(t *testing.T, dir string) {
		if err := os.Truncate(file(dir, "vector_index/memory_vectors.faiss"), 1000); err != nil {
			t.Fatal(err)
		}
	}, wants: []want{vectorsDamaged("memory_vectors.faiss", -1)}, plan: []repair.Verb{repair.RebuildVectors}},
	{name: "a bit in a vector", do: func(t *testing.T, dir string) {
		flip(t, file(dir, "vector_index/memory_vectors.faiss"), 200)
	}, wants: []want{vectorsDamaged("memory_vectors.faiss", 0)}, plan: []repair.Verb{repair.RebuildVectors}},
	{name: "a bit in the mapping", do: func(t *testing.T, dir string) {
		flip(t, file(dir, "vector_index/mapping.json"), 30)
	}, wants: []want{vectorsDamaged("mapping.json", anyOffset)}, plan: []repair.Verb{repair.RebuildVectors}},
	{name: "the mapping is empty", do: func(t *testing.T, dir string) {
		write(t, file(dir, "vector_index/mapping.json"), nil)
	}, wants: []want{vectorsDamaged("mapping.json", anyOffset)}, plan: []repair.Verb{repair.RebuildVectors}},
	{name: "the mapping is {}", do: func(t *testing.T, dir string) {
		write(t, file(dir, "vector_index/mapping.json"), []byte("{}"))
	}, wants: []want{vectorsDamaged("mapping.json", anyOffset)}, plan: []repair.Verb{repair.RebuildVectors}},
	{name: "old vectors are put in", do: func(t *testing.T, dir string) {
		fixture.CopyDir(t, file(dir, "vector_index"), dir+".old")
		st := openStore(t, dir, &varve.Options{NoBackground: true})
		for i := range 3 {
			m, err := st.Get(t.Context(), id(i))
			if err != nil {
				t.Fatal(err)
			}
			m.Embedding = vectorOf(1000 + i)
			if _, err := st.Put(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(file(dir, "vector_index")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dir+".old", file(dir, "vector_index")); err != nil {
			t.Fatal(err)
		}
	}, wants: []want{behind}, plan: []repair.Verb{repair.RebuildVectors},
		changed: []string{id(0), id(1), id(2), groupID(0), groupID(1), groupID(2), "near 0", "near 1", "near 2", "near 3", "near 4"}},
	{name: "vectors of another store", do: func(t *testing.T, dir string) {
		other := groupStore(t)
		if err := os.RemoveAll(file(dir, "vector_index")); err != nil {
			t.Fatal(err)
		}
		fixture.CopyDir(t, file(other, "vector_index"), file(dir, "vector_index"))
	}, wants: []want{vectorsDamaged("mapping.json", -1)}, plan: []repair.Verb{repair.RebuildVectors}},
	{name: "a member's file is deleted", do: func(t *testing.T, dir string) {
		remove(t, file(dir, memoryPath(7)))
	}, wants: []want{{repair.MemoryMissing, memoryPath(7), -1, repair.ByLog, repair.Healable}}, plan: []repair.Verb{repair.Restore}},
}

var behind = want{repair.VectorsBehind, "vector_index/mapping.json", -1, repair.ByDocuments, repair.Healable}

func vectorsDamaged(name string, offset int64) want {
	return want{repair.VectorsDamaged, "vector_index/" + name, offset, repair.ByDocuments, repair.Healable}
}

func allGroups(k repair.Kind) (list []want) {
	for i := range groups {
		list = append(list, want{k, groupPath(i), -1, repair.ByLog, repair.Healable})
	}
	return list
}

// TestGroups: damage to assemblies and vectors is found, named and repaired.
func TestGroups(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for i, h := range groupHarms {
		if i%proofs.Every(1) != 0 {
			continue
		}
		t.Run(strings.ReplaceAll(h.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			h.run(t)
		})
	}
}

func TestGroupsClean(t *testing.T) {
	t.Parallel()
	dir := groupStore(t)
	check(t, folder(t, dir), nil)
	p := planOf(t, dir)
	if p.Summary.Memories != grouped || p.Summary.Assemblies != groups {
		t.Errorf("%+v", p.Summary)
	}
}

// TestGroupsNew: an assembly that was put into the folder by hand is adopted.
func TestGroupsNew(t *testing.T) {
	t.Parallel()
	dir := groupStore(t)
	write(t, file(dir, "assemblies/new.json"), bytes.Replace(bytesOf(t, file(dir, groupPath(0))), []byte(`"a-0"`), []byte(`"new"`), 1))
	check(t, folder(t, dir), []want{{repair.Stranger, "assemblies/new.json", -1, repair.ByAdoption, repair.Healable}})
	apply(t, planOf(t, dir))
	st := openStore(t, dir, &varve.Options{NoBackground: true})
	a, err := st.Assemblies().Get(t.Context(), "new")
	if err != nil || len(a.MemoryIDs) == 0 {
		t.Error(a, err)
	}
	check(t, verify(t, st, varve.VerifyOptions{}), []want{{repair.Quarantined, "quarantine", -1, "", repair.Info}}[:0])
}

// TestGroupsPartial: if no copy holds an assembly, its readable part is kept.
func TestGroupsPartial(t *testing.T) {
	t.Parallel()
	dir := groupStore(t)
	noLogCopies(t, dir)
	b := bytesOf(t, file(dir, groupPath(2)))
	at := bytes.Index(b, []byte(`"composite_embedding"`))
	write(t, file(dir, groupPath(2)), b[:at+30])
	check(t, folder(t, dir), []want{{repair.AssemblyInvalid, groupPath(2), anyOffset, "", repair.Lost}})
	apply(t, planOf(t, dir))
	st := openStore(t, dir, &varve.Options{NoBackground: true})
	a, err := st.Assemblies().Get(t.Context(), groupID(2))
	if err != nil || len(a.MemoryIDs) == 0 || a.Name != "group 2" {
		t.Error(a, err)
	}
	raw, err := st.Assemblies().GetRaw(t.Context(), groupID(2))
	if err != nil || !bytes.Contains(raw, []byte(repair.PartialKey)) {
		t.Errorf("%s %v", raw, err)
	}
}

// noLogCopies lets the log of a store begin again behind its present end, and removes the archive: the
// files are the only copy.
func noLogCopies(t *testing.T, dir string) {
	t.Helper()
	st := openStore(t, dir, &varve.Options{NoBackground: true})
	if _, err := st.Put(t.Context(), varve.Memory{ID: "to-be-purged", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Admin().Purge(t.Context(), "to-be-purged"); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	noCopies(t, dir)
}
