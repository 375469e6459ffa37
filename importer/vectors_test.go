package importer

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/vector"
)

// faissFile returns a vector file as FAISS writes it; see package vector.
func faissFile(magic string, m vector.Metric, d int, ids []int64, rows []float32) string {
	le, flat := binary.LittleEndian, "IxFI"
	if m == vector.L2 {
		flat = "IxF2"
	}
	var b []byte
	for _, magic := range []string{magic, flat} {
		b = le.AppendUint32(append(b, magic...), uint32(d))
		for _, n := range []uint64{uint64(len(ids)), 1 << 20, 1 << 20} {
			b = le.AppendUint64(b, n)
		}
		b = le.AppendUint32(append(b, 1), uint32(m))
	}
	b = le.AppendUint64(b, uint64(len(rows)))
	for _, x := range rows {
		b = le.AppendUint32(b, math.Float32bits(x))
	}
	b = le.AppendUint64(b, uint64(len(ids)))
	for _, id := range ids {
		b = le.AppendUint64(b, uint64(id))
	}
	return string(b)
}

// withEmbedding returns a memory file whose embedding is this JSON.
func withEmbedding(id, embedding string) string {
	return fmt.Sprintf(`{"id": %q, "embedding": %s, "content": "about %s"}`, id, embedding, id)
}

func (g got) embedding(t *testing.T, id string) []float32 {
	t.Helper()
	m, err := memstore.Decode(g.item(id).JSON, memstore.DecodeOptions{ID: id})
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	return m.Embedding
}

// sourceOfVectors has one memory of each kind, and the rows in this order. The ghost has no file, and
// the last row no name.
var sourceOfVectors = []struct {
	key, file, text string
	row             []float32
}{
	{"same", "same.json", withEmbedding("same", "[0.6,0.8]"), []float32{0.6, 0.8}},
	{"unit", "unit.json", withEmbedding("unit", "[3,4]"), []float32{0.6, 0.8}},
	{"null", "null.json", withEmbedding("null", "null"), []float32{1, 0}},
	{"none", "memories/none.json", mem("none"), []float32{0.1, 0.3}},
	{"empty", "empty.json", withEmbedding("empty", "[ ]"), []float32{1e-7, 1}},
	{"stale", "stale.json", withEmbedding("stale", "[1,0]"), []float32{0, 1}},
	{"zero", "zero.json", mem("zero"), []float32{0, 0}},
	{"nan", "nan.json", mem("nan"), []float32{float32(math.NaN()), 1}},
	{"short", "short.json", withEmbedding("short", "[1]"), []float32{0, 1}},
	{"printed", "printed.json", withEmbedding("printed", `"[0.6 0.8]"`), []float32{0.6, 0.8}},
	{"asm:asm:g", "assemblies/asm-g.json", `{"assembly_id":"asm:g","memory_ids":["same"]}`, []float32{0, -1}},
	{"ghost", "", "", []float32{0, 1}},
	{"", "", "", []float32{0, 1}},
}

