package vectorfiles

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

// openCounting opens a store as another process would, and counts how often it rebuilds the index.
func openCounting(t *testing.T, dir string) (*varve.Store, *atomic.Int64) {
	n := new(atomic.Int64)
	o := *fixture.SmallLog
	o.Listener = func(e varve.Event) {
		if e.Kind == varve.EventRebuilt {
			n.Add(1)
		}
	}
	return fixture.Open(t, dir, &o), n
}

// An index that one process repaired is visible to the others, even if nothing was written since: a
// process that has the old one mapped neither answers from it nor repairs it again.
func TestHealedIndexIsSeenByOthers(t *testing.T) {
	t.Parallel()
	aged, want := fixture.Aged(t)
	for _, told := range []bool{true, false} { // false: the process that repaired was killed before it informed the others
		t.Run(fmt.Sprint("told ", told), func(t *testing.T) {
			ctx := context.Background()
			dir := filepath.Join(t.TempDir(), "s")
			fixture.CopyDir(t, aged, dir)
			healer, healed := openCounting(t, dir)
			other, again := openCounting(t, dir)
			lister, _ := openCounting(t, dir)
			fixture.SpoilLine(t, filepath.Join(dir, index.BaseName), "k70")
			if _, err := healer.Get(ctx, "k70"); !errors.Is(err, varve.ErrCorrupt) {
				t.Fatalf("the damage was not met: %v", err)
			}
			if err := healer.Flush(ctx); err != nil || healed.Load() != 1 {
				t.Fatalf("%v; the index was made %d times", err, healed.Load())
			}
			if !told {
				storetest.Inner(other).Engine.Remade().Store(storetest.Inner(other).Engine.Log().Notes().IndexRebuilds())
				storetest.Inner(lister).Engine.Remade().Store(storetest.Inner(lister).Engine.Log().Notes().IndexRebuilds())
			}
			for id, w := range want {
				if m, err := other.Get(ctx, id); err != nil || m.Version != w.Version {
					t.Fatalf("%s: version %d, %v; want %d", id, m.Version, err, w.Version)
				}
			}
			fixture.Compare(t, fixture.Contents(t, lister), want, true)
			if n, err := lister.Count(ctx); err != nil || n != int64(len(want)) {
				t.Errorf("%d are counted, %v; want %d", n, err, len(want))
			}
			if err := other.Flush(ctx); err != nil || again.Load() != 0 {
				t.Errorf("%v; healed again %d times", err, again.Load())
			}
		})
	}
}

// A process that met the damage before it was repaired does not repair it a second time.
func TestHealedIndexIsNotHealedAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, want := fixture.Aged(t)
	first, one := openCounting(t, dir)
	second, two := openCounting(t, dir)
	fixture.SpoilLine(t, filepath.Join(dir, index.BaseName), "k70")
	for _, st := range []*varve.Store{first, second} {
		if _, err := st.Get(ctx, "k70"); !errors.Is(err, varve.ErrCorrupt) {
			t.Fatalf("the damage was not met: %v", err)
		}
	}
	for _, st := range []*varve.Store{first, second} {
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		fixture.Compare(t, fixture.Contents(t, st), want, true)
	}
	if one.Load() != 1 || two.Load() != 0 {
		t.Errorf("the index was made %d times by the first, %d times by the second", one.Load(), two.Load())
	}
}

// An index that one process rebuilt on request is not overwritten by another one that still has the old
// index mapped, nor are answers given from the old one.
func TestRebuiltIndexStays(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprint("told ", told), func(t *testing.T) {
			ctx := context.Background()
			dir, want := fixture.Aged(t)
			var lost string
			for lost = range want {
				break
			}
			base, err := index.OpenBase(vfs.OS(), dir, fixture.StoreOf(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			sum, _ := index.Chain(base)
			_, err = index.WriteBase(base,
				index.Target{FS: vfs.OS(), Dir: dir, Temp: filepath.Join(dir, "tmp", "x"), Store: fixture.StoreOf(t, dir),
					Chain: sum, LSN: base.LSN(), Now: time.Now()},
				index.Changes{List: []index.Change{{Section: index.Memories, ID: lost, Version: base.LSN() - 1, Deleted: true}}})
			if err = errors.Join(err, base.Release()); err != nil {
				t.Fatal(err)
			}
			st, _ := openCounting(t, dir)
			other, _ := openCounting(t, dir)
			if _, err := other.Get(ctx, lost); !errors.Is(err, varve.ErrNotFound) {
				t.Fatalf("the index that was made wrong knows %s: %v", lost, err)
			}
			if err := st.Admin().RebuildIndex(ctx); err != nil {
				t.Fatal(err)
			}
			if !told {
				storetest.Inner(other).Engine.Remade().Store(storetest.Inner(other).Engine.Log().Notes().IndexRebuilds())
			} else {
				if m, err := other.Get(ctx, lost); err != nil || m.Version != want[lost].Version {
					t.Errorf("%s in the other process: version %d, %v; want %d", lost, m.Version, err, want[lost].Version)
				}
				if n, err := other.Count(ctx); err != nil || n != int64(len(want)) {
					t.Errorf("%d are counted, %v; want %d", n, err, len(want))
				}
			}
			m, err := other.Put(ctx, varve.Memory{ID: "new", Content: "x"})
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Admin().Compact(ctx); err != nil {
				t.Fatal(err)
			}
			want["new"] = m
			for _, s := range []*varve.Store{st, other} {
				fixture.Compare(t, fixture.Contents(t, s), want, true)
				if n, err := s.Count(ctx); err != nil || n != int64(len(want)) {
					t.Errorf("%d are counted, %v; want %d", n, err, len(want))
				}
			}
		})
	}
}
