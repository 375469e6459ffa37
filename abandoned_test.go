package varve

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"

	"github.com/varve-db/varve/internal/vfs/crash"
)

// A process is killed while it flushes, others live on, write newer versions and
// spill them. What it left in tmp/ is a version that stood in a file, no edit: it
// does not end in quarantine when the store is recovered one day (FAILURES 24).
func TestKilledFlusherBesideOthers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	made, _ := whole(t) // once; each kill has a copy, as the next boot finds it
	for at, died := 1, true; died; at += proofs.Every(2) {
		r := made.lose(crash.KeepAll, 1)
		b, err := Open(ctx, "/s", r.options(2))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Flush(ctx); err != nil { // it looks through tmp/ once, having recovered the log
			t.Fatal(err)
		}
		write := func(st *Store, version int) error {
			for i := range 3 {
				if _, err := st.Put(ctx, Memory{ID: fmt.Sprint("k", i), Content: strings.Repeat(fmt.Sprint(version), 50*i+1)}); err != nil {
					return err
				}
			}
			return nil
		}
		if _, died = alone(func() error {
			a, err := Open(ctx, "/s", r.options(3))
			if err == nil {
				err = write(a, 2)
			}
			if err != nil {
				t.Error(err)
				return err
			}
			r.ops, r.dieAt = 0, at
			return a.Flush(ctx)
		}); !died {
			t.Logf("a flush of %d operations", at-1)
		}
		r.dieAt = 0
		for version := 3; version < 5; version++ {
			if err := write(b, version); err != nil {
				t.Fatal(err)
			}
			if err := b.Admin().Compact(ctx); err != nil {
				t.Fatal(err)
			}
		}
		r = r.lose(crash.KeepAll, uint64(at))
		r.clock = r.clock.Add(time.Minute)
		c, err := Open(ctx, "/s", r.options(4))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		names, err := r.disk.Process("look").ReadDir("/s/quarantine")
		if err != nil || len(names) > 0 {
			t.Fatalf("killed at operation %d of a flush; set aside: %v, %v", at, names, err)
		}
	}
}
