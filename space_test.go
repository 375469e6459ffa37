package varve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// smallDisk is one of a few MiB: a real one where it can be mounted, else a
// simulated one. fill leaves about so much free; empty takes that back.
type smallDisk struct {
	dir   string
	o     Options
	fill  func(leave int64)
	empty func()
}

func disks(t *testing.T, test func(t *testing.T, d *smallDisk)) {
	const size = 8 << 20
	t.Run("simulated", func(t *testing.T) {
		disk := crash.New()
		disk.SetCapacity(size)
		view := disk.Process("p")
		clock := ticking()
		disk.SetClock(clock)
		test(t, &smallDisk{
			dir: "/s", o: *storetest.In(&Options{Clock: clock, SegmentSize: 64 << 10, NoBackground: true}, storetest.Environment{System: vfs.System{FS: view, Inline: true, Rand: rand.NewChaCha8([32]byte{1}), Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}}),
			fill: func(leave int64) {
				f, err := view.OpenFile("/ballast", os.O_RDWR|os.O_CREATE, 0o600)
				if err == nil {
					_, err = f.WriteAt(make([]byte, size-disk.Used()-leave), 0)
					err = errors.Join(err, f.Close())
				}
				if err != nil {
					t.Fatal(err)
				}
			},
			empty: func() {
				if err := view.Remove("/ballast"); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
	t.Run("tmpfs", func(t *testing.T) {
		dir, ok := mountSmall(t, size)
		if !ok {
			return // the simulated one has shown it
		}
		ballast := filepath.Join(dir, "ballast")
		clock := ticking()
		test(t, &smallDisk{
			dir: filepath.Join(dir, "s"), o: Options{Clock: clock, SegmentSize: 64 << 10, NoBackground: true},
			fill: func(leave int64) {
				v, err := vfs.OS().Volume(dir)
				if err == nil && v.Free > leave {
					err = os.WriteFile(ballast, make([]byte, v.Free-leave), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			},
			empty: func() {
				if err := os.Remove(ballast); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}

// The disk becomes full and is freed: a warning comes before the first refusal, the refusal says
// how much is missing and what helps, deletes go on, and puts work again as soon as there is space.
func TestFullDiskAsTheUserMeetsIt(t *testing.T) {
	t.Parallel()
	disks(t, func(t *testing.T, d *smallDisk) {
		ctx := context.Background()
		var told events
		o := d.o
		o.Listener = told.hear
		heard := func(k EventKind) (n int) {
			for _, e := range told.all() {
				if e.Kind == k {
					n++
				}
			}
			return n
		}
		st, err := Open(ctx, d.dir, &o)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		for i := range 50 {
			if _, err := st.Put(ctx, Memory{ID: fmt.Sprint("k", i), Content: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		h := st.Health(ctx)
		if h.Space.Short() || h.Space.Free <= 0 || h.Space.Low < 64<<10 || !h.OK || heard(EventLowSpace) != 0 {
			t.Fatalf("with much space: %+v", h)
		}
		tick := func() { // a clock that moves by milliseconds
			for range 2000 {
				d.o.Clock()
			}
		}
		tick()
		d.fill(h.Space.Low - 4096)
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if heard(EventLowSpace) != 1 || heard(EventDiskFull) != 0 {
			t.Errorf("%d warnings before the disk is full", heard(EventLowSpace))
		}
		h = st.Health(ctx)
		if h.OK || !h.Writable || !h.Space.Short() || !errors.Is(h.Problems[0], ErrDiskFull) || !strings.Contains(h.Problems[0].Error(), "make room") {
			t.Errorf("health when the space is low: %+v", h)
		}
		kept := 0
		var full error
		for i := 0; full == nil && i < 100_000; i++ {
			if _, full = st.Put(ctx, Memory{ID: fmt.Sprint("more", i), Content: strings.Repeat("y", 1000)}); full == nil {
				kept++
			}
		}
		var missing *DiskFullError
		if !errors.Is(full, ErrDiskFull) || !errors.As(full, &missing) || missing.Free < 0 || missing.Need <= 0 || !strings.HasPrefix(missing.Path, d.dir) {
			t.Fatalf("after %d puts: %v", kept, full)
		}
		for _, says := range []string{"free for " + d.dir, "needed", "deletes still work"} {
			if !strings.Contains(full.Error(), says) {
				t.Errorf("the message lacks %q: %v", says, full)
			}
		}
		if heard(EventDiskFull) == 0 {
			t.Error("no event says that the disk is full")
		}
		if err := st.Delete(ctx, "k1"); err != nil {
			t.Errorf("a delete: %v", err)
		}
		if m, err := st.Get(ctx, "k2"); err != nil || m.Content != "x" {
			t.Errorf("a read: %v", err)
		}
		d.empty()
		tick()
		if _, err := st.Put(ctx, Memory{ID: "after", Content: "z"}); err != nil {
			t.Errorf("when there is space again: %v", err)
		}
		if err := st.Flush(ctx); err != nil {
			t.Error(err)
		}
		if n, err := st.Count(ctx); err != nil || n != int64(50+kept) {
			t.Errorf("%d memories, %v; want %d", n, err, 50+kept)
		}
		if h := st.Health(ctx); h.Space.Short() || heard(EventSpaceBack) != 1 || heard(EventLowSpace) != 1 {
			t.Errorf("afterwards: %+v, %d, %d", h, heard(EventSpaceBack), heard(EventLowSpace))
		}
	})
}

// Where the store alone has filled its disk, what is deleted makes the room in which the
// files of all that was put before it find their place.
func TestDeletionsMakeRoom(t *testing.T) {
	t.Parallel()
	for _, failed := range []bool{true, false} { // a flush before the deletions
		disks(t, func(t *testing.T, d *smallDisk) { deletionsMakeRoom(t, d, failed) })
	}
}

func deletionsMakeRoom(t *testing.T, d *smallDisk, failed bool) {
	ctx := context.Background()
	o := d.o
	st, err := Open(ctx, d.dir, &o)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	const old = 100
	content := storetest.Text(20_000)
	for i := range old {
		if _, err := st.Put(ctx, Memory{ID: fmt.Sprint("old", i), Content: content}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	d.fill(1 << 20)
	const kept = old - 20
	for i := range kept {
		if _, err := st.Put(ctx, Memory{ID: fmt.Sprint("new", i), Content: content}); err != nil {
			t.Fatal(err)
		}
	}
	if failed {
		if err := st.Flush(ctx); !errors.Is(err, ErrDiskFull) {
			t.Fatalf("%d files find their place on a full disk: %v", kept, err)
		}
	}
	for i := range old {
		if err := st.Delete(ctx, fmt.Sprint("old", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Flush(ctx); err != nil {
		t.Errorf("%d memories are put, %d are deleted: %v", kept, old, err)
	}
	if n, err := st.Count(ctx); n != kept || err != nil {
		t.Errorf("%d memories of %d, %v", n, kept, err)
	}
	if _, err := st.Put(ctx, Memory{ID: "after", Content: content}); err != nil {
		t.Error(err)
	}
}

// A migration to a disk that becomes full says so, hurts nothing, and goes on.
func TestMigrateToAFullDisk(t *testing.T) {
	t.Parallel()
	disks(t, func(t *testing.T, d *smallDisk) {
		ctx := context.Background()
		from, o := "/from", d.o
		if storetest.Of(&o).System.FS == nil {
			from = filepath.Join(t.TempDir(), "from")
		}
		st, err := Open(ctx, from, &o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 60 {
			if _, err := st.Put(ctx, Memory{ID: fmt.Sprint("k", i), Content: strings.Repeat("x", 5000)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		d.fill(100 << 10)
		_, err = Migrate(ctx, from, d.dir, &MigrateOptions{Options: &o, Switch: true})
		var missing *DiskFullError
		if !errors.As(err, &missing) || missing.Path != d.dir || !strings.Contains(err.Error(), "the same command continues") {
			t.Fatalf("%v", err)
		}
		if _, err := Open(ctx, d.dir, &o); !errors.Is(err, ErrNoStore) {
			t.Errorf("what was copied is a store: %v", err)
		}
		d.empty()
		r, err := Migrate(ctx, from, d.dir, &MigrateOptions{Options: &o, Switch: true})
		if err != nil || !r.Switched || r.Memories != 60 || r.Copied == 60 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
