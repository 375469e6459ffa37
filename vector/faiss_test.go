package vector

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
)

// python runs a script in the interpreter that has FAISS.
func python(t *testing.T, script string, args ...string) []byte {
	t.Helper()
	const interpreter = "/usr/bin/python3"
	if err := exec.Command(interpreter, "-c", "import faiss").Run(); err != nil {
		missing := "FAISS is the judge of these files: apt install python3-faiss"
		if os.Getenv("VARVE_CI") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	cmd := exec.Command(interpreter, append([]string{"-c", script}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	return out
}

func writeOS(t *testing.T, dir string, m *model) *View {
	t.Helper()
	to := m.target(vfs.OS())
	to.Dir, to.Temp = dir, filepath.Join(dir, "index.x")
	if _, err := WriteBase(Empty(), to, m.take(t)); err != nil {
		t.Fatal(err)
	}
	s, err := Load(vfs.OS(), dir, testStore, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewView(s, IP, 0)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const judge = `
import sys, json, faiss, numpy as np
index = faiss.read_index(sys.argv[1])
q = np.fromfile(sys.argv[2], dtype='<f4').reshape(-1, index.d)
d, i = index.search(q, 10)
mine = type(faiss.downcast_index(index)).__name__
# The same vectors, written by FAISS itself.
inner = faiss.downcast_index(faiss.downcast_index(index).index)
x = faiss.vector_to_array(inner.codes if hasattr(inner, 'codes') else inner.xb)
x = x.view('<f4').reshape(-1, index.d)
flat = faiss.IndexFlatIP(index.d) if index.metric_type == 0 else faiss.IndexFlatL2(index.d)
again = faiss.IndexIDMap2(flat)
again.add_with_ids(x, faiss.vector_to_array(faiss.downcast_index(index).id_map))
faiss.write_index(again, sys.argv[3])
json.dump({'type': mine, 'inner': type(inner).__name__, 'n': index.ntotal, 'ids': i.tolist(), 'd': d.tolist()}, sys.stdout)
`

// TestFAISS: FAISS opens the file, finds the same ids with the same distances,
// and writes the same bytes.
func TestFAISS(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for _, metric := range []Metric{IP, L2} {
		t.Run(metric.String(), func(t *testing.T) {
			dir := t.TempDir()
			seed := proofs.Seed(t, 0)
			r := rand.New(rand.NewPCG(seed, 0))
			m := newModel(100, metric)
			for i := range 500 {
				v := make([]float32, m.dim)
				for j := range v {
					v[j] = float32(r.NormFloat64())
				}
				m.put(Memories, fmt.Sprint("id", i), v)
			}
			v := writeOS(t, dir, m)
			defer v.Release()
			var raw []byte
			var queries [][]float32
			for range 20 {
				q := make([]float32, m.dim)
				for j := range q {
					q[j] = float32(r.NormFloat64())
				}
				queries = append(queries, q)
				raw = m.metric.Row(raw, q)
			}
			file, query, again := filepath.Join(dir, filepath.FromSlash(baseFAISS)), filepath.Join(dir, "q"), filepath.Join(dir, "again")
			if err := os.WriteFile(query, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			var said struct {
				Type, Inner string
				N           int64
				IDs         [][]int64
				D           [][]float64
			}
			if err := json.Unmarshal(python(t, judge, file, query, again), &said); err != nil {
				t.Fatal(err)
			}
			if said.N != 500 || said.Type != "IndexIDMap2" || !strings.HasPrefix(said.Inner, "IndexFlat") {
				t.Fatalf("%+v", said)
			}
			for i, q := range queries {
				hits, err := v.Search(context.Background(), Query{Vector: q, Limit: 10})
				if err != nil {
					t.Fatal(err)
				}
				for j, h := range hits {
					want := said.D[i][j]
					if metric == L2 {
						want = 1 / (1 + want)
					}
					if h.ID != said.IDs[i][j] || h.Score-want > 1e-6 || want-h.Score > 1e-6 {
						t.Fatalf("seed %d, query %d, hit %d: %v, FAISS says %d, %v", seed, i, j, h, said.IDs[i][j], want)
					}
				}
			}
			ours, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := os.ReadFile(again)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(ours, theirs) {
				t.Fatal("FAISS writes other bytes for the same vectors")
			}
		})
	}
}

const author = `
import sys, faiss, numpy as np
rng = np.random.default_rng(5)
n, d = int(sys.argv[2]), 7
x = rng.standard_normal((n, d)).astype('float32')
ids = np.array([(i * 0x1fffffffffffff1) % (2**63 - 1) for i in range(n)], dtype='int64')
for name, make in (('ip', faiss.IndexFlatIP), ('l2', faiss.IndexFlatL2)):
    for wrap, cls in (('map', faiss.IndexIDMap), ('map2', faiss.IndexIDMap2)):
        index = cls(make(d))
        if n:
            index.add_with_ids(x, ids)
        faiss.write_index(index, sys.argv[1] + '/' + name + '.' + wrap)
x.tofile(sys.argv[1] + '/x'); ids.tofile(sys.argv[1] + '/ids')
`

// TestReadIndex reads what FAISS wrote.
func TestReadIndex(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for _, n := range []int{0, 1, 50} {
		dir := t.TempDir()
		python(t, author, dir, fmt.Sprint(n))
		x, err := os.ReadFile(filepath.Join(dir, "x"))
		if err != nil {
			t.Fatal(err)
		}
		ids, err := os.ReadFile(filepath.Join(dir, "ids"))
		if err != nil {
			t.Fatal(err)
		}
		for name, metric := range map[string]Metric{"ip.map": IP, "ip.map2": IP, "l2.map": L2, "l2.map2": L2} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			index, err := ReadIndex(name, bytes.NewReader(b), int64(len(b)))
			if err != nil {
				t.Fatal(err)
			}
			if index.Len() != int64(n) || index.Dim() != 7 || index.Metric() != metric {
				t.Fatal(name, index.Len(), index.Dim(), index.Metric())
			}
			for row := range index.Len() {
				id := int64(binary.LittleEndian.Uint64(ids[8*row:]))
				if got := index.RowOf(id); got != row || index.ID(row) != id {
					t.Fatal(name, row, got, id)
				}
				v, err := index.Vector(nil, row)
				if err != nil || string(appendRow(nil, v)) != string(x[28*row:28*(row+1)]) {
					t.Fatal(name, row, v, err)
				}
			}
		}
	}
}

// TestFilesThatFAISSAccepts: a list of ids of the wrong length, a duplicate id, and other faults in a
// file are refused, and the error says where.
func TestFilesThatFAISSAccepts(t *testing.T) {
	t.Parallel()
	good := func() []byte {
		s := shape{metric: IP, dim: 2, rows: 3}
		b := s.header()
		for i := range 6 {
			b = appendRow(b, []float32{float32(i)})
		}
		b = append(b, 3, 0, 0, 0, 0, 0, 0, 0)
		for i := range byte(3) {
			b = append(b, i+1, 0, 0, 0, 0, 0, 0, 0)
		}
		return b
	}
	for name, c := range map[string]struct {
		change func(b []byte) []byte
		offset int64
	}{
		"fewer ids":        {func(b []byte) []byte { b[106] = 2; return b[:len(b)-8] }, 130},
		"count of ids":     {func(b []byte) []byte { b[106] = 2; return b }, 106},
		"an id twice":      {func(b []byte) []byte { b[122] = 1; return b }, 122},
		"something behind": {func(b []byte) []byte { return append(b, 0) }, 138},
		"dimensions":       {func(b []byte) []byte { b[41] = 3; return b }, 41},
		"vectors":          {func(b []byte) []byte { b[8], b[45] = 4, 4; b[74] = 8; return b }, 138},
		"huge":             {func(b []byte) []byte { b[15], b[52] = 0x7f, 0x7f; return b }, 8},
		"metric":           {func(b []byte) []byte { b[33] = 4; return b }, 33},
		"inner":            {func(b []byte) []byte { b[40] = '2'; return b }, 37},
		"another index":    {func(b []byte) []byte { copy(b[37:], "IwFl"); return b }, 37},
		"not FAISS":        {func(b []byte) []byte { b[0] = 'x'; return b }, 0},
		"cut":              {func(b []byte) []byte { return b[:50] }, 0},
		"empty":            {func(b []byte) []byte { return nil }, 0},
		"no dimension":     {func(b []byte) []byte { b[4], b[41] = 0, 0; return b }, 4},
	} {
		b := c.change(good())
		_, err := ReadIndex("x.faiss", bytes.NewReader(b), int64(len(b)))
		var at *errs.CorruptionError
		if !errors.As(err, &at) || at.Offset != c.offset || at.Path != "x.faiss" {
			t.Errorf("%s: %v, want byte %d", name, err, c.offset)
		}
	}
	b := good()
	if _, err := ReadIndex("x.faiss", bytes.NewReader(b), int64(len(b))); err != nil {
		t.Error(err)
	}
}

// A file that is as long as its header requires, but empty, takes no memory for its ids; one with more
// vectors than the limit is refused before any of it is read.
func TestReadIndexLies(t *testing.T) {
	for name, c := range map[string]struct {
		rows int64
		is   error
	}{"a hole": {100_000_000, errs.ErrCorrupt}, "too many": {maxRows + 1, errs.ErrTooLarge}} {
		s := shape{metric: IP, dim: 1, rows: c.rows}
		path := filepath.Join(t.TempDir(), "hole.faiss")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		_, err = f.Write(s.header())
		if err == nil {
			_, err = f.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(c.rows)), s.idsAt())
		}
		if err == nil {
			err = f.Truncate(s.size())
		}
		if err != nil {
			t.Skipf("a sparse file of %d bytes cannot be made here; run it where the file system has them: %v", s.size(), err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = ReadIndex("hole.faiss", f, s.size())
		runtime.ReadMemStats(&after)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), "hole.faiss") {
			t.Errorf("%s: %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
			t.Errorf("%s: %d bytes of memory were taken", name, n)
		}
	}
}

func FuzzReadIndex(f *testing.F) {
	s := shape{metric: L2, dim: 1, rows: 1}
	f.Add(append(appendRow(s.header(), []float32{1}), 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := ReadIndex("x", bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for row := range x.Len() {
			if _, err := x.Vector(nil, row); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestReadMapping(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"flat":     {`{"mem_1": 0, "mem_2": 9223372036854775806, "asm:asm_1": 7, "end": 3}`, "0 mem_1 0;0 mem_2 9223372036854775806;1 asm_1 7;0 end 3;"},
		"ours":     {`{"ids": {"a":8,"ids":16},"assemblies": {"x":24},"metadata": {"vector_count":2},"end":"00"}`, "0 a 8;0 ids 16;1 x 24;"},
		"empty":    {`{}`, ""},
		"float":    {`{"a": 1.5}`, "field"},
		"too long": {`{"a": 9223372036854775808}`, "field"},
		"text":     {`{"a": "1"}`, "field"},
		"array":    {`[1]`, "invalid"},
		"cut":      {`{"a": 1, "b`, "invalid"},
		"twice":    {`{"a": 1} {"b": 2}`, "invalid"},
		"nothing":  {``, "invalid"},
	} {
		var got strings.Builder
		err := ReadMapping(strings.NewReader(c.text), func(kind Kind, id string, n int64, err error) error {
			if err != nil {
				return err
			}
			fmt.Fprint(&got, kind, " ", id, " ", n, ";")
			return nil
		})
		var field *errs.FieldError
		switch c.want {
		case "field":
			if !errors.As(err, &field) {
				t.Errorf("%s: %v", name, err)
			}
		case "invalid":
			if !errors.Is(err, errs.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		default:
			if err != nil || got.String() != c.want {
				t.Errorf("%s: %s, %v", name, got.String(), err)
			}
		}
	}
}
