package backups

import (
	"context"
	"fmt"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

// BenchmarkReplaceArchived replaces memories whose versions only the archive has.
func BenchmarkReplaceArchived(b *testing.B) {
	const memories = 1000
	ctx := context.Background()
	st := fixture.Open(b, b.TempDir(), storetest.In(&varve.Options{SegmentSize: 1 << 20, NoBackground: true},
		storetest.Environment{System: vfs.System{SpillBytes: 64 << 10}}))
	content := func(i int) string { return fmt.Sprintf("%d %0800d", i, 1) }
	put := func(n int, name string) {
		for i := range n {
			if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint(name, i%memories), Content: content(i)}); err != nil {
				b.Fatal(err)
			}
			if i%500 == 499 {
				if err := st.Flush(ctx); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	put(memories, "m")
	b.ResetTimer()
	for i := range b.N {
		if i%memories == 0 {
			b.StopTimer()
			put(6*memories, "filling")
			b.StartTimer()
		}
		if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("m", i%memories), Content: content(i)}); err != nil {
			b.Fatal(err)
		}
	}
}
