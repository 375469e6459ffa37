package storm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/memstore"
)

// A store is closed while all kinds of operations are in progress: each call succeeds or returns
// ErrClosed, acknowledged writes are there afterwards, and no file stays open.
func TestCloseBesideEverything(t *testing.T) {
	t.Parallel()
	seed := proofs.Seed(t, 0)
	rng := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	for round := range storetest.Repeat(t, 5) {
		dir := filepath.Join(t.TempDir(), "s")
		st, err := varve.Open(context.Background(), dir, stormOptions())
		if err != nil {
			t.Fatal(err)
		}
		storetest.Inner(st).Engine.Tune().Few = 0 // filters ask the words
		var wg sync.WaitGroup
		ctx := context.Background()
		ok := func(what string, err error) {
			if err == nil || errors.Is(err, varve.ErrClosed) || errors.Is(err, varve.ErrNotFound) ||
				errors.Is(err, varve.ErrTruncated) || errors.Is(err, varve.ErrConflict) || errors.Is(err, varve.ErrLimit) {
				return
			}
			t.Errorf("%s: %v", what, err)
		}
		var acked sync.Map
		for g := range 6 {
			wg.Go(func() {
				for i := 0; ; i++ {
					id := fmt.Sprintf("%d-%d", g, i)
					_, err := st.Put(ctx,
						varve.Memory{ID: id, Content: storetest.Content("x", i*37%3000),
							Metadata: map[string]any{"tags": []any{fmt.Sprint("g", g)}}})
					ok("put", err)
					if err != nil {
						return
					}
					acked.Store(id, true)
				}
			})
		}
		wg.Go(func() {
			var ps []*varve.Pending
			for i := range 200 {
				ps = append(ps, st.PutAsync(varve.Memory{ID: fmt.Sprint("a", i), Content: "x"}))
			}
			for i, p := range ps {
				_, err := p.Wait(ctx)
				ok("async", err)
				if err == nil {
					acked.Store(fmt.Sprint("a", i), true)
				}
			}
		})
		loop := func(what string, f func() error) {
			wg.Go(func() {
				for {
					err := f()
					ok(what, err)
					if errors.Is(err, varve.ErrClosed) {
						return
					}
				}
			})
		}
		loop("flush", func() error { return st.Flush(ctx) })
		loop("compact", func() error { return st.Admin().Compact(ctx) })
		loop("count", func() error { _, err := st.Count(ctx); return err })
		loop("list", func() error {
			var err error
			for _, e := range st.Memories(ctx) {
				if e != nil {
					err = e
				}
			}
			return err
		})
		loop("sessions", func() error {
			var err error
			for _, e := range st.Sessions().All(ctx) {
				if e != nil {
					err = e
				}
			}
			return err
		})
		loop("sorted list", func() error {
			o, err := memstore.ParseOrder("-updated", "")
			for _, e := range st.Memories(ctx, varve.Sorted(o)) {
				if e != nil {
					err = e
				}
			}
			return err
		})
		tagged, err := varve.Where("tags=g1")
		if err != nil {
			t.Fatal(err)
		}
		loop("filtered list", func() error {
			var want []string
			acked.Range(func(id, _ any) bool {
				if strings.HasPrefix(id.(string), "1-") {
					want = append(want, id.(string))
				}
				return true
			})
			has := map[string]bool{}
			for m, err := range st.Memories(ctx, tagged) {
				if err != nil {
					return err
				}
				has[m.ID] = true
			}
			for _, id := range want {
				if !has[id] {
					return fmt.Errorf("%s was acknowledged before and is not listed by its tag", id)
				}
			}
			_, err := st.Count(ctx, tagged)
			return err
		})
		loop("history", func() error {
			var err error
			for _, e := range st.History(ctx, "0-1") {
				if e != nil {
					err = e
				}
			}
			return err
		})
		loop("verify", func() error {
			for f, e := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
				if e != nil {
					return e
				}
				if f.Severity != varve.SeverityInfo {
					return fmt.Errorf("%+v", f)
				}
			}
			return nil
		})
		n := 0
		loop("backup", func() error {
			n++
			_, err := st.Backup(ctx, fmt.Sprintf("%s-b%d", dir, n), varve.BackupOptions{})
			return err
		})
		loop("update", func() error {
			_, err := st.Update(ctx, "0-0", func(m *varve.Memory) error { m.Content += "."; return nil })
			return err
		})
		time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
		if err := st.Close(); err != nil {
			t.Errorf("round %d: close: %v", round, err)
		}
		wg.Wait()
		if left := storetest.OpenBelow(dir); len(left) > 0 {
			t.Errorf("open: %v", left)
		}
		st, err = varve.Open(ctx, dir, stormOptions())
		if err != nil {
			t.Fatal(err)
		}
		acked.Range(func(id, _ any) bool {
			if _, err := st.Get(ctx, id.(string)); err != nil {
				t.Errorf("acknowledged %v: %v", id, err)
			}
			return true
		})
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			return
		}
	}
}
