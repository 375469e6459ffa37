package backups

import (
	"context"
	"errors"
	"sort"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// A process is killed between the rename of the note and its sync; another opens the new place and
// writes; then the power is cut. Still there is one store.
func TestMigrateNoteIsDurableBeforeTheNewPlaceIsUsed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	kill := func(at int) (r *fixture.Rig, ops int, died bool) { // 0: nobody
		r, _ = fixture.Filled(t)
		if _, err := varve.Migrate(ctx, "/s", "/t", &varve.MigrateOptions{Options: r.Options(2)}); err != nil {
			t.Fatal(err)
		}
		r.Ops, r.DieAt = 0, at
		err, died := fixture.UntilKilled(func() error {
			_, err := varve.Migrate(ctx, "/s", "/t", &varve.MigrateOptions{Options: r.Options(3), Switch: true})
			return err
		})
		ops, r.DieAt = r.Ops, 0
		if err != nil {
			t.Fatal(err)
		}
		return r, ops, died
	}
	// Once the note has its name it keeps it: the operations before that are skipped.
	_, all, _ := kill(0)
	first := sort.Search(all, func(at int) bool {
		r, _, _ := kill(at + 1)
		return !missing(storetest.Of(r.Options(4)).System.FS, "/s/moved.json")
	})
	tried := 0
	for at := first + 1; ; at++ {
		r, _, died := kill(at)
		fsys := storetest.Of(r.Options(4)).System.FS
		if !missing(fsys, "/s/moved.json") && !missing(fsys, "/t/migrate.json") {
			tried++
			st, err := varve.Open(ctx, "/t", r.Options(5))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := st.Put(ctx, varve.Memory{ID: "new", Content: "x"}); err != nil {
				t.Fatal(err)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			l := r.Lose(crash.LoseAll, 1)
			if _, err := varve.Open(ctx, "/s", l.Options(6)); !errors.Is(err, varve.ErrMoved) {
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
