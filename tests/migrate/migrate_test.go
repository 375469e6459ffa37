package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/fault"
	"github.com/varve-db/varve/internal/vfs/wrap"
	"github.com/varve-db/varve/repair"
)

// A store is copied, with interruptions at random, while several goroutines write to it; they are not
// disturbed, and after the switch everything is in the new place.
func TestMigrateBesideWriters(t *testing.T) {
	seed := storetest.Seed(t, "./tests/migrate")
	ctx := context.Background()
	dir, to := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "deep", "t")
	o := &varve.Options{SegmentSize: 64 << 10}
	st, err := varve.Open(ctx, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i), Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	// They write at the pace of the copying: it has to catch up, and must not be outrun by writers that
	// are faster than any copying.
	turns := make(chan struct{}, 300)
	var writers sync.WaitGroup
	for w := range 3 {
		r := rand.New(rand.NewPCG(seed, uint64(w)))
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-turns:
				}
				id := fmt.Sprint("k", 3*r.IntN(150)+w) // each has its own
				var err error
				if r.IntN(4) == 0 {
					if err = st.Delete(ctx, id); errors.Is(err, varve.ErrNotFound) {
						err = nil
					}
				} else {
					_, err = st.Put(ctx, varve.Memory{ID: id, Content: fmt.Sprint(n, strings.Repeat("y", r.IntN(6000)))})
				}
				if err != nil {
					t.Errorf("a writer: %v", err)
					return
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(seed, 9))
	caught := int64(0)
	rounds := 6
	if !proofs.Long() {
		rounds = 2
	}
	for n := 0; n < rounds || caught == 0 && n < rounds+10; n++ {
		run, cancel := context.WithCancel(ctx)
		steps, end := 0, r.IntN(40)
		if n >= rounds {
			end = -1 // those before were all cancelled before they had to catch up
		}
		rep, err := varve.Migrate(run, dir, to, &varve.MigrateOptions{Progress: func(string, int64, int64) {
			for range 100 {
				select {
				case turns <- struct{}{}:
				default:
				}
			}
			if steps++; steps == end {
				cancel()
			}
		}})
		cancel()
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		caught += rep.CaughtUp
		if _, err := varve.Open(ctx, to, o); !errors.Is(err, varve.ErrNoStore) {
			t.Fatalf("the copy is a store: %v", err)
		}
	}
	if caught == 0 {
		t.Error("nothing was written meanwhile")
	}
	_, err = varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Switch: true})
	if !errors.Is(err, varve.ErrLocked) || !strings.Contains(err.Error(),
		fmt.Sprintf("stop the processes %d", os.Getpid())) {
		t.Errorf("switched under writers: %v", err)
	}
	close(stop)
	writers.Wait()
	want := map[string]string{}
	for m, err := range st.Memories(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		want[m.ID] = m.Content
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Switch: true, RemoveSource: true})
	if err != nil || !rep.Switched || !rep.Removed || rep.Memories != int64(len(want)) || rep.Compared != rep.Memories {
		t.Fatalf("%+v, %v", rep, err)
	}
	storetest.SameTexts(t, "moved", texts(t, to), want)
	storetest.AllWell(t, varve.VerifyFolder(context.Background(), to, nil, varve.VerifyOptions{}))
}

// A user who may read a store may read it in its new place.
func TestMigrateKeepsModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // no such modes
	}
	ctx := context.Background()
	dir, to := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "t")
	st, err := varve.Open(ctx, dir, &varve.Options{FileMode: 0o640, FolderMode: 0o750, SegmentSize: 64 << 10})
	if err == nil {
		_, err = st.Put(ctx, varve.Memory{ID: "a", Content: "x"})
		err = errors.Join(err, st.Close())
	}
	if err == nil {
		_, err = varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Switch: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.json", "memories/a.json", "checkpoint", "memories", "wal"} {
		was, err1 := os.Stat(filepath.Join(dir, name))
		is, err2 := os.Stat(filepath.Join(to, name))
		if err := errors.Join(err1, err2); err != nil || was.Mode() != is.Mode() || is.Mode().Perm()&0o077 == 0 {
			t.Errorf("%s: %v, was %v, %v (is the umask 077?)", name, is.Mode(), was.Mode(), err)
		}
	}
}

