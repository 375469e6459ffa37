package purges

import (
	"bytes"
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/vector"
)

// The previous vector files are overwritten once their names are removed, even if this process has just
// searched them, and vector files that a repair has set aside are removed.
func TestPurgeOverwritesTheVectors(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("who has a file mapped is known on Linux only")
	}
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	var mu sync.Mutex
	zeroed := map[string]bool{}
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if rel, _ := filepath.Rel(dir, op.Path); op.Kind == wrap.Write && strings.HasPrefix(filepath.ToSlash(rel),
			vector.Folder+"/") {
			zeroed[filepath.ToSlash(rel)] = true
		}
		return nil
	})
	o := storetest.In(&varve.Options{NoBackground: true}, storetest.Environment{System: vfs.System{FS: fsys}})
	st := fixture.Open(t, dir, o)
	r := rand.New(rand.NewPCG(9, 9))
	fixture.PutVectors(t, st, r, 0, 50)
	secret := fixture.RandomVector(r, 16)
	if _, err := st.Put(ctx, varve.Memory{ID: "unspeakable", Embedding: secret}); err != nil {
		t.Fatal(err)
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	faiss := filepath.Join(dir, "vector_index", "memory_vectors.faiss")
	b, err := os.ReadFile(faiss)
	if err != nil {
		t.Fatal(err)
	}
	b[300] ^= 1
	if err := os.WriteFile(faiss, b, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := varve.PlanRepair(ctx, dir, o, varve.VerifyOptions{})
	if err != nil || len(p.Actions) != 1 {
		t.Fatal(p.Actions, err)
	}
	if _, err := p.Apply(ctx); err != nil {
		t.Fatal(err)
	}
	row := vector.IP.Row(nil, secret)
	has := func() (names []string) {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			if bytes.Contains(b, []byte("unspeakable")) || bytes.Contains(b, row) {
				names = append(names, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	if names := has(); !strings.Contains(strings.Join(names, " "), "quarantine") {
		t.Fatalf("the case is too weak: only %q have it", names)
	}
	st = fixture.Open(t, dir, o)
	if _, err := st.Search(ctx, varve.Query{Vector: secret}); err != nil {
		t.Fatal(err)
	}
	clear(zeroed)
	report, err := st.Admin().Purge(ctx, "unspeakable")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vector_index/mapping.json", "vector_index/memory_vectors.faiss"} {
		if !zeroed[name] {
			t.Errorf("%s was not overwritten: %v, %v", name, zeroed, report.Unlinked)
		}
	}
	if names := has(); len(names) > 0 {
		t.Errorf("%q still have it", names)
	}
	fixture.CheckVectors(t, st, "purged", 50)
}
