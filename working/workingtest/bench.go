package workingtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve/working"
)

// Bench measures Set and Get with values of 1 KB on a home, with 1 and with 64 goroutines. It reports the rate, and
// quantiles of the durations of single operations.
func Bench(b *testing.B, h working.Home) {
	m, err := working.Open(b.Context(), h, working.Scope{Session: b.Name()}, nil)
	if err != nil {
		b.Fatal(err)
	}
	value := strings.Repeat("x", 1000)
	ops := map[string]func(ctx context.Context, key string) error{
		"set": func(ctx context.Context, key string) error { return m.Set(ctx, key, value) },
		"get": func(ctx context.Context, key string) error { _, _, err := m.Get(ctx, key); return err },
	}
	for _, op := range []string{"set", "get"} {
		for _, goroutines := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", op, goroutines), func(b *testing.B) { measure(b, goroutines, ops[op]) })
		}
	}
}

func measure(b *testing.B, goroutines int, op func(context.Context, string) error) {
	took := make([][]time.Duration, goroutines)
	var wg sync.WaitGroup
	b.ResetTimer()
	for g := range goroutines {
		wg.Go(func() {
			for i := g; i < b.N; i += goroutines {
				start := time.Now()
				if err := op(b.Context(), fmt.Sprint("k", i%1000)); err != nil {
					b.Error(err)
					return
				}
				took[g] = append(took[g], time.Since(start))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Concat(took...)
	slices.Sort(all)
	for _, p := range []int{50, 95, 99} {
		b.ReportMetric(float64(all[(len(all)*p+99)/100-1].Nanoseconds())/1000, fmt.Sprintf("p%d-µs", p))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}