// TestVectorFiles: the vectors of a vector file are used, whichever of the three mappings refers to
// them; embeddings in documents take precedence; nothing is dropped silently.
func TestVectorFiles(t *testing.T) {
	t.Parallel()
	for _, form := range []struct {
		name   string
		number func(row int) int64 // in the mapping
		id     func(row int) int64 // in the file
	}{
		{"faiss_index.bin.mapping.json", func(i int) int64 { return 1<<60 + int64(i) }, func(i int) int64 { return 1<<60 + int64(i) }},
		{"id_to_index_mapping.json", func(i int) int64 { return int64(i) }, func(i int) int64 { return 1<<60 + int64(i) }},
		{"id_to_index_mapping.json", func(i int) int64 { return 20 - int64(i) }, func(i int) int64 { return 20 - int64(i) }},
		{"id_to_index.json", func(i int) int64 { return int64(i) }, func(i int) int64 { return 1<<60 + int64(i) }},
		{"id_to_index.json", func(i int) int64 { return 1<<60 + int64(i) }, func(i int) int64 { return 1<<60 + int64(i) }},
		{"vector_index/id_to_index.json", func(i int) int64 { return 1<<60 + int64(i) }, func(i int) int64 { return 1<<60 + int64(i) }},
	} {
		mapping := map[string]int64{}
		var files []string
		var ids []int64
		var rows []float32
		for i, s := range sourceOfVectors {
			ids, rows = append(ids, form.id(i)), append(rows, s.row...)
			if s.key != "" {
				mapping[s.key] = form.number(i)
			}
			if s.file != "" {
				files = append(files, s.file, s.text)
			}
		}
		file := strings.TrimSuffix(form.name, filepath.Base(form.name)) + "faiss_index.bin"
		files = append(files, form.name, text(mapping), file, faissFile("IxM2", vector.IP, 2, ids, rows))
		g := drain(t, tree(t, files...), Synthians, Options{})
		g.expect(t,
			"vector taken null.json null taken", "vector taken memories/none.json none taken", "vector taken empty.json empty taken", "vector taken assemblies/asm-g.json asm:g taken",
			"stale vector stale.json stale taken", "stale vector zero.json zero taken", "stale vector nan.json nan taken",
			"vector file "+file+" taken", "ghost "+file, "ghost "+form.name+" ghost")
		for id, want := range map[string][]float32{
			"same": {0.6, 0.8}, "unit": {3, 4}, "null": {1, 0}, "none": {0.1, 0.3}, "empty": {1e-7, 1}, "stale": {1, 0}, "zero": nil, "nan": nil, "short": {1}, "printed": {0.6, 0.8},
		} {
			if got := g.embedding(t, id); !slices.Equal(got, want) {
				t.Errorf("%s: %s has %v, not %v", form.name, id, got, want)
			}
			if taken := g.item(id).Vector; taken != (id == "null" || id == "none" || id == "empty") {
				t.Errorf("%s: %s: taken: %v", form.name, id, taken)
			}
		}
		if a, it := g.assembly(t, "asm:g"); !slices.Equal(a.CompositeEmbedding, []float32{0, -1}) || !it.Vector {
			t.Errorf("%s: %+v", form.name, a)
		}
		if text := string(g.item("null").JSON); !strings.HasPrefix(text, `{"id":"null","embedding":[1,0],"content"`) {
			t.Errorf("the embedding is not in its place: %s", text)
		}
		want := Vectors{Path: file, Index: "IndexFlatIP", Dimension: 2, Rows: 13, Same: 3, Taken: 4, Stale: 1, Unfit: 1, Useless: 2, Unclaimed: 1}
		if len(g.report.Vectors) != 1 || g.report.Vectors[0] != want {
			t.Errorf("%s: %+v, not %+v", form.name, g.report.Vectors, want)
		}
	}
}

// FAILURES 33: the mapping is lost; the numbers are the md5 of the ids.
func TestVectorsWithoutMapping(t *testing.T) {
	t.Parallel()
	ids := []int64{md5Number(key{vector.Memories, "a"}), md5Number(key{vector.Assemblies, "x"}), md5Number(key{vector.Memories, "nobody"})}
	if n := md5Number(key{vector.Memories, "mem_a334c66cc2dd"}); n != 3175314461854146565 { // of a real store
		t.Fatal(n)
	}
	g := drain(t, tree(t, "a.json", mem("a"), "b.json", mem("b"), "assemblies/x.json", `{"assembly_id":"x","memory_ids":["a"]}`,
		"faiss_index.bin", faissFile("IxMp", vector.L2, 1, ids, []float32{7, 8, 9})), "", Options{})
	g.expect(t, "vector taken a.json a taken", "vector taken assemblies/x.json x taken", "ghost faiss_index.bin")
	if v := g.embedding(t, "a"); !slices.Equal(v, []float32{7}) || g.item("b").Vector {
		t.Error(v)
	}
}

// A row that two ids claim belongs to neither, unless its number is the md5 of one of them.
func TestContestedRows(t *testing.T) {
	t.Parallel()
	ids := []int64{5, md5Number(key{vector.Memories, "c"})}
	g := drain(t, tree(t, "a.json", mem("a"), "b.json", mem("b"), "c.json", mem("c"), "d.json", mem("d"),
		"faiss_index.bin.mapping.json", text(map[string]int64{"a": ids[0], "d": ids[1]}),
		"id_to_index.json", text(map[string]int64{"b": ids[0], "c": 99}),
		"faiss_index.bin", faissFile("IxMp", vector.L2, 1, ids, []float32{7, 8})), "", Options{})
	g.expect(t, "vector number id_to_index.json b taken", "vector taken c.json c taken")
}

