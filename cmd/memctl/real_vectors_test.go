package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/vector"
)

const top10 = `
import sys, json, faiss, numpy as np
index = faiss.read_index(sys.argv[1])
q = np.fromfile(sys.argv[2], dtype='<f4').reshape(-1, index.d)
d, i = index.search(q, 12)
json.dump({'n': index.ntotal, 'd': index.d, 'ids': i.tolist(), 'scores': d.tolist()}, sys.stdout)
`

// TestRealVectors: a real store, imported, and each of its memories as a query:
// the 10 nearest are those that FAISS finds in the same file, number by number
// (neighbours of one score may change places).
func TestRealVectors(t *testing.T) {
	proofs.ManyProcesses(t, "a real store, whole")
	t.Parallel()
	source := proofs.SharedData(t, "synthians-6ac7868")
	const interpreter = "/usr/bin/python3"
	if err := exec.Command(interpreter, "-c", "import faiss").Run(); err != nil {
		missing := "FAISS is the judge of these files: apt install python3-faiss"
		if os.Getenv("VARVE_CI") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	ctx := context.Background()
	cl := &inProcess{t, t.TempDir()}
	cl.ok("import", source, "--from", "synthians", "--store", cl.store(), "--json")
	st, err := varve.Open(ctx, cl.store(), &varve.Options{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	report, err := storetest.CheckVectors(ctx, st)
	if err != nil || report.Drift() != 0 || len(report.Misfits) != 0 || report.Vectors != 358 || report.Dimension != 768 {
		t.Fatalf("%+v, %v", report, err)
	}
	if err := st.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	mapping, err := os.Open(filepath.Join(cl.store(), filepath.FromSlash(vector.BaseMapping)))
	if err != nil {
		t.Fatal(err)
	}
	defer mapping.Close()
	name := map[int64]string{}
	if err := vector.ReadMapping(mapping, func(_ vector.Kind, id string, n int64, err error) error { name[n] = id; return err }); err != nil || len(name) != 358 {
		t.Fatal(len(name), err)
	}
	var queries []varve.Memory
	var raw []byte
	zero := 0
	for m, err := range st.Memories(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if vector.Norm(m.Embedding) == 0 {
			zero++
			continue
		}
		queries, raw = append(queries, m), vector.IP.Row(raw, m.Embedding)
	}
	if zero != 25 || len(queries) != 333 {
		t.Fatalf("%d zero vectors, %d others", zero, len(queries))
	}
	file := filepath.Join(t.TempDir(), "queries")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(interpreter, "-c", top10, filepath.Join(cl.store(), vector.Folder, "memory_vectors.faiss"), file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	var said struct {
		N, D   int
		IDs    [][]int64
		Scores [][]float64
	}
	if err := json.Unmarshal(out, &said); err != nil || said.N != 358 || said.D != 768 {
		t.Fatal(said.N, said.D, err)
	}
	for i, m := range queries {
		hits, err := st.Search(ctx, varve.Query{Vector: m.Embedding})
		if err != nil || len(hits) != 10 {
			t.Fatal(len(hits), err)
		}
		for j, h := range hits {
			if d := h.Score - said.Scores[i][j]; d > 1e-5 || d < -1e-5 {
				t.Fatalf("%s, hit %d: %s %v, FAISS says %s %v", m.ID, j, h.ID, h.Score, name[said.IDs[i][j]], said.Scores[i][j])
			}
			tie := false
			for k, id := range said.IDs[i] {
				d := said.Scores[i][k] - said.Scores[i][j]
				tie = tie || name[id] == h.ID && d < 1e-5 && d > -1e-5
			}
			if !tie && said.Scores[i][j]-said.Scores[i][11] > 1e-5 { // else the tie goes on behind FAISS's list
				t.Fatalf("%s, hit %d: %s %v, FAISS finds %s", m.ID, j, h.ID, h.Score, name[said.IDs[i][j]])
			}
		}
	}
}
