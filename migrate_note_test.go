package varve

import (
	"context"
	"errors"
	"sort"
	"testing"

	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// Killed between the note's name and its sync; somebody opens the new place and
// writes; then the power goes. Still there is one store.
func TestMigrateNoteIsDurableBeforeTheNewPlaceIsUsed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	kill := func(at int) (r *rig, ops int, died bool) { // 0: nobody
		r, _ = whole(t)
		if _, err := Migrate(ctx, "/s", "/t", &MigrateOptions{Options: r.options(2)}); err != nil {
			t.Fatal(err)
		}
		r.ops, r.dieAt = 0, at
		err, died := alone(func() error {
			_, err := Migrate(ctx, "/s", "/t", &MigrateOptions{Options: r.options(3), Switch: true})
			return err
		})
		ops, r.dieAt = r.ops, 0
		if err != nil {
			t.Fatal(err)
		}
		return r, ops, died
	}
	// Once the note has its name it keeps it: what is before that is skipped.
	_, all, _ := kill(0)
	first := sort.Search(all, func(at int) bool {
		r, _, _ := kill(at + 1)
		return !missing(storetest.Of(r.options(4)).System.FS, "/s/moved.json")
	})
	tried := 0
	for at := first + 1; ; at++ {
		r, _, died := kill(at)
		fsys := storetest.Of(r.options(4)).System.FS
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
	t.Logf("%d operations, the note is there from %d on, %d tried", all, first+1, tried)
}
