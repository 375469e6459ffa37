package varve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// limitChild puts a hundred memories from four goroutines, and says which were acknowledged.
func limitChild(ctx context.Context, name, dir string) error {
	st, err := Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for g := range 4 {
		wg.Go(func() {
			for i := range 25 {
				id := fmt.Sprint(name, "-", g, "-", i)
				_, perr := st.Put(ctx, Memory{ID: id, Content: "x", Metadata: inSession("s")})
				mu.Lock()
				switch {
				case perr == nil:
					fmt.Println(id)
				case !errors.Is(perr, ErrLimit):
					err = errors.Join(err, perr)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(err, st.Close())
}

// Four processes put against a limit: exactly as many as it allows remain, and these are
// those that were acknowledged, but for what was evicted.
func TestLimitProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it starts processes")
	}
	ctx := context.Background()
	const limit = 120
	for _, policy := range []string{AtLimitRefuse, AtLimitEvictOldest} {
		t.Run(policy, func(t *testing.T) {
			dir := t.TempDir()
			st := openTest(t, dir, nil)
			limitTo(t, st, func(c *Config) { c.MaxSessionMemories, c.AtLimit = limit, policy })
			acked := map[string]bool{}
			var mu sync.Mutex
			var wg sync.WaitGroup
			for p := range 4 {
				cmd, out := startChild(t, fmt.Sprint("limit:", p), dir)
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
			for m, err := range st.Memories(ctx, InSession("s")) {
				if n++; err != nil || !acked[m.ID] {
					t.Errorf("%s was not acknowledged (%v)", m.ID, err)
				}
			}
			if want := map[string]int{AtLimitRefuse: limit, AtLimitEvictOldest: 400}[policy]; n != limit || len(acked) != want {
				t.Errorf("%d remain, %d were acknowledged, not %d", n, len(acked), want)
			}
			for f, err := range st.Verify(ctx, VerifyOptions{}) {
				t.Errorf("verify: %+v, %v", f, err)
			}
		})
	}
}
