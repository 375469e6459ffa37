package repair_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/vector"
)

// stored is a vector as it is in the files.
type stored struct {
	number int64
	vector []float32
}

// rewriteVectors writes changed vectors of a store, which are valid unless they are compared with the
// documents.
func rewriteVectors(t *testing.T, dir string, change func(all [2]map[string]stored)) {
	t.Helper()
	st := openStore(t, dir, &varve.Options{NoBackground: true, ReadOnly: true})
	store := st.Admin().Stats().UUID
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	set, err := vector.Load(vfs.OS(), dir, store, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := [2]map[string]stored{{}, {}}
	for kind := range all {
		err := set.Walk(vector.Kind(kind), func(key string, number int64) error {
			row, _, _, err := set.Row(nil, vector.Kind(kind), key)
			v := make([]float32, len(row)/4)
			for i := range v {
				v[i] = math.Float32frombits(binary.LittleEndian.Uint32(row[4*i:]))
			}
			all[kind][key] = stored{number, v}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(all[0]) != grouped-grouped/12 || len(all[1]) != groups-1 {
		t.Fatalf("%d and %d vectors", len(all[0]), len(all[1]))
	}
	change(all)
	var edits [2][]vector.Edit
	for kind := range all {
		for key, s := range all[kind] {
			edits[kind] = append(edits[kind], vector.Edit{Key: key, ID: s.number})
		}
	}
	plan, err := vector.List(edits, func(dst []float32, kind vector.Kind, e vector.Edit) ([]float32, bool, error) {
		return append(dst, all[kind][e.Key].vector...), true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var chain uint64
	if _, err := fmt.Sscanf(set.Chain(), "%x", &chain); err != nil {
		t.Fatal(err)
	}
	_, err = vector.WriteBase(vector.Empty(), vector.Target{
		FS: vfs.OS(), Dir: dir, Temp: file(dir, "tmp/x"), Perm: 0o600, FolderPerm: 0o700, Store: store,
		LSN: set.LSN(), Chain: chain, Now: time.Now(), Metric: set.Metric(), Dim: set.Dim(),
	}, plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Release(); err != nil {
		t.Fatal(err)
	}
}

func drift(kind repair.Kind) want {
	return want{kind, "vector_index/mapping.json", -1, repair.ByDocuments, repair.Healable}
}

var drifts = []groupHarm{
	{name: "a memory has no vector", do: func(t *testing.T, dir string) {
		rewriteVectors(t, dir, func(all [2]map[string]stored) { delete(all[0], id(46)) })
	}, wants: []want{drift(repair.VectorMissing)}},
	{name: "an assembly has no vector", do: func(t *testing.T, dir string) {
		rewriteVectors(t, dir, func(all [2]map[string]stored) { delete(all[1], groupID(2)) })
	}, wants: []want{drift(repair.VectorMissing)}},
	{name: "a vector has no memory", do: func(t *testing.T, dir string) {
		rewriteVectors(t, dir, func(all [2]map[string]stored) { all[0]["ghost"] = stored{800000, vectorOf(77)} })
	}, wants: []want{drift(repair.VectorGhost)}},
	{name: "a vector has no assembly", do: func(t *testing.T, dir string) {
		rewriteVectors(t, dir, func(all [2]map[string]stored) { all[1]["ghost"] = stored{800000, vectorOf(77)} })
	}, wants: []want{drift(repair.VectorGhost)}},
	{name: "a memory without embedding has a vector", do: func(t *testing.T, dir string) {
		rewriteVectors(t, dir, func(all [2]map[string]stored) { all[0][id(11)] = stored{800000, vectorOf(77)} })
	}, wants: []want{drift(repair.VectorGhost)}},
	{name: "a vector of another version", do: func(t *testing.T, dir string) {
		rewriteVectors(t, dir, func(all [2]map[string]stored) { all[0][id(46)] = stored{800000, all[0][id(46)].vector} })
	}, wants: []want{drift(repair.VectorStale)}},
	{name: "a vector of other bits", do: func(t *testing.T, dir string) {
		rewriteVectors(t, dir, func(all [2]map[string]stored) { all[0][id(46)] = stored{all[0][id(46)].number, vectorOf(5)} })
	}, wants: []want{drift(repair.VectorStale)}},
	{name: "an assembly's vector is of other bits", do: func(t *testing.T, dir string) {
		rewriteVectors(t, dir, func(all [2]map[string]stored) {
			all[1][groupID(3)] = stored{all[1][groupID(3)].number, vectorOf(5)}
		})
	}, wants: []want{drift(repair.VectorStale)}},
}

// TestDrift: vectors that are valid by themselves, and differ from those of the documents.
func TestDrift(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for _, h := range drifts {
		h.plan = []repair.Verb{repair.RebuildVectors}
		t.Run(strings.ReplaceAll(h.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			h.run(t)
		})
	}
}

// TestDriftSample: each part of a sample finds its own drift, and all parts together everything.
func TestDriftSample(t *testing.T) {
	t.Parallel()
	dir := groupStore(t)
	rewriteVectors(t, dir, func(all [2]map[string]stored) {
		for i := range 10 {
			delete(all[0], id(i))
			all[0][fmt.Sprintf("ghost-%d", i)] = stored{int64(800000 + i), vectorOf(i)}
		}
	})
	found := map[string]int{}
	for part := 1; part <= 3; part++ {
		for f, err := range varve.VerifyFolder(t.Context(), dir, options(), varve.VerifyOptions{Part: part, Parts: 3}) {
			if err != nil {
				t.Fatal(err)
			}
			if f.Kind == repair.VectorMissing || f.Kind == repair.VectorGhost {
				found[string(f.Kind)+" "+f.ID]++
			}
		}
	}
	if len(found) != 20 {
		t.Errorf("%d found: %v", len(found), found)
	}
	for what, n := range found {
		if n != 1 {
			t.Errorf("%s: found %d times", what, n)
		}
	}
}

// TestNumberTwice: a file that FAISS accepts as valid is refused here (FAILURES 34, 35).
func TestNumberTwice(t *testing.T) {
	t.Parallel()
	dir := groupStore(t)
	rewriteVectors(t, dir, func(all [2]map[string]stored) {
		all[0][id(2)] = stored{all[0][id(1)].number, all[0][id(2)].vector}
	})
	twice := false
	for _, f := range folder(t, dir) {
		twice = twice || f.Kind == repair.VectorsDamaged && strings.Contains(f.Err.Error(), id(1))
	}
	if !twice {
		t.Error("not found")
	}
	apply(t, planOf(t, dir))
	everything(t, dir)
}

// TestComposite: a composite that was edited by hand is reported with the number of the element, and
// recomputed.
func TestComposite(t *testing.T) {
	t.Parallel()
	dir := groupStore(t)
	before := everything(t, dir)
	b := bytesOf(t, file(dir, groupPath(1)))
	a, err := assembly.Decode(b, assembly.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	edit(t, file(dir, groupPath(1)), fmt.Sprint(a.CompositeEmbedding[4]), "0.123456")
	st := openStore(t, dir, &varve.Options{NoBackground: true})
	if _, err := st.Assemblies().Get(t.Context(), groupID(1)); err != nil { // adopted
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	wrong := []want{{repair.CompositeWrong, groupPath(1), -1, repair.ByRecomputing, repair.Healable}}
	found := folder(t, dir)
	check(t, found, wrong)
	if len(found) == 0 || !strings.Contains(found[0].Err.Error(), "element 4 of the composite embedding is 0.123456") {
		t.Error(found)
	}
	p := planOf(t, dir)
	if len(p.Actions) != 1 || p.Actions[0].Do != repair.Recompute {
		t.Fatal(p.Actions)
	}
	apply(t, p)
	check(t, folder(t, dir), []want{{repair.Quarantined, "quarantine", -1, "", repair.Info}})
	after := everything(t, dir)
	sameComposite(t, before[groupID(1)], after[groupID(1)])
}

func sameComposite(t *testing.T, a, b string) {
	t.Helper()
	x, err := assembly.Decode([]byte(a), assembly.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	y, err := assembly.Decode([]byte(b), assembly.DecodeOptions{})
	if err != nil || !slices.Equal(x.CompositeEmbedding, y.CompositeEmbedding) {
		t.Errorf("%v and %v: %v", x.CompositeEmbedding, y.CompositeEmbedding, err)
	}
}

// TestMissingMembers: missing members are reported, and stay unless their removal is requested.
func TestMissingMembers(t *testing.T) {
	t.Parallel()
	dir := groupStore(t)
	st := openStore(t, dir, &varve.Options{NoBackground: true})
	if _, err := st.Assemblies().Add(t.Context(), groupID(1), []string{"no-such", "nor-this"}, varve.AllowMissing()); err != nil {
		t.Fatal(err)
	}
	if err := st.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	before := everything(t, dir)
	missing := []want{{repair.AssemblyMembers, groupPath(1), -1, repair.ByTakingOut, repair.Info}}
	check(t, folder(t, dir), missing)
	p := planOf(t, dir)
	if len(p.Actions) != 0 {
		t.Error(p.Actions)
	}
	p.TakeOutMissing()
	if len(p.Actions) != 1 || p.Actions[0].Do != repair.TakeOut {
		t.Fatal(p.Actions)
	}
	r := apply(t, p)
	aside := want{repair.Quarantined, "quarantine", -1, "", repair.Info}
	check(t, folder(t, dir), []want{aside})
	after := everything(t, dir)
	if strings.Contains(after[groupID(1)], "no-such") || !strings.Contains(before[groupID(1)], "no-such") {
		t.Error(after[groupID(1)])
	}
	if kept := bytesOf(t, file(dir, r.Done[0].Where)); !bytes.Contains(kept, []byte("no-such")) {
		t.Errorf("%s", kept)
	}
}

// TestIndexMembers: a valid index that names other members than the document.
func TestIndexMembers(t *testing.T) {
	t.Parallel()
	dir := groupStore(t)
	before := everything(t, dir)
	st := openStore(t, dir, &varve.Options{NoBackground: true, ReadOnly: true})
	store := st.Admin().Stats().UUID
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	set, err := index.Load(vfs.OS(), dir, index.Want{Store: store}, nil)
	if err != nil {
		t.Fatal(err)
	}
	line, _, err := set.Get(nil, index.Assemblies, groupID(1))
	if err != nil {
		t.Fatal(err)
	}
	members, err := index.Pairs(set, index.Members, groupID(1))
	if err != nil {
		t.Fatal(err)
	}
	e, err := index.ParseLine(line)
	if err != nil {
		t.Fatal(err)
	}
	members[0] = id(47)
	at, dim, _ := index.Vectors(set)
	chain, _ := index.Chain(set)
	if _, err := index.WriteBase(set, index.Target{
		FS: vfs.OS(), Dir: dir, Temp: file(dir, "tmp/x"), Perm: 0o600, Store: store, LSN: set.LSN(), Chain: chain, Now: time.Now(), Vectors: at, Dimension: dim, VectorsKnown: true,
	}, index.Changes{List: []index.Change{{Section: index.Assemblies, ID: groupID(1), Version: e.Version, Finished: line, Members: members}}}); err != nil {
		t.Fatal(err)
	}
	if err := set.Release(); err != nil {
		t.Fatal(err)
	}
	check(t, folder(t, dir), []want{{repair.IndexMembers, "memory_index.json", -1, repair.ByFiles, repair.Healable}})
	apply(t, planOf(t, dir))
	compare(t, before, everything(t, dir))
}

// TestNoEmbeddingLeft: where no memory has a vector anymore, the vector files are removed.
func TestNoEmbeddingLeft(t *testing.T) {
	t.Parallel()
	dir := groupStore(t)
	st := openStore(t, dir, &varve.Options{NoBackground: true})
	ctx := context.Background()
	for g := range groups {
		if err := st.Assemblies().Delete(ctx, groupID(g)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range grouped {
		if err := st.Delete(ctx, id(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	check(t, folder(t, dir), nil)
	write(t, file(dir, "vector_index/mapping.json"), []byte("{}"))
	check(t, folder(t, dir), []want{vectorsDamaged("mapping.json", anyOffset)})
	apply(t, planOf(t, dir))
}
