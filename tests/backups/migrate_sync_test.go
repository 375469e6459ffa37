package backups

import (
	"bytes"
	"context"
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

// A failed sync of the copy leaves pages that look clean, and the next sync does not report them: the
// next run writes everything again.
func TestMigrateAfterAFailedSync(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for nth := 1; nth <= 4; nth++ {
		r, _ := fixture.Filled(t)
		n := 0
		r.Disk.FailSync(func(op, _ string) error {
			if op == "barrier" {
				if n++; n == nth {
					return errors.New("injected")
				}
			}
			return nil
		})
		_, err := varve.Migrate(ctx, "/s", "/t", &varve.MigrateOptions{Options: r.Options(2), Switch: true})
		r.Disk.FailSync(nil)
		if !errors.Is(err, varve.ErrSyncFailed) {
			t.Fatalf("barrier %d: %v", nth, err)
		}
		if _, err := varve.Migrate(ctx, "/s", "/t", &varve.MigrateOptions{Options: r.Options(3), Switch: true}); err != nil {
			t.Fatalf("barrier %d, called again: %v", nth, err)
		}
		r.Disk.DropCaches()
		fsys := storetest.Of(r.Options(4)).System.FS
		for _, folder := range []string{"", "memories", "wal"} {
			names, err := fsys.ReadDir(path.Join("/s", folder))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				name = path.Join(folder, name)
				if info, err := fsys.Stat(path.Join("/s",
					name)); err != nil || !info.Mode.IsRegular() || strings.HasPrefix(path.Base(name), "moved.json") ||
					strings.HasSuffix(name, ".lock") || name == "wal/shared" || name == "wal/owner" {
					continue
				}
				want, err := vfs.ReadFile(fsys, path.Join("/s", name), 1<<30)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := vfs.ReadFile(fsys, path.Join("/t", name), 1<<30); err != nil || !bytes.Equal(got, want) {
					t.Errorf("barrier %d: what the disk has of %s is not what was copied: %v", nth, name, err)
				}
			}
		}
	}
}
