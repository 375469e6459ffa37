package backups

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// usable opens a place that must be the store, or must refuse; it reports which.
func usable(t *testing.T, r *fixture.Rig, dir string, want map[string]string) bool {
	t.Helper()
	o := r.Options(7)
	o.MustExist = true
	st, err := varve.Open(context.Background(), dir, o)
	if err != nil {
		if !errors.Is(err, varve.ErrMoved) && !errors.Is(err, varve.ErrNoStore) {
			t.Errorf("%s: %v", dir, err)
		}
		return false
	}
	if got := fixture.ContentsOf(t, st); !maps.Equal(got, want) {
		t.Errorf("%s has %v", dir, got)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
	return true
}

// At whatever operation a migration is killed or fails, in copying, catching up, switching or removing,
// and whatever a loss of power leaves: exactly one of the two places is the store, with all acknowledged
// writes; what is written there then is in the new place after the migration was called again.
func TestMigrateCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for what, fault := range map[string]error{"killed": nil, "error": errors.New("injected"), "plain": nil} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var want map[string]string
			olds, news := 0, 0
			move := func(r *fixture.Rig, seed byte) error {
				_, err := varve.Migrate(ctx, "/s", "/t",
					&varve.MigrateOptions{Options: r.Options(seed), Switch: true, RemoveSource: true})
				return err
			}
			fixture.CutAtEach(t, func(t *testing.T) (r *fixture.Rig) {
				r, want = fixture.Filled(t)
				r.Plain = what == "plain"
				return r
			}, fault, func(r *fixture.Rig) error {
				// One run that only copies, a change, and one that does the rest.
				if _, err := varve.Migrate(ctx, "/s", "/t", &varve.MigrateOptions{Options: r.Options(2)}); err != nil {
					return err
				}
				return move(r, 4)
			}, func(t *testing.T, r *fixture.Rig, done bool) {
				old, moved := usable(t, r, "/s", want), usable(t, r, "/t", want)
				if old == moved {
					t.Fatalf("the old place is the store: %v, the new one: %v", old, moved)
				}
				if done && !moved {
					t.Error("a switch that was acknowledged is gone")
				}
				dir := "/s"
				if olds++; moved {
					dir = "/t"
					olds--
					news++
				}
				st, err := varve.Open(ctx, dir, r.Options(8))
				if err != nil {
					t.Fatal(err)
				}
				after := maps.Clone(want)
				after["later"], after["k1"] = "x", "changed"
				delete(after, "k2")
				for _, id := range []string{"later", "k1"} {
					if _, err := st.Put(ctx, varve.Memory{ID: id, Content: after[id]}); err != nil {
						t.Fatal(err)
					}
				}
				if err := st.Delete(ctx, "k2"); err != nil {
					t.Fatal(err)
				}
				if err := st.Close(); err != nil {
					t.Fatal(err)
				}
				if err := move(r, 9); err != nil {
					t.Fatalf("called again: %v", err)
				}
				if usable(t, r, "/s", after) || !usable(t, r, "/t", after) {
					t.Error("called again: the store is not where it should be")
				}
				fsys := storetest.Of(r.Options(10)).System.FS
				if names, err := fsys.ReadDir("/s"); err != nil || len(names) != 1 {
					t.Errorf("the old place holds %v, %v", names, err)
				}
				if !missing(fsys, "/t/migrate.json") {
					t.Error("migrate.json stays")
				}
			})
			t.Logf("the old place was the store after %d cuts, the new one after %d", olds, news)
			if olds == 0 || news == 0 {
				t.Error("the cuts miss one side of the switch")
			}
		})
	}
}

// What is written between copying and switch is in the new place, and the store is the same one there.
func TestMigrateIsTheSameStore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r, want := fixture.Filled(t)
	if _, err := varve.Migrate(ctx, "/s", "/t", &varve.MigrateOptions{Options: r.Options(2)}); err != nil {
		t.Fatal(err)
	}
	st, err := varve.Open(ctx, "/s", r.Options(3))
	if err != nil {
		t.Fatal(err)
	}
	m, err := st.Put(ctx, varve.Memory{ID: "k3", Content: "between"})
	if err != nil {
		t.Fatal(err)
	}
	want["k3"] = "between"
	uuid := st.Admin().Stats().UUID
	if _, err := varve.Migrate(ctx, "/s", "/t",
		&varve.MigrateOptions{Options: r.Options(4), Switch: true}); !errors.Is(err, varve.ErrLocked) {
		t.Fatalf("switched under somebody: %v", err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := varve.Migrate(ctx, "/s", "/t", &varve.MigrateOptions{Options: r.Options(5), Switch: true})
	if err != nil || !rep.Switched || rep.Memories != int64(len(want)) || rep.Copied != 0 {
		t.Fatalf("%+v, %v", rep, err)
	}
	_, err = varve.Open(ctx, "/s", r.Options(6))
	var gone *varve.MovedError
	if !errors.As(err, &gone) || gone.To != "/t" {
		t.Fatalf("the old place: %v", err)
	}
	r = r.Lose(crash.LoseAll, 1)
	st, err = varve.Open(ctx, "/t", r.Options(7))
	if err != nil {
		t.Fatal(err)
	}
	if st.Admin().Stats().UUID != uuid {
		t.Error("it has another UUID")
	}
	if got := fixture.ContentsOf(t, st); !maps.Equal(got, want) {
		t.Errorf("the new place has %v", got)
	}
	if _, err := st.Put(ctx, varve.Memory{ID: "k3", Content: "after"}, varve.IfVersion(m.Version)); err != nil {
		t.Errorf("a condition of before the move: %v", err)
	}
	want["k3"] = "after"
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	// And back: the old place has only the note.
	if _, err := varve.Migrate(ctx, "/s", "/t",
		&varve.MigrateOptions{Options: r.Options(8), RemoveSource: true}); err != nil {
		t.Fatal(err)
	}
	if rep, err := varve.Migrate(ctx, "/t", "/s",
		&varve.MigrateOptions{Options: r.Options(9), Switch: true, RemoveSource: true}); err != nil {
		t.Fatalf("%+v, %v", rep, err)
	}
	if usable(t, r, "/t", want) || !usable(t, r, "/s", want) {
		t.Error("it did not come back")
	}
}
