package varve

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
)

// A restored store has its vectors, which no backup has, and verify finds nothing.
func TestRestoreVectors(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := openTest(t, filepath.Join(dir, "s"), &Options{NoBackground: true})
	putVectors(t, st, rand.New(rand.NewPCG(3, 3)), 0, 30)
	if _, err := st.Backup(ctx, filepath.Join(dir, "b"), BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(ctx, filepath.Join(dir, "b"), filepath.Join(dir, "r"), nil); err != nil {
		t.Fatal(err)
	}
	var sum VerifySummary
	for f, err := range VerifyFolder(ctx, filepath.Join(dir, "r"), nil, VerifyOptions{Summary: &sum}) {
		t.Error(f, err)
	}
	if sum.Vectors != 30 {
		t.Errorf("%d vectors", sum.Vectors)
	}
	noDrift(t, openTest(t, filepath.Join(dir, "r"), nil), "restored", 30)
}
