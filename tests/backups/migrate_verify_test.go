package backups

import (
	"context"
	"errors"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// The old place of a store that was moved, and the new place before that, are no damaged stores: verify
// and repair report where the store is.
func TestVerifyWhereTheStoreIsNot(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r, _ := fixture.Filled(t)
	look := func(dir string, want error) {
		t.Helper()
		var got error
		for f, err := range varve.VerifyFolder(ctx, dir, r.Options(3), varve.VerifyOptions{}) {
			if got = err; err == nil {
				t.Errorf("%s: %v", dir, f)
			}
		}
		if !errors.Is(got, want) {
			t.Errorf("%s: verify ends with %v", dir, got)
		}
		if p, err := varve.PlanRepair(ctx, dir, r.Options(4), varve.VerifyOptions{}); !errors.Is(err, want) {
			t.Errorf("%s: repair plans %v, %v", dir, p.Actions, err)
		}
	}
	if _, err := varve.Migrate(ctx, "/s", "/t", &varve.MigrateOptions{Options: r.Options(2)}); err != nil {
		t.Fatal(err)
	}
	look("/t", varve.ErrNoStore)
	if _, err := varve.Migrate(ctx, "/s", "/t", &varve.MigrateOptions{Options: r.Options(5), Switch: true}); err != nil {
		t.Fatal(err)
	}
	look("/s", varve.ErrMoved)
}
