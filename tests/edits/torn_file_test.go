package edits

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/jsondoc"
)

// FAILURES 20: with one torn file chromem-go does not open ("unexpected EOF", without a name). Here the
// store opens, all memories are found by vector, verify names the file, and repair restores it from the
// log, byte for byte.
func TestTornFile(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, c := range []struct {
		name string
		size func(int64) int64
	}{
		{"half", func(n int64) int64 { return n / 2 }},
		{"nothing", func(int64) int64 { return 0 }},
		{"all but the brace", func(n int64) int64 { return n - 2 }}, // without only the newline it is complete: an edit
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
			fixture.PutVectors(t, st, rand.New(rand.NewPCG(20, 20)), 0, 60)
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			rel := "memories/" + jsondoc.FileName("m7")
			file := filepath.Join(dir, filepath.FromSlash(rel))
			was, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(file, c.size(int64(len(was)))); err != nil {
				t.Fatal(err)
			}
			st = fixture.Open(t, dir, &varve.Options{NoBackground: true, MustExist: true})
			if r := st.Admin().OpenReport(); r.Damage != nil {
				t.Errorf("opened with %v", r.Damage)
			}
			var named []string
			for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
				if err != nil {
					t.Fatal(err)
				}
				if f.Severity > varve.SeverityInfo {
					named = append(named, f.Path)
				}
				if f.Path == rel && (f.Severity != varve.SeverityHealable || f.ID != "m7" || f.Heals == "") {
					t.Errorf("%v, heals from %q", f, f.Heals)
				}
			}
			if !slices.Equal(named, []string{rel}) {
				t.Errorf("verify names %q, want %s", named, rel)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}

			plan, err := varve.PlanRepair(ctx, dir, nil, varve.VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			report, err := plan.Apply(ctx)
			if err != nil || len(report.Done) != 1 || report.Done[0].Path != rel || report.Done[0].Loses != "" ||
				report.Worst > varve.SeverityInfo {
				t.Fatalf("%+v, %v", report, err)
			}
			if is, err := os.ReadFile(file); err != nil || string(is) != string(was) {
				t.Errorf("the file has %d bytes, %v; it had %d", len(is), err, len(was))
			}
			st = fixture.Open(t, dir, &varve.Options{NoBackground: true})
			fixture.CheckVectors(t, st, "repaired", 60)
			if m, err := st.Get(ctx, "m7"); err != nil || m.Content != "memory 7" || len(m.Embedding) != 16 {
				t.Errorf("%+v, %v", m, err)
			}
		})
	}
}

// FAILURES 20, unrepaired: a store with a torn file still gives everything, by id, in lists and by
// vector, since the log has the document; and it accepts writes.
func TestTornFileServes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	fixture.PutVectors(t, st, rand.New(rand.NewPCG(20, 20)), 0, 60)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "memories", jsondoc.FileName("m7")), 100); err != nil {
		t.Fatal(err)
	}
	st = fixture.Open(t, dir, &varve.Options{NoBackground: true, MustExist: true})
	for i := range 60 {
		if m, err := st.Get(ctx, fmt.Sprint("m", i)); err != nil || m.Content != fmt.Sprint("memory ", i) {
			t.Errorf("m%d: %+v, %v", i, m, err)
		}
	}
	n := 0
	for _, err := range st.Memories(ctx) {
		if err != nil {
			t.Error(err)
		}
		n++
	}
	if n != 60 {
		t.Errorf("%d listed", n)
	}
	m, err := st.Get(ctx, "m7")
	if err != nil {
		t.Fatal(err)
	}
	if hits, err := st.Search(ctx,
		varve.Query{Vector: m.Embedding, Limit: 1}); err != nil || len(hits) != 1 || hits[0].ID != "m7" {
		t.Errorf("%v, %v", hits, err)
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "new", Content: "x"}); err != nil {
		t.Error(err)
	}
}

// FAILURES 21: chromem-go names a file by the first 32 bits of the id's SHA-256, and these ids collide
// there (bench/chromem finds them): of two documents one is left. The other ids differ only in what a
// slug does not show.
func TestMeetingIDs(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	ids := []string{"doc-17633", "doc-29150", "doc:1", "doc-1", "Doc-1", "doc/1"}
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	r := rand.New(rand.NewPCG(21, 21))
	vectors := map[string][]float32{}
	for _, id := range ids {
		vectors[id] = fixture.RandomVector(r, 16)
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "of " + id, Embedding: vectors[id]},
			varve.IfAbsent()); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Join(dir, "memories"))
	if err != nil || len(files) != len(ids) {
		t.Errorf("%d files, %v", len(files), err)
	}
	// Rebuilt from the files alone, all of them are there.
	for _, name := range []string{"wal", "checkpoint", "vector_index", "memory_index.json", "memory_index.delta.json"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	st = fixture.Open(t, dir, &varve.Options{NoBackground: true})
	for _, id := range ids {
		if m, err := st.Get(ctx, id); err != nil || m.Content != "of "+id {
			t.Errorf("%s: %+v, %v", id, m, err)
		}
		if hits, err := st.Search(ctx,
			varve.Query{Vector: vectors[id], Limit: 1}); err != nil || len(hits) != 1 || hits[0].ID != id {
			t.Errorf("%s: %v, %v", id, hits, err)
		}
	}
}
