package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/intake"
	"github.com/varve-db/varve/importer"
)

const madeByFAISS = `
import sys, json, hashlib, faiss, numpy as np
folder = sys.argv[1]
rng = np.random.default_rng(3)
x = rng.standard_normal((5, 4)).astype('float32')
number = lambda id: int(hashlib.md5(id.encode()).hexdigest(), 16) % (2**63 - 1)
ids = ['a', 'b', 'c', 'asm:g', 'nobody']
index = faiss.IndexIDMap(faiss.IndexFlatL2(4))
index.add_with_ids(x, np.array([number(id) for id in ids], dtype='int64'))
faiss.write_index(index, folder + '/faiss_index.bin')
json.dump({id: number(id) for id in ids}, open(folder + '/faiss_index.bin.mapping.json', 'w'))
for i, id in enumerate('abc'):
    doc = {'id': id, 'content': 'about ' + id}
    if id == 'b':
        doc['embedding'] = [float(v) for v in x[1]]
    if id == 'c':
        doc['embedding'] = [1.0, 0.0, 0.0, 0.0]
    json.dump(doc, open(folder + '/' + id + '.json', 'w'))
json.dump({'assembly_id': 'g', 'memory_ids': ['gone']}, open(folder + '/asm-g.json', 'w'))
json.dump([[float(v) for v in row] for row in x], sys.stdout)
`

// TestImportVectors: what only the vector file has is found by vector, what the
// documents say stays, and a second run has nothing to do.
func TestImportVectors(t *testing.T) {
	t.Parallel()
	const interpreter = "/usr/bin/python3"
	if err := exec.Command(interpreter, "-c", "import faiss").Run(); err != nil {
		missing := "FAISS is the judge of these files: apt install python3-faiss"
		if os.Getenv("VARVE_CI") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	source := t.TempDir()
	cmd := exec.Command(interpreter, "-c", madeByFAISS, source)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var rows [][]float64
	if err == nil {
		err = json.Unmarshal(out, &rows)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	cl := &inProcess{t, t.TempDir()}
	var r intake.Report
	read := func(from string) {
		t.Helper()
		r = intake.Report{}
		if err := json.Unmarshal([]byte(cl.ok("import", from, "--store", cl.store(), "--json")), &r); err != nil {
			t.Fatal(err)
		}
	}
	read(source)
	want := importer.Vectors{Path: "faiss_index.bin", Index: "IndexFlatL2", Dimension: 4, Rows: 5, Same: 1, Taken: 2, Stale: 1}
	if r.New != 3 || r.Assemblies.New != 1 || len(r.Vectors) != 1 || r.Vectors[0] != want {
		t.Fatalf("%+v", r)
	}
	for i, id := range []string{"a", "b", "c"} {
		var d struct{ Embedding []float64 }
		if err := json.Unmarshal([]byte(cl.ok("get", id, "--store", cl.store())), &d); err != nil {
			t.Fatal(err)
		}
		row := rows[i]
		if id == "c" {
			row = []float64{1, 0, 0, 0}
		}
		for j := range row {
			if float32(d.Embedding[j]) != float32(row[j]) {
				t.Fatalf("%s: %v, not %v", id, d.Embedding, row)
			}
		}
	}
	text, err := json.Marshal(rows[0])
	if err != nil {
		t.Fatal(err)
	}
	var found struct{ Hits []struct{ ID string } }
	if err := json.Unmarshal([]byte(cl.ok("search", "--vector", string(text), "--json", "--store", cl.store())), &found); err != nil || len(found.Hits) == 0 || found.Hits[0].ID != "a" {
		t.Fatalf("%+v, %v", found, err)
	}
	cl.ok("verify", "--store", cl.store())
	read(source)
	if r.New != 0 || r.Same != 3 || r.Kept != 0 || r.Assemblies.Same != 1 {
		t.Fatalf("%+v", r)
	}
	// Cut short: the documents are taken all the same.
	whole, err := os.ReadFile(filepath.Join(source, "faiss_index.bin"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "faiss_index.bin"), whole[:len(whole)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	cl = &inProcess{t, t.TempDir()}
	read(source)
	if told := fmt.Sprint(r.Problems); r.New != 3 || len(r.Vectors) != 0 || !bytes.Contains([]byte(told), []byte("vector file")) {
		t.Fatalf("%+v", r)
	}
}
