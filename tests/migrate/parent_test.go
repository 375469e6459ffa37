package migrate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve"
)

// A new place is where links lead: that may be inside the store, or contain it, or be acceptable.
func TestMigrateThroughLinks(t *testing.T) {
	ctx := context.Background()
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, filepath.FromSlash(name)) }
	movable(t, at("around/s"))
	if err := errors.Join(os.Mkdir(at("elsewhere"), 0o700), os.Mkdir(at("around/s/memories/sub"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"in": "around/s/memories", "deep": "around/s/memories/sub", "store": "around/s", "other": "elsewhere", "itself": "elsewhere"} {
		if err := os.Symlink(at(to), at(link)); err != nil {
			t.Skip("no links here:", err)
		}
	}
	for _, to := range []string{"in/x", "deep/x/y", "deep", "store/memories/x"} {
		if _, err := varve.Migrate(ctx, at("around/s"), at(to), nil); !errors.Is(err, varve.ErrInvalid) {
			t.Errorf("to %s, which is in the store: %v", to, err)
		}
	}
	if _, err := varve.Migrate(ctx, at("store"), at("around"), nil); !errors.Is(err, varve.ErrInvalid) {
		t.Errorf("around the store: %v", err)
	}
	if names, err := filepath.Glob(at("around/s/memories/*/*")); err != nil || len(names) > 0 {
		t.Errorf("in the store there are %v, %v", names, err)
	}
	for _, to := range []string{"other/x/y", "itself"} {
		if to == "itself" {
			if err := os.RemoveAll(at("elsewhere/x")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := varve.Migrate(ctx, at("around/s"), at(to), nil); err != nil {
			t.Errorf("to %s: %v", to, err)
		}
	}
	r, err := varve.Migrate(ctx, at("store"), at("itself"), &varve.MigrateOptions{Switch: true, RemoveSource: true})
	if err != nil || !r.Removed {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := texts(t, at("itself")); len(got) != 1 || got["a"] != "x" {
		t.Errorf("moved: %v", got)
	}
}