// Vectors of another dimension than that of the documents' embeddings are not given to documents without
// one.
func TestVectorsOfAnotherDimension(t *testing.T) {
	t.Parallel()
	g := drain(t, tree(t, "a.json", mem("a"), "b.json", withEmbedding("b", "[1,2,3]"), "c.json", mem("c"),
		"id_to_index.json", `{"a":1,"b":2,"c":3}`, "faiss_index.bin", faissFile("IxMp", vector.L2, 1, []int64{1, 2, 3}, []float32{7, 8, 9})), "", Options{})
	problems := g.of(KindVectors)
	if len(g.problems) != 1 || len(problems) != 1 || !problems[0].Taken ||
		!strings.Contains(problems[0].Reason, "the embeddings of 1 document have another") ||
		!strings.Contains(problems[0].Reason, "2 documents without an embedding") || g.embedding(t, "a") != nil {
		t.Errorf("%v", g.problems)
	}
	if v := g.report.Vectors[0]; v.Unfit != 3 || v.Taken != 0 {
		t.Errorf("%+v", v)
	}
}

// No memory is lost if a vector file is damaged, or is no vector file.
func TestVectorFilesThatAreNotRight(t *testing.T) {
	t.Parallel()
	good := faissFile("IxMp", vector.IP, 1, []int64{1, 2}, []float32{1, -1})
	for name, c := range map[string]struct{ file, says string }{
		"fewer ids": {good[:90] + "\x01" + good[91:len(good)-8],
			"bytes, but a file of 2 vectors with 1 dimensions has"},
		"count": {good[:90] + "\x01" + good[91:], "the number of ids is 1, but the number of vectors is 2"},
		"twice": {good[:106] + "\x01" + good[107:], "duplicate id: 1, in rows 0 and 1"},
		"torn":  {good[:100], "100 bytes, but a file of 2 vectors"},
		"empty": {"", "a file of 0 bytes is too short"},
		"hnsw":  {"IHNf" + good[4:], "an IndexHNSWFlat (IHNf): the outer index must be an IndexIDMap"},
		"ivf":   {good[:37] + "IwFl" + good[41:], "an IndexIVFFlat (IwFl): the inner index must be an IndexFlatIP"},
		"bare": {good[37:] + strings.Repeat("\x00", 60),
			"an IndexFlatIP (IxFI): the outer index must be an IndexIDMap"},
		"text": {strings.Repeat("hello ", 40), `"hell": not a known FAISS index`},
	} {
		g := drain(t, tree(t, "a.json", mem("a"), "b.json", withEmbedding("b", "[1]"), "id_to_index.json", `{"a":1,"b":2}`, "faiss_index.bin", c.file), "", Options{})
		p := g.of(KindVectors)
		if len(g.items) != 2 || len(g.problems) != 1 || len(p) != 1 || p[0].Taken || !strings.Contains(p[0].Reason, c.says) {
			t.Errorf("%s: %v", name, g.problems)
		}
	}
	dir := tree(t, "a.json", mem("a"), "faiss_index.bin/x", "", "id_to_index.json", `{"a":1,`)
	g := drain(t, dir, "", Options{})
	g.expect(t, "index id_to_index.json", "not a memory faiss_index.bin")
}

const faissAuthor = `
import sys, json, faiss, numpy as np
out, metric, wrap, kind = sys.argv[1:]
rng = np.random.default_rng(7)
n, d = 40, 8
x = rng.standard_normal((n, d)).astype('float32')
if metric == 'ip':
    faiss.normalize_L2(x)
ids = np.array([(i * 0x1fffffffffffff1 + 3) % (2**63 - 1) for i in range(n)], dtype='int64')
flat = {'flat': lambda: faiss.IndexFlatIP(d) if metric == 'ip' else faiss.IndexFlatL2(d),
        'hnsw': lambda: faiss.IndexHNSWFlat(d, 4),
        'ivf': lambda: faiss.index_factory(d, 'IVF2,Flat')}[kind]()
if kind == 'ivf':
    flat.train(x)
index = getattr(faiss, wrap)(flat)
index.add_with_ids(x, ids)
gone = 0
if kind == 'flat' and wrap == 'IndexIDMap2':
    gone = index.remove_ids(ids[:3])
faiss.write_index(index, out)
json.dump({'x': [[float(v) for v in row] for row in x[gone:]], 'ids': ids[gone:].tolist()}, sys.stdout)
`

