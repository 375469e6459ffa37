package limits

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
)

// The disk becomes full and is freed: a warning comes before the first refusal, the refusal says how
// many bytes are missing and what helps, deletes continue to work, and puts work again as soon as there
// is space.
func TestFullDiskAsTheUserMeetsIt(t *testing.T) {
	t.Parallel()
	fixture.OnSmallDisks(t, func(t *testing.T, d *fixture.SmallDisk) {
		ctx := context.Background()
		var told fixture.Events
		o := d.O
		o.Listener = told.Hear
		heard := func(k varve.EventKind) (n int) {
			for _, e := range told.All() {
				if e.Kind == k {
					n++
				}
			}
			return n
		}
		st, err := varve.Open(ctx, d.Dir, &o)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		for i := range 50 {
			if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i), Content: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		h := st.Health(ctx)
		if h.Space.Short() || h.Space.Free <= 0 || h.Space.Low < 64<<10 || !h.OK || heard(varve.EventLowSpace) != 0 {
			t.Fatalf("with much space: %+v", h)
		}
		tick := func() { // a clock that moves by milliseconds
			for range 2000 {
				d.O.Clock()
			}
		}
		tick()
		d.Fill(h.Space.Low - 4096)
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if heard(varve.EventLowSpace) != 1 || heard(varve.EventDiskFull) != 0 {
			t.Errorf("%d warnings before the disk is full", heard(varve.EventLowSpace))
		}
		h = st.Health(ctx)
		if h.OK || !h.Writable || !h.Space.Short() || !errors.Is(h.Problems[0], varve.ErrDiskFull) ||
			!strings.Contains(h.Problems[0].Error(), "make room") {
			t.Errorf("health when the space is low: %+v", h)
		}
		kept := 0
		var full error
		for i := 0; full == nil && i < 100_000; i++ {
			if _, full = st.Put(ctx, varve.Memory{ID: fmt.Sprint("more", i), Content: strings.Repeat("y", 1000)}); full == nil {
				kept++
			}
		}
		var missing *varve.DiskFullError
		if !errors.Is(full, varve.ErrDiskFull) || !errors.As(full, &missing) || missing.Free < 0 || missing.Need <= 0 ||
			!strings.HasPrefix(missing.Path, d.Dir) {
			t.Fatalf("after %d puts: %v", kept, full)
		}
		for _, says := range []string{"free for " + d.Dir, "needed", "deletes still work"} {
			if !strings.Contains(full.Error(), says) {
				t.Errorf("the message lacks %q: %v", says, full)
			}
		}
		if heard(varve.EventDiskFull) == 0 {
			t.Error("no event says that the disk is full")
		}
		if err := st.Delete(ctx, "k1"); err != nil {
			t.Errorf("a delete: %v", err)
		}
		if m, err := st.Get(ctx, "k2"); err != nil || m.Content != "x" {
			t.Errorf("a read: %v", err)
		}
		d.Empty()
		tick()
		if _, err := st.Put(ctx, varve.Memory{ID: "after", Content: "z"}); err != nil {
			t.Errorf("when there is space again: %v", err)
		}
		if err := st.Flush(ctx); err != nil {
			t.Error(err)
		}
		if n, err := st.Count(ctx); err != nil || n != int64(50+kept) {
			t.Errorf("%d memories, %v; want %d", n, err, 50+kept)
		}
		if h := st.Health(ctx); h.Space.Short() || heard(varve.EventSpaceBack) != 1 || heard(varve.EventLowSpace) != 1 {
			t.Errorf("afterwards: %+v, %d, %d", h, heard(varve.EventSpaceBack), heard(varve.EventLowSpace))
		}
	})
}

// If the store alone has filled its disk, deletions make the room for the files of everything that was
// put before.
func TestDeletionsMakeRoom(t *testing.T) {
	t.Parallel()
	for _, failed := range []bool{true, false} { // a flush before the deletions
		fixture.OnSmallDisks(t, func(t *testing.T, d *fixture.SmallDisk) { deletionsMakeRoom(t, d, failed) })
	}
}

func deletionsMakeRoom(t *testing.T, d *fixture.SmallDisk, failed bool) {
	ctx := context.Background()
	o := d.O
	st, err := varve.Open(ctx, d.Dir, &o)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	const old = 100
	content := storetest.Text(20_000)
	for i := range old {
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("old", i), Content: content}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	d.Fill(1 << 20)
	const kept = old - 20
	for i := range kept {
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("new", i), Content: content}); err != nil {
			t.Fatal(err)
		}
	}
	if failed {
		if err := st.Flush(ctx); !errors.Is(err, varve.ErrDiskFull) {
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
	if _, err := st.Put(ctx, varve.Memory{ID: "after", Content: content}); err != nil {
		t.Error(err)
	}
}

// A migration to a disk that becomes full reports it, does no harm, and can be continued.
func TestMigrateToAFullDisk(t *testing.T) {
	t.Parallel()
	fixture.OnSmallDisks(t, func(t *testing.T, d *fixture.SmallDisk) {
		ctx := context.Background()
		from, o := "/from", d.O
		if storetest.Of(&o).System.FS == nil {
			from = filepath.Join(t.TempDir(), "from")
		}
		st, err := varve.Open(ctx, from, &o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 60 {
			if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("k", i), Content: strings.Repeat("x", 5000)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		d.Fill(100 << 10)
		_, err = varve.Migrate(ctx, from, d.Dir, &varve.MigrateOptions{Options: &o, Switch: true})
		var missing *varve.DiskFullError
		if !errors.As(err, &missing) || missing.Path != d.Dir ||
			!strings.Contains(err.Error(), "run the same command again to continue") {
			t.Fatalf("%v", err)
		}
		if _, err := varve.Open(ctx, d.Dir, &o); !errors.Is(err, varve.ErrNoStore) {
			t.Errorf("what was copied is a store: %v", err)
		}
		d.Empty()
		r, err := varve.Migrate(ctx, from, d.Dir, &varve.MigrateOptions{Options: &o, Switch: true})
		if err != nil || !r.Switched || r.Memories != 60 || r.Copied == 60 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
