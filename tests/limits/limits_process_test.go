package limits

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
)

// limitChild puts a hundred memories from four goroutines, and prints which were acknowledged.
func limitChild(ctx context.Context, name, dir string) error {
	st, err := varve.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for g := range 4 {
		wg.Go(func() {
			for i := range 25 {
				id := fmt.Sprint(name, "-", g, "-", i)
				_, perr := st.Put(ctx, varve.Memory{ID: id, Content: "x", Metadata: fixture.InSession("s")})
				mu.Lock()
				switch {
				case perr == nil:
					fmt.Println(id)
				case !errors.Is(perr, varve.ErrLimit):
					err = errors.Join(err, perr)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(err, st.Close())
}

// A memory that another process has put can be replaced in a full store, also by a process that does not
// know of it yet: that takes no room.
func TestLimitOfWhatAnotherPut(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{varve.AtLimitRefuse, varve.AtLimitEvictOldest} {
		t.Run(policy, func(t *testing.T) {
			dir := t.TempDir()
			one := fixture.Open(t, dir, &varve.Options{NoBackground: true})
			fixture.LimitTo(t, one, func(c *varve.Config) { c.MaxMemories, c.MaxSessionMemories, c.AtLimit = 1, 1, policy })
			two := fixture.Open(t, dir, &varve.Options{NoBackground: true})
			m := varve.Memory{ID: "a", Content: "x", Metadata: fixture.InSession("s")}
			for _, st := range []*varve.Store{one, two} {
				if _, err := st.Put(t.Context(), m); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Four processes put against a limit: exactly as many as it allows remain, and these are those that were
// acknowledged, except for what was evicted.
func TestLimitProcesses(t *testing.T) {
	proofs.ManyProcesses(t, "it starts processes")
	ctx := context.Background()
	const limit = 120
	for _, policy := range []string{varve.AtLimitRefuse, varve.AtLimitEvictOldest} {
		t.Run(policy, func(t *testing.T) {
			dir := t.TempDir()
			st := fixture.Open(t, dir, nil)
			fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxSessionMemories, c.AtLimit = limit, policy })
			from := st.Admin().Stats().Durable
			acked := map[string]bool{}
			var mu sync.Mutex
			var wg sync.WaitGroup
			for p := range 4 {
				cmd, out := storetest.Start(t, fmt.Sprint("limit:", p), dir)
				wg.Go(func() {
					for s := bufio.NewScanner(out); s.Scan(); {
						mu.Lock()
						acked[strings.TrimSpace(s.Text())] = true
						mu.Unlock()
					}
					if err := cmd.Wait(); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			n := 0
			for m, err := range st.Memories(ctx, varve.InSession("s")) {
				if n++; err != nil || !acked[m.ID] {
					t.Errorf("%s was not acknowledged (%v)", m.ID, err)
				}
			}
			if want := map[string]int{varve.AtLimitRefuse: limit, varve.AtLimitEvictOldest: 400}[policy]; n != limit ||
				len(acked) != want {
				t.Errorf("%d remain, %d were acknowledged, not %d", n, len(acked), want)
			}
			// Nor were there ever more, after any commit.
			there := map[string]bool{}
			for c, err := range st.Admin().Changes(ctx, from) {
				if err != nil {
					t.Fatal(err)
				}
				if there[c.ID] = true; c.Deleted {
					delete(there, c.ID)
				}
				if !c.More && len(there) > limit {
					t.Fatalf("%d are there at %d", len(there), c.LSN)
				}
			}
			for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
				t.Errorf("verify: %+v, %v", f, err)
			}
		})
	}
	t.Run("bytes", func(t *testing.T) {
		dir := t.TempDir()
		st := fixture.Open(t, dir, nil)
		const limit, longest = 40_000, 500
		fixture.LimitTo(t, st, func(c *varve.Config) { c.MaxSessionBytes = limit })
		var wg sync.WaitGroup
		var acked atomic.Int64
		for p := range 4 {
			cmd, out := storetest.Start(t, fmt.Sprint("limit:", p), dir)
			wg.Go(func() {
				for s := bufio.NewScanner(out); s.Scan(); {
					acked.Add(1)
				}
				if err := cmd.Wait(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if is := bytesIn(t, st, varve.InSession("s")); is.Bytes > limit || is.Bytes < limit-longest || is.N != acked.Load() {
			t.Errorf("%+v remain, %d were acknowledged", is, acked.Load())
		}
	})
}
