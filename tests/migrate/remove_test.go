package migrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/varve-db/varve"
)

// A file that is put into the old place after the switch is not in the new one, and stays when the old
// place is emptied: a save by hand, a full backup.
func TestMigrateRemovesOnlyWhatWasMoved(t *testing.T) {
	ctx := context.Background()
	dir, to := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "t")
	st, err := varve.Open(ctx, dir, nil)
	if err == nil {
		for i := range 3 {
			if _, err = st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i), Content: "x"}); err != nil {
				break
			}
		}
		err = errors.Join(err, st.Close())
	}
	if err == nil {
		_, err = varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Switch: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	edited, backup := filepath.Join(dir, "memories", "k1.json"), filepath.Join(dir, "backups", "full")
	later := time.Now().Add(time.Second)
	if err := errors.Join(os.WriteFile(edited, []byte("by hand"), 0o600), os.Chtimes(edited, later, later)); err != nil {
		t.Fatal(err)
	}
	if st, err = varve.Open(ctx, to, nil); err == nil {
		_, err = st.Backup(ctx, backup, varve.BackupOptions{})
		err = errors.Join(err, st.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := varve.Migrate(ctx, dir, to, &varve.MigrateOptions{RemoveSource: true})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(r.Left) != "[backups/full memories/k1.json]" {
		t.Errorf("left: %v", r.Left)
	}
	if b, err := os.ReadFile(edited); err != nil || string(b) != "by hand" {
		t.Errorf("the edit: %q, %v", b, err)
	}
	if names, err := filepath.Glob(filepath.Join(backup, "memories", "k*.json")); err != nil || len(names) != 3 {
		t.Errorf("the backup has %v, %v", names, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "memories", "k0.json")); !os.IsNotExist(err) {
		t.Error("what was moved stays:", err)
	}
}
