package backups

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// A restored store has its vectors, although no backup has vectors, and verify finds nothing.
func TestRestoreVectors(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, filepath.Join(dir, "s"), &varve.Options{NoBackground: true})
	fixture.PutVectors(t, st, rand.New(rand.NewPCG(3, 3)), 0, 30)
	if _, err := st.Backup(ctx, filepath.Join(dir, "b"), varve.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := varve.Restore(ctx, filepath.Join(dir, "b"), filepath.Join(dir, "r"), nil); err != nil {
		t.Fatal(err)
	}
	var sum varve.VerifySummary
	for f, err := range varve.VerifyFolder(ctx, filepath.Join(dir, "r"), nil, varve.VerifyOptions{Summary: &sum}) {
		t.Error(f, err)
	}
	if sum.Vectors != 30 {
		t.Errorf("%d vectors", sum.Vectors)
	}
	fixture.CheckVectors(t, fixture.Open(t, filepath.Join(dir, "r"), nil), "restored", 30)
}
