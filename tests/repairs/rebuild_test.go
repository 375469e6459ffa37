package repairs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/vfs"
)

// A rebuild of the index on request uses log and files: an index whose bytes are all valid but whose
// content is wrong does not return from itself or a backup. A version is kept if the file still has its
// bytes; an edit that was not adopted yet has no version.
func TestRebuildIndexBelievesTheFiles(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, want := fixture.Aged(t)
	var lost, edited string
	for id := range want {
		if lost == "" {
			lost = id
		} else if edited == "" {
			edited = id
		}
	}
	base, err := index.OpenBase(vfs.OS(), dir, fixture.StoreOf(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	sum, _ := index.Chain(base)
	target := index.Target{FS: vfs.OS(), Dir: dir, Temp: filepath.Join(dir, "tmp", "x"), Store: fixture.StoreOf(t, dir),
		Chain: sum, LSN: base.LSN(), Now: time.Now()}
	_, err = index.WriteBase(base, target,
		index.Changes{List: []index.Change{{Section: index.Memories, ID: lost, Version: base.LSN() - 1, Deleted: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := base.Release(); err != nil {
		t.Fatal(err)
	}
	fixture.Alter(t, filepath.Join(dir, "memories", jsondoc.FileName(edited)), func(b []byte) []byte {
		return append(b[:len(b)-2], []byte(",\n  \"mine\": 1\n}\n")...)
	})
	st := fixture.Open(t, dir, fixture.SmallLog)
	if got := fixture.Contents(t, st); len(got) != len(want)-1 {
		t.Fatalf("the index that was made wrong says %d of %d", len(got), len(want))
	}
	if err := st.Admin().RebuildIndex(ctx); err != nil {
		t.Fatal(err)
	}
	got := fixture.Contents(t, st)
	if got[edited].Version == want[edited].Version {
		t.Error("an edit has the version of what it replaced")
	}
	delete(want, edited)
	delete(got, edited)
	fixture.Compare(t, got, want, true)
}

// If a folder is missing, with everything that was in it, a rebuilt index still has what the log has.
func TestRebuildIndexWithoutAFolder(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"memories", "assemblies"} {
		t.Run(folder, func(t *testing.T) {
			ctx := t.Context()
			dir := t.TempDir()
			st := fixture.Open(t, dir, fixture.SmallLog)
			fixture.Put(t, st, "a")
			if _, err := st.Assemblies().Put(ctx, varve.Assembly{ID: "g", MemoryIDs: []string{"a"}}); err != nil {
				t.Fatal(err)
			}
			if err := st.Admin().RebuildIndex(ctx); err != nil { // nothing is in files yet
				t.Fatal(err)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, folder), filepath.Join(t.TempDir(), folder)); err != nil {
				t.Fatal(err)
			}
			st = fixture.Open(t, dir, fixture.SmallLog)
			err := st.Admin().RebuildIndex(ctx)
			if c, ok := errors.AsType[*varve.CorruptionError](err); !ok || c.Path != folder {
				t.Fatalf("made without %s: %v", folder, err)
			}
			if m, err := st.Get(ctx, "a"); err != nil {
				t.Error(m, err)
			}
			if g, err := st.Assemblies().Get(ctx, "g"); err != nil || len(g.MemoryIDs) != 1 {
				t.Error(g, err)
			}
		})
	}
}
