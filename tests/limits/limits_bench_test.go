package limits

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// BenchmarkLimits measures a put under limits, with 32 goroutines at once: without a limit, with room
// left, at the limit where others are deleted, and at the limit where each put makes its own room.
func BenchmarkLimits(b *testing.B) {
	ctx := context.Background()
	const full = 2000 // memories, of about a kilobyte
	for _, c := range []struct {
		name   string
		change func(c *varve.Config)
		fill   int
		delete bool
	}{
		{"none", func(c *varve.Config) {}, 0, false},
		{"memories", func(c *varve.Config) { c.MaxMemories = 1e9 }, 0, false},
		{"bytes", func(c *varve.Config) { c.MaxBytes = 1 << 30 }, 0, false},
		{"session-bytes", func(c *varve.Config) { c.MaxSessionBytes = 1 << 30 }, 0, false},
		{"evict-memories", func(c *varve.Config) { c.MaxMemories, c.AtLimit = full, varve.AtLimitEvictOldest }, full, false},
		{"evict-bytes", func(c *varve.Config) { c.MaxBytes, c.AtLimit = full*1000, varve.AtLimitEvictOldest }, full, false},
		{"own-room", func(c *varve.Config) { c.MaxMemories = full }, full - 32, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			st := fixture.Open(b, b.TempDir(), &varve.Options{NoBackground: true})
			content := strings.Repeat("x", 1400)
			batch := new(varve.Batch)
			for i := range c.fill {
				batch.Put(varve.Memory{ID: fmt.Sprint("old", i), Content: content[:i%1400], Metadata: fixture.InSession("s")})
			}
			if err := st.Apply(ctx, batch); err != nil {
				b.Fatal(err)
			}
			fixture.LimitTo(b, st, c.change)
			b.ResetTimer()
			var wg sync.WaitGroup
			var next atomic.Int64
			for range 32 {
				wg.Go(func() {
					for {
						i := next.Add(1)
						if i > int64(b.N) {
							return
						}
						id := fmt.Sprint("new", i)
						if _, err := st.Put(ctx,
							varve.Memory{ID: id, Content: content[:i*37%1400], Metadata: fixture.InSession("s")}); err != nil {
							b.Error(err)
							return
						}
						if c.delete {
							if err := st.Delete(ctx, id); err != nil {
								b.Error(err)
								return
							}
						}
					}
				})
			}
			wg.Wait()
		})
	}
}
