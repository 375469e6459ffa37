package purges

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// A file of 8 TiB that was set aside neither stops a purge nor is read or overwritten: it is named,
// since it may hold purged data.
func TestPurgeBesideSparse(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "forget"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "quarantine", "unreadable-b.json")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 8<<40); err != nil {
		t.Skipf("no files of 8 TiB here: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, err := st.Admin().Purge(ctx, "a")
		if len(r.Left) != 1 || err == nil || !strings.Contains(err.Error(),
			"unreadable-b.json: the file may contain purged data") {
			t.Errorf("left: %v, %v", r.Left, err)
		}
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("it reads terabytes")
	}
	if info, err := os.Stat(name); err != nil || info.Size() != 8<<40 {
		t.Errorf("%v, %v", info, err)
	}
}

// A sparse file in a store is not copied to a disk without room for it: that is detected before the disk
// is full.
func TestMigrateSparse(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "s")
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	if _, err := st.Put(ctx, varve.Memory{ID: "a", Content: "stays"}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "quarantine", "x")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 8<<40); err != nil {
		t.Skipf("no files of 8 TiB here: %v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := varve.Migrate(ctx, dir, filepath.Join(t.TempDir(), "to"), &varve.MigrateOptions{Switch: true})
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), filepath.Join("quarantine", "x")) {
		t.Errorf("%v", err)
	}
}
