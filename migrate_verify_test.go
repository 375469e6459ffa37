package varve

import (
	"context"
	"errors"
	"testing"
)

// The old place of a store that was moved, and the new one before that, are no
// damaged stores: verify and repair say where it is.
func TestVerifyWhereTheStoreIsNot(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r, _ := whole(t)
	look := func(dir string, want error) {
		t.Helper()
		var got error
		for f, err := range VerifyFolder(ctx, dir, r.options(3), VerifyOptions{}) {
			if got = err; err == nil {
				t.Errorf("%s: %v", dir, f)
			}
		}
		if !errors.Is(got, want) {
			t.Errorf("%s: verify ends with %v", dir, got)
		}
		if p, err := PlanRepair(ctx, dir, r.options(4), VerifyOptions{}); !errors.Is(err, want) {
			t.Errorf("%s: repair plans %v, %v", dir, p.Actions, err)
		}
	}
	if _, err := Migrate(ctx, "/s", "/t", &MigrateOptions{Options: r.options(2)}); err != nil {
		t.Fatal(err)
	}
	look("/t", ErrNoStore)
	if _, err := Migrate(ctx, "/s", "/t", &MigrateOptions{Options: r.options(5), Switch: true}); err != nil {
		t.Fatal(err)
	}
	look("/s", ErrMoved)
}
