package backups

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// A backup has the assemblies, and each moment that can be restored has them with the members and
// composites that they had then.
func TestAssembliesInBackup(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, to := t.TempDir(), t.TempDir()
	st := fixture.Open(t, dir, nil)
	fixture.Put(t, st, "x", 1, 0)
	fixture.Put(t, st, "y", 0, 2)
	fixture.Group(t, st, "old", "x", "y")
	fixture.Group(t, st, "same", "x")
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(to, "backup")
	info, err := st.Backup(ctx, backup, varve.BackupOptions{})
	if err != nil || info.Memories != 2 || info.Assemblies != 2 {
		t.Fatalf("%+v, %v", info, err)
	}
	// The living store continues.
	if err := st.Delete(ctx, "y"); err != nil {
		t.Fatal(err)
	}
	between := fixture.Grouped(t, st, "old")
	fixture.Group(t, st, "new", "x")
	if err := st.Assemblies().Delete(ctx, "old"); err != nil {
		t.Fatal(err)
	}
	last := st.Admin().Stats().Durable
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		o       varve.RestoreOptions
		there   map[string][]string // assemblies and their members
		fromLog int64
	}{
		{"the backup", varve.RestoreOptions{}, map[string][]string{"old": {"x", "y"}, "same": {"x"}}, 0},
		{"after the deletion of y", varve.RestoreOptions{Version: between.Version, Log: dir},
			map[string][]string{"old": {"x"}, "same": {"x"}}, 1},
		{"the end", varve.RestoreOptions{Version: last - 1, Log: dir}, map[string][]string{"new": {"x"}, "same": {"x"}}, 1},
	} {
		target := filepath.Join(to, c.name)
		r, err := varve.Restore(ctx, backup, target, &c.o)
		if err != nil || r.Assemblies != 2 || r.FromLog != c.fromLog {
			t.Errorf("%s: %+v, %v", c.name, r, err)
			continue
		}
		st := fixture.Open(t, target, nil)
		got := map[string][]string{}
		for a, err := range st.Assemblies().All(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			got[a.ID] = a.MemoryIDs
			if a.ID == "old" && len(a.MemoryIDs) == 1 && !a.Equal(&between) {
				t.Errorf("%s: %+v, want %+v", c.name, a, between)
			}
		}
		for id, members := range c.there {
			if !slices.Equal(got[id], members) {
				t.Errorf("%s: %s has %q, want %q", c.name, id, got[id], members)
			}
		}
		if len(got) != len(c.there) {
			t.Errorf("%s: %v", c.name, got)
		}
		if err := st.Delete(ctx, "x"); err != nil {
			t.Fatal(err)
		}
		if a := fixture.Grouped(t, st, "same"); len(a.MemoryIDs) > 0 {
			t.Errorf("%s: %+v", c.name, a)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// A damaged copy is found.
	file := filepath.Join(backup, "assemblies", "same.json")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[20] ^= 1
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	var damaged *varve.CorruptionError
	if _, err := varve.CheckBackup(ctx, backup); !errors.As(err, &damaged) || damaged.Path != "assemblies/same.json" {
		t.Errorf("%v", err)
	}
}

// A store that is moved takes the assemblies along, including those that change while it is copied.
func TestAssembliesMigrate(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, to := fixture.GroupedStore(t), filepath.Join(t.TempDir(), "new")
	if _, err := varve.Migrate(ctx, dir, to, nil); err != nil {
		t.Fatal(err)
	}
	st := fixture.Open(t, dir, nil)
	fixture.Put(t, st, "z", 3, 3)
	fixture.Group(t, st, "c", "z", "x")
	if err := st.Delete(ctx, "y"); err != nil {
		t.Fatal(err)
	}
	want := fixture.Grouped(t, st, "a")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Switch: true, RemoveSource: true}); err != nil {
		t.Fatal(err)
	}
	st = fixture.Open(t, to, nil)
	if a := fixture.Grouped(t, st, "a"); !a.Equal(&want) || a.Version != want.Version {
		t.Errorf("%+v, want %+v", a, want)
	}
	if got := fixture.Containing(t, st, "x"); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("x is in %q", got)
	}
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil || f.Severity != varve.SeverityInfo {
			t.Errorf("%s %v", f.String(), err)
		}
	}
}