// TestVectorFilesOfFAISS: every bit that FAISS wrote is imported.
func TestVectorFilesOfFAISS(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	const interpreter = "/usr/bin/python3"
	if err := exec.Command(interpreter, "-c", "import faiss").Run(); err != nil {
		missing := "FAISS is the judge of these files: apt install python3-faiss"
		if os.Getenv("VARVE_CI") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	for _, c := range []struct{ metric, wrap, kind string }{
		{"ip", "IndexIDMap", "flat"}, {"ip", "IndexIDMap2", "flat"}, {"l2", "IndexIDMap", "flat"}, {"l2", "IndexIDMap2", "flat"},
		{"l2", "IndexIDMap", "hnsw"}, {"l2", "IndexIDMap2", "ivf"},
	} {
		file := filepath.Join(t.TempDir(), "faiss_index.bin")
		cmd := exec.Command(interpreter, "-c", faissAuthor, file, c.metric, c.wrap, c.kind)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr.Bytes())
		}
		var said struct {
			X   [][]float64
			IDs []int64
		}
		if err := json.Unmarshal(out, &said); err != nil || len(said.X) < 37 {
			t.Fatal(len(said.X), err)
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		mapping := map[string]int64{}
		files := []string{"faiss_index.bin", string(raw)}
		for i, id := range said.IDs {
			name := fmt.Sprintf("m%02d", i)
			mapping[name] = id
			files = append(files, name+".json", mem(name))
		}
		g := drain(t, tree(t, append(files, "faiss_index.bin.mapping.json", text(mapping))...), "", Options{})
		if c.kind != "flat" {
			if p := g.of(KindVectors); len(p) != 1 || len(g.problems) != 1 || len(g.items) != len(said.IDs) {
				t.Errorf("%v: %v", c, g.problems)
			}
			continue
		}
		if len(g.of(KindVector)) != len(said.IDs) || len(g.problems) != len(said.IDs) {
			t.Fatalf("%v: %v", c, g.problems)
		}
		for i, row := range said.X {
			v := g.embedding(t, fmt.Sprintf("m%02d", i))
			for j, x := range row {
				if math.Float32bits(v[j]) != math.Float32bits(float32(x)) {
					t.Fatalf("%v: row %d: %v, not %v", c, i, v, row)
				}
			}
		}
		if v := g.report.Vectors; len(v) != 1 || v[0].Index != "IndexFlat"+strings.ToUpper(c.metric) {
			t.Errorf("%+v", v)
		}
	}
}

