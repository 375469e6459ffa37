//go:build linux || darwin

package fswatch_test

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/varve-db/varve"
)

// BenchmarkIdle measures what a process that has a store open costs while nothing happens, without and with a watcher:
// its processor time, by the second. The first seconds with a watcher have the scan of all files.
//
//	go test ./internal/fswatch -run '^$' -bench Idle -benchtime 1x -files 100000
func BenchmarkIdle(b *testing.B) {
	spent := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	dir := b.TempDir()
	st, err := varve.Open(b.Context(), dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; i < *checkoutFiles; i += 1000 {
		batch := new(varve.Batch)
		for j := range min(1000, *checkoutFiles-i) {
			batch.Put(varve.Memory{ID: fmt.Sprint("k", i+j), Content: fmt.Sprint("text ", i+j)})
		}
		if err := st.Apply(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		b.Fatal(err)
	}
	for _, watch := range []bool{false, true} {
		b.Run(fmt.Sprint("watch=", watch), func(b *testing.B) {
			for range b.N {
				st, err := varve.Open(b.Context(), dir, &varve.Options{WatchFiles: watch})
				if err != nil {
					b.Fatal(err)
				}
				list := ""
				for range 40 {
					before := spent()
					time.Sleep(time.Second)
					list += fmt.Sprintf(" %.1f", float64((spent()-before).Microseconds())/1000)
				}
				b.Logf("ms of processor in each second:%s", list)
				if err := st.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