// Decay in the copy, or in the place from which it is copied, is not propagated.
func TestMigrateFindsRot(t *testing.T) {
	ctx := context.Background()
	dir, to := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "t")
	o := &varve.Options{SegmentSize: 64 << 10}
	st, err := varve.Open(ctx, dir, o)
	if err == nil {
		for i := range 20 {
			if _, err = st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i), Content: strings.Repeat("content ", 20)}); err != nil {
				break
			}
		}
		err = errors.Join(err, st.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	flip := func(name string) {
		storetest.Rewrite(t, name, func(b []byte) []byte {
			b[len(b)/2] ^= 4
			return b
		})
	}
	if _, err := varve.Migrate(ctx, dir, to, nil); err != nil {
		t.Fatal(err)
	}
	flip(filepath.Join(to, "memories", "k7.json"))
	if rep, err := varve.Migrate(ctx, dir, to, nil); err != nil || rep.Copied != 1 || rep.Compared != 20 {
		t.Errorf("rot in the copy: %+v, %v", rep, err)
	}
	want := texts(t, dir)

	// Without log and archive no other copy exists of what decays now.
	if st, err = varve.Open(ctx, dir, o); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(st.Flush(ctx), st.Close(), os.RemoveAll(filepath.Join(dir, "wal"))); err != nil {
		t.Fatal(err)
	}
	if st, err = varve.Open(ctx, dir, o); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	flip(filepath.Join(dir, "memories", "k3.json"))
	other := filepath.Join(t.TempDir(), "u")
	rep, err := varve.Migrate(ctx, dir, other, &varve.MigrateOptions{Switch: true})
	if !errors.Is(err, varve.ErrCorrupt) || rep.Switched || len(rep.Damaged) != 1 ||
		!strings.Contains(err.Error(), "repair --apply") {
		t.Errorf("rot in the store: %+v, %v", rep, err)
	}
	plan, err := varve.PlanRepair(ctx, dir, nil, varve.VerifyOptions{})
	var r *repair.RepairReport
	if err == nil {
		r, err = plan.Apply(ctx)
	}
	if err != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	if rep, err := varve.Migrate(ctx, dir, other, &varve.MigrateOptions{Switch: true}); err != nil || !rep.Switched {
		t.Errorf("healed: %+v, %v", rep, err)
	}
	got := texts(t, other)
	delete(got, "k3")
	delete(want, "k3")
	if !maps.Equal(got, want) {
		t.Error("it is another store now")
	}
}

// A process that found the store in the old place, and waits for open.lock during the switch, does not
// open it: that would be a second store.
func TestMigrateUnderOneWhoOpens(t *testing.T) {
	ctx := context.Background()
	dir, to := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "t")
	st, err := varve.Open(ctx, dir, &varve.Options{SegmentSize: 64 << 10})
	if err == nil {
		_, err = st.Put(ctx, varve.Memory{ID: "a", Content: "x"})
		err = errors.Join(err, st.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	// The open has examined the folder when it opens the lock; there it is stopped.
	looked, switched := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(looked); <-switched })
	fsys := fault.New(vfs.OS(), func(op *fault.Op) error {
		if op.Kind == wrap.OpenLock && filepath.Base(op.Path) == "open.lock" {
			once()
		}
		return nil
	})
	opened := make(chan error)
	go func() {
		st, err := varve.Open(ctx, dir, storetest.In(&varve.Options{}, storetest.Environment{System: vfs.System{FS: fsys}}))
		if err == nil {
			err = errors.Join(st.Close(), errors.New("it is open"))
		}
		opened <- err
	}()
	<-looked
	_, err = varve.Migrate(ctx, dir, to, &varve.MigrateOptions{Switch: true})
	close(switched)
	if err != nil {
		t.Error(err)
	}
	var gone *varve.MovedError
	if err := <-opened; !errors.As(err, &gone) || gone.To != to {
		t.Errorf("who was opening it: %v", err)
	}
}