// TestVectorsOfAStore: base and delta of a Varve store that lost its config.json.
func TestVectorsOfAStore(t *testing.T) {
	t.Parallel()
	for _, metric := range []vector.Metric{vector.IP, vector.L2} {
		dir := tree(t, "memories/a.json", mem("a"), "memories/b.json", mem("b"), "memories/c.json", mem("c"), "memories/d.json", withEmbedding("d", "[0,2]"),
			"assemblies/g.json", `{"assembly_id":"g","memory_ids":["a"]}`, "memory_index.json", `{"memories":{"a":"memories/a.json","b":"memories/b.json","c":"memories/c.json","d":"memories/d.json"},"assemblies":{"g":"assemblies/g.json"}}`)
		to := vector.Target{FS: vfs.OS(), Dir: dir, Temp: filepath.Join(dir, "temp"), Store: "6a3c0f5e-0000-4000-8000-000000000001",
			LSN: 64, Now: time.Unix(1e9, 0), Metric: metric, Dim: 2}
		at := map[int64][]float32{8: {1, 0}, 16: {0, 1}, 24: {1, 0}, 32: {0, 2}, 40: {0, -1}, 48: {1, 0}, 72: {0, 1}}
		plan := func(memories, groups []vector.Edit) vector.Plan {
			p, err := vector.List([2][]vector.Edit{memories, groups}, func(dst []float32, _ vector.Kind, e vector.Edit) ([]float32, bool, error) {
				return append(dst, at[e.ID]...), true, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		if _, err := vector.WriteBase(vector.Empty(), to, plan([]vector.Edit{{Key: "a", ID: 8}, {Key: "b", ID: 16}, {Key: "c", ID: 24}, {Key: "d", ID: 32}, {Key: "gone", ID: 48}}, []vector.Edit{{Key: "g", ID: 40}})); err != nil {
			t.Fatal(err)
		}
		set, err := vector.Load(vfs.OS(), dir, to.Store, nil)
		if err != nil {
			t.Fatal(err)
		}
		to.LSN = 128
		_, err = vector.WriteDelta(set, to, plan([]vector.Edit{{Key: "a", ID: 72}, {Key: "c"}}, nil))
		if rerr := set.Release(); err != nil || rerr != nil {
			t.Fatal(err, rerr)
		}
		g := drain(t, dir, Synthians, Options{})
		g.expect(t, "vector taken memories/a.json a taken", "vector taken memories/b.json b taken", "vector taken assemblies/g.json g taken", "ghost vector_index/mapping.json gone")
		if a, b, c := g.embedding(t, "a"), g.embedding(t, "b"), g.embedding(t, "c"); !slices.Equal(a, at[72]) || !slices.Equal(b, at[16]) || c != nil {
			t.Error(metric, a, b, c)
		}
		if a, _ := g.assembly(t, "g"); !slices.Equal(a.CompositeEmbedding, at[40]) {
			t.Errorf("%+v", a)
		}
	}
}

func TestAlike(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		row, embedding []float32
		same           bool
	}{
		{[]float32{3, 4}, []float32{3, 4}, true}, {[]float32{0.6, 0.8}, []float32{3, 4}, true}, {[]float32{0.60001, 0.8}, []float32{3, 4}, true},
		{[]float32{6, 8}, []float32{3, 4}, false}, {[]float32{0, 0}, []float32{0, 0}, true}, {[]float32{1, 0}, []float32{0, 0}, false},
		{[]float32{0, 0}, []float32{3, 4}, false}, {[]float32{0.8, 0.6}, []float32{3, 4}, false}, {[]float32{-3, -4}, []float32{3, 4}, false},
	} {
		if alike(c.row, c.embedding) != c.same {
			t.Errorf("%+v", c)
		}
	}
}

// Rows counted from 0 and ids counted from 1 look almost the same: a number that could be either gives
// no row, rather than the neighbor's.
func TestOrdinalsLikeIDs(t *testing.T) {
	t.Parallel()
	for name, form := range map[string]struct {
		ids     []int64
		numbers []int64
		want    []string // the row that each gets
	}{
		"ids from 1, rows from 0": {[]int64{1, 2, 3}, []int64{0, 1, 2}, []string{"", "", ""}},
		"ids with a ghost":        {[]int64{1, 2, 3}, []int64{3, 7, 1}, []string{"c", "", "a"}},
		"rows only":               {[]int64{11, 12, 13}, []int64{2, 1, 0}, []string{"c", "b", "a"}},
		"ids only":                {[]int64{2, 1, 0}, []int64{0, 1, 2}, []string{"c", "b", "a"}},
	} {
		rows := []float32{1, 0, 0, 1, -1, 0}
		of := map[string][]float32{"": nil, "a": {1, 0}, "b": {0, 1}, "c": {-1, 0}}
		mapping := map[string]int64{}
		var files []string
		for i, n := range form.numbers {
			id := string(rune('x' + i))
			mapping[id] = n
			files = append(files, id+".json", mem(id))
		}
		files = append(files, "id_to_index_mapping.json", text(mapping), "faiss_index.bin", faissFile("IxM2", vector.IP, 2, form.ids, rows))
		g := drain(t, tree(t, files...), Synthians, Options{})
		for i, want := range form.want {
			id := string(rune('x' + i))
			if got := g.embedding(t, id); !slices.Equal(got, of[want]) {
				t.Errorf("%s: %s, number %d, has %v, want %v", name, id, form.numbers[i], got, of[want])
			}
		}
	}
}
