package varve

import (
	"context"
	"errors"
	"testing"

	"github.com/varve-db/varve/internal/vfs/crash"
)

// Killed between the note's name and its sync; somebody opens the new place and
// writes; then the power goes. Still there is one store.
func TestMigrateNoteIsDurableBeforeTheNewPlaceIsUsed(t *testing.T) {
	ctx := context.Background()
	tried := 0
	for at := 1; ; at++ {
		r, _ := whole(t)
		if _, err := Migrate(ctx, "/s", "/t", &MigrateOptions{Options: r.options(2)}); err != nil {
			t.Fatal(err)
		}
		r.ops, r.dieAt = 0, at
		err, died := alone(func() error {
			_, err := Migrate(ctx, "/s", "/t", &MigrateOptions{Options: r.options(3), Switch: true})
			return err
		})
		r.dieAt = 0
		if err != nil {
			t.Fatal(err)
		}
		fsys := r.options(4).System.FS
		if !missing(fsys, "/s/moved.json") && !missing(fsys, "/t/migrate.json") {
			tried++
			st, err := Open(ctx, "/t", r.options(5))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := st.Put(ctx, Memory{ID: "new", Content: "x"}); err != nil {
				t.Fatal(err)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			l := r.lose(crash.LoseAll, 1)
			if _, err := Open(ctx, "/s", l.options(6)); !errors.Is(err, ErrMoved) {
				t.Errorf("killed at %d: the old place is a store again, beside the new one: %v", at, err)
			}
		}
		if !died {
			break
		}
	}
	if tried == 0 {
		t.Error("no cut met the moment")
	}
}
