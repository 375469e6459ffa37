package backups

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// The store is moved, and its old place emptied, before any of the operations of an open: the open
// reports where the store is, or still has it; it never reports that a file is missing.
func TestMovedWhileOpening(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	moved := 0
	for at, ended := 1, false; !ended; at += proofs.Every(2) {
		r, _ := fixture.Filled(t)
		o := r.Options(2)
		n := 0
		var migrated error
		storetest.Of(o).System.FS = wrap.New(storetest.Of(o).System.FS, func(op *wrap.Op, call func() error) error {
			if n++; n == at {
				third := r.Options(3)
				third.LockWait = time.Millisecond // the open holds the lock as long as this takes
				_, migrated = varve.Migrate(ctx, "/s", "/t",
					&varve.MigrateOptions{Options: third, Switch: true, RemoveSource: true})
			}
			return call()
		})
		st, err := varve.Open(ctx, "/s", o)
		if ended = n < at; migrated != nil && !errors.Is(migrated, varve.ErrLocked) {
			t.Fatalf("operation %d: %v", at, migrated)
		}
		var gone *varve.MovedError
		// moved, and the old place was not emptied in that time: it continues to be served
		if errors.As(err, &gone) && migrated != nil {
			_, migrated = varve.Migrate(ctx, "/s", "/t",
				&varve.MigrateOptions{Options: r.Options(3), Switch: true, RemoveSource: true})
		}
		switch {
		case err == nil:
			if !ended && migrated == nil {
				t.Fatalf("operation %d: the old place was opened, the store is moved", at)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
		case errors.As(err, &gone) && gone.To == "/t" && migrated == nil:
			moved++
			// What the open has created there does not prevent the store from coming back.
			if _, err := varve.Migrate(ctx, "/t", "/s",
				&varve.MigrateOptions{Options: r.Options(4), Switch: true, RemoveSource: true}); err != nil {
				t.Fatalf("operation %d: moving the store back: %v", at, err)
			}
		case migrated != nil:
			t.Fatalf("operation %d: nobody moved it (%v), and it does not open: %v", at, migrated, err)
		default:
			t.Fatalf("operation %d: moved, and the opening says %v", at, err)
		}
	}
	t.Logf("moved before %d operations", moved)
	if moved == 0 {
		t.Error("it was never moved")
	}
}
