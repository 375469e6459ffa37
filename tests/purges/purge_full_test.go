package purges

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

// On a full disk a purge makes its own room, if the files are as new as the log; otherwise the memories
// are deleted, and the error says how much space is missing for the rest.
func TestPurgeOnAFullDisk(t *testing.T) {
	t.Parallel()
	fixture.OnSmallDisks(t, func(t *testing.T, d *fixture.SmallDisk) {
		ctx := context.Background()
		o := d.O
		st, err := varve.Open(ctx, d.Dir, &o)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		fsys := vfs.OS()
		if storetest.Of(&o).System.FS != nil {
			fsys = storetest.Of(&o).System.FS
		}
		s := secretive(t, st, 5)
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		want := s.others(fixture.Contents(t, st))
		d.Fill(4096)
		r, err := st.Admin().Purge(ctx, s.ids...)
		if err != nil || r.Dropped+r.Backups < 3 {
			t.Errorf("with all in files: %+v, %v", r, err)
		}
		// Where the next segment was made before the disk was full, nothing has to go:
		// the simulated one never has it, a real one when its goroutine was quick.
		if storetest.Of(&o).System.FS != nil && r.Dropped == 0 {
			t.Errorf("the disk was not full: %+v", r)
		}
		fixture.Compare(t, fixture.Contents(t, st), want, true)
		if left := s.traces(t, fsys, d.Dir); len(left) > 0 {
			t.Error(left[0])
		}

		d.Empty()
		s.ids = append(s.ids, "late")
		if _, err := st.Put(ctx,
			varve.Memory{ID: "late", Content: s.text(rand.New(rand.NewPCG(5, 5)), "late", 2000)}); err != nil {
			t.Fatal(err)
		}
		d.Fill(100 << 10)
		var full error
		for i := 0; full == nil && i < 100_000; i++ {
			_, full = st.Put(ctx, varve.Memory{ID: fmt.Sprint("more", i), Content: strings.Repeat("y", 1000)})
		}
		if !errors.Is(full, varve.ErrDiskFull) {
			t.Fatal(full)
		}
		want = s.others(fixture.Contents(t, st))
		r, err = st.Admin().Purge(ctx, s.ids...)
		if !errors.Is(err, varve.ErrDiskFull) || len(r.Deleted) != 1 ||
			!strings.Contains(err.Error(), "the memories are deleted, but traces of them are left") {
			t.Errorf("with much in the log only: %+v, %v", r, err)
		}
		if _, err := st.Get(ctx, "late"); !errors.Is(err, varve.ErrNotFound) {
			t.Error(err)
		}
		d.Empty()
		if _, err = st.Admin().Purge(ctx, s.ids...); err != nil {
			t.Error(err)
		}
		fixture.Compare(t, fixture.Contents(t, st), want, true)
		if left := s.traces(t, fsys, d.Dir); len(left) > 0 {
			t.Error(left[0])
		}
	})
}
