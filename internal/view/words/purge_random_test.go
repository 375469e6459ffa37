package words_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
)

// Purges between writes, rounds, rebuilds and other languages, by two handles: nothing of what is purged is in any
// file.
func TestPurgesAnywhere(t *testing.T) {
	t.Parallel()
	seed := proofs.Seed(t, 0)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	stores := []*varve.Store{open(t, dir), open(t, dir)}
	next, there, rounds := 0, []string{}, 6
	if proofs.Long() {
		rounds = 60
	}
	for round := range rounds {
		b := new(varve.Batch)
		for range 1 + rng.IntN(120) {
			id := fmt.Sprintf("q%05dq", next)
			next++
			there = append(there, id)
			b.Put(varve.Memory{ID: id, Content: "a word of " + id, Timestamp: time.Unix(int64(rng.IntN(500)), 0), Metadata: map[string]any{"session_id": fmt.Sprint("s", rng.IntN(4))}})
		}
		for range rng.IntN(30) {
			id := there[rng.IntN(len(there))]
			b.Put(varve.Memory{ID: id, Content: "other word of " + id, Metadata: map[string]any{"session_id": fmt.Sprint("s", rng.IntN(4))}})
		}
		st := stores[rng.IntN(2)]
		if err := st.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		switch rng.IntN(8) {
		case 0, 1, 2:
			flush(t, st)
		case 3:
			if err := st.Admin().RebuildIndex(t.Context()); err != nil {
				t.Fatal(err)
			}
		case 4:
			if err := st.Admin().UpdateConfig(t.Context(), func(c *varve.Config) error { c.TextLanguage = []string{"en", "de", "none"}[rng.IntN(3)]; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		for range min(rng.IntN(3), len(there)) {
			i := rng.IntN(len(there))
			id := there[i]
			there = append(there[:i], there[i+1:]...)
			st := stores[rng.IntN(2)]
			if rng.IntN(3) == 0 {
				if err := st.Delete(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				if rng.IntN(2) == 0 {
					flush(t, stores[rng.IntN(2)])
				}
			}
			rep, err := st.Admin().Purge(t.Context(), id)
			if err != nil || len(rep.Left) > 0 {
				t.Fatal(round, id, err, rep)
			}
			if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return err
				}
				b, err := os.ReadFile(path)
				if strings.Contains(string(b), id) {
					t.Errorf("round %d: %s has %s", round, path, id)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		for i, st := range stores {
			hits, err := st.Search(t.Context(), varve.Query{Text: "word", Limit: 10000})
			if err != nil || len(hits) != len(there) {
				t.Fatalf("round %d, store %d: %d are found of %d: %v", round, i, len(hits), len(there), err)
			}
		}
		if t.Failed() {
			return
		}
	}
	clean(t, stores[0])
}
