package migrate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve"
)

// A folder of the copy that has become a link leads to files that are not ours.
func TestMigrateFollowsNoLinkInTheCopy(t *testing.T) {
	ctx := context.Background()
	for _, folder := range []string{"memories", "backups"} {
		dir, to, mine := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "t"), t.TempDir()
		movable(t, dir)
		if _, err := varve.Migrate(ctx, dir, to, nil); err != nil {
			t.Fatal(err)
		}
		text, link := filepath.Join(mine, "mine.txt"), filepath.Join(to, folder)
		if err := errors.Join(os.WriteFile(text, []byte("mine"), 0o600), os.RemoveAll(link)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(mine, link); err != nil {
			t.Skip("no links here:", err)
		}
		if _, err := varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Switch: true}); !errors.Is(err, varve.ErrInvalid) {
			t.Errorf("%s: %v", folder, err)
		}
		if b, err := os.ReadFile(text); err != nil || string(b) != "mine" {
			t.Errorf("%s: %q, %v", folder, b, err)
		}
	}
}
