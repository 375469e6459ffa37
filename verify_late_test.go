package varve_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/repairs/verify"
	"github.com/varve-db/varve/internal/storetest"
)

// TestVerifyBesideCommit verifies that a memory that another process commits after verify has caught up, and before it
// reads the end of the log, is not reported as missing in index and overlay.
func TestVerifyBesideCommit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	other := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	src := storetest.Inner(st).Source()
	late := 0
	src.CatchUp = func(ctx context.Context) error {
		err := storetest.Inner(st).Engine.CatchUp(ctx)
		late++
		if _, perr := other.Put(ctx, varve.Memory{ID: fmt.Sprint("late", late), Content: "x"}); perr != nil {
			t.Error(perr)
		}
		return err
	}
	for f, err := range verify.Findings(ctx, src, varve.VerifyOptions{Workers: 1}) {
		t.Error(f, err)
	}
	if late == 0 {
		t.Fatal("verify did not catch up")
	}
}
