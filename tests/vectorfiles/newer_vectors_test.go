package vectorfiles

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
)

// Vectors of a newer format are an error for every caller that needs them, and stay unchanged, whatever
// else is written: they are derived, and the newer program continues with them.
func TestNewerVectorsStay(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "x", Embedding: []float32{1, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	if err := st.Admin().Compact(ctx); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	mapping := filepath.Join(dir, "vector_index", "mapping.json")
	old, err := os.ReadFile(mapping)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Rewrite(t, mapping, fixture.RaiseTable)
	vectors := func() map[string]string {
		some := map[string]string{}
		for name, what := range fixture.Snapshot(t, dir) {
			if strings.HasPrefix(filepath.ToSlash(name), "vector_index/") {
				some[name] = what
			}
		}
		return some
	}
	before := vectors()
	if len(before) < 2 {
		t.Fatalf("no vectors to look after: %v", before)
	}
	for _, readOnly := range []bool{true, false} {
		o := &varve.Options{NoBackground: true, ReadOnly: readOnly}
		if st, err := varve.Open(ctx, dir, o); !errors.Is(err, varve.ErrNewerFormat) {
			t.Errorf("opened: %v", err)
			if err == nil {
				st.Close()
			}
		}
		// One that was open before the newer program came.
		storetest.Rewrite(t, mapping, func([]byte) []byte { return old })
		st, err := varve.Open(ctx, dir, o)
		if err != nil {
			t.Fatal(err)
		}
		storetest.Rewrite(t, mapping, fixture.RaiseTable)
		if _, err := st.Search(ctx, varve.Query{Vector: []float32{1, 2, 3}}); !errors.Is(err, varve.ErrNewerFormat) {
			t.Errorf("search: %v", err)
		}
		if _, err := storetest.CheckVectors(ctx, st); !errors.Is(err, varve.ErrNewerFormat) {
			t.Errorf("check: %v", err)
		}
		if !readOnly {
			if _, err := st.Put(ctx,
				varve.Memory{ID: "b", Content: "x", Embedding: []float32{3, 2, 1}}); err != nil &&
				!errors.Is(err, varve.ErrNewerFormat) {
				t.Errorf("put: %v", err)
			}
			if err := st.Admin().Compact(ctx); !errors.Is(err, varve.ErrNewerFormat) {
				t.Errorf("compact: %v", err)
			}
		}
		if err := st.Close(); err != nil && !errors.Is(err, varve.ErrNewerFormat) {
			t.Error(err)
		}
	}
	for name, what := range vectors() {
		if before[name] != what {
			t.Errorf("%s was changed", name)
		}
	}
	if len(vectors()) != len(before) {
		t.Errorf("vectors were %v, they are %v", len(before), len(vectors()))
	}
}
