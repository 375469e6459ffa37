package edits

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs/crash"
)

// A process is killed while it flushes, other processes continue, write newer versions and spill them.
// The file that it left in tmp/ is a version that was in a file, not an edit: it is not moved to
// quarantine when the store is recovered one day (FAILURES 24).
func TestKilledFlusherBesideOthers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	made, _ := fixture.Filled(t) // made once; each kill gets a copy, as the next boot finds it
	for at, died := 1, true; died; at += proofs.Every(2) {
		r := made.Lose(crash.KeepAll, 1)
		b, err := varve.Open(ctx, "/s", r.Options(2))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Flush(ctx); err != nil { // it searches tmp/ once, after recovering the log
			t.Fatal(err)
		}
		write := func(st *varve.Store, version int) error {
			for i := range 3 {
				if _, err := st.Put(ctx,
					varve.Memory{ID: fmt.Sprint("k", i), Content: strings.Repeat(fmt.Sprint(version), 50*i+1)}); err != nil {
					return err
				}
			}
			return nil
		}
		if _, died = fixture.UntilKilled(func() error {
			a, err := varve.Open(ctx, "/s", r.Options(3))
			if err == nil {
				err = write(a, 2)
			}
			if err != nil {
				t.Error(err)
				return err
			}
			r.Ops, r.DieAt = 0, at
			return a.Flush(ctx)
		}); !died {
			t.Logf("a flush of %d operations", at-1)
		}
		r.DieAt = 0
		for version := 3; version < 5; version++ {
			if err := write(b, version); err != nil {
				t.Fatal(err)
			}
			if err := b.Admin().Compact(ctx); err != nil {
				t.Fatal(err)
			}
		}
		r = r.Lose(crash.KeepAll, uint64(at))
		r.Clock = r.Clock.Add(time.Minute)
		c, err := varve.Open(ctx, "/s", r.Options(4))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		names, err := r.Disk.Process("look").ReadDir("/s/quarantine")
		if err != nil || len(names) > 0 {
			t.Fatalf("killed at operation %d of a flush; set aside: %v, %v", at, names, err)
		}
	}
}
