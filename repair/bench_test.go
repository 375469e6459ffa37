package repair_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
)

var (
	benchFiles = flag.Int("verify-files", 20000, "BenchmarkVerify: memories in the store")
	benchStore = flag.String("verify-store", "", "BenchmarkVerify: a folder for the store, which stays; made when it is not there")
)

// BenchmarkVerify compares verifying with plain reading of the same files by as
// many goroutines, in turn. On a machine with nothing else to do:
//
//	go test ./repair -run '^$' -bench BenchmarkVerify -benchtime 5x -verify-files 100000
func BenchmarkVerify(b *testing.B) {
	dir := *benchStore
	if dir == "" {
		dir = filepath.Join(b.TempDir(), "s")
	}
	st := benchVerifyStore(b, dir)
	defer func() { _ = st.Close() }()
	var reading, verifying time.Duration
	told, most := 0, uint64(0)
	for b.Loop() {
		began := time.Now()
		plainRead(b, filepath.Join(dir, "memories"))
		reading += time.Since(began)
		stop := watchHeap(&most)
		began = time.Now()
		list := verify(b, st, varve.VerifyOptions{Progress: func(int64, int64) { told++ }})
		verifying += time.Since(began)
		stop()
		if len(list) > 0 {
			b.Fatal(list)
		}
	}
	n := float64(*benchFiles * b.N)
	b.ReportMetric(n/reading.Seconds(), "read-files/s")
	b.ReportMetric(n/verifying.Seconds(), "verified-files/s")
	b.ReportMetric(100*reading.Seconds()/verifying.Seconds(), "%-of-reading")
	b.ReportMetric(float64(most)/(1<<20), "most-heap-MiB")
	b.ReportMetric(float64(told)/float64(b.N), "progress/op")
}

func benchVerifyStore(b *testing.B, dir string) *varve.Store {
	b.Helper()
	_, err := os.Stat(dir)
	st, oerr := varve.Open(b.Context(), dir, &varve.Options{CacheBytes: -1, NoBackground: true})
	if oerr != nil {
		b.Fatal(oerr)
	}
	if errors.Is(err, fs.ErrNotExist) {
		content := strings.Repeat("a sentence that somebody said ", 28)
		if _, err := st.PutAll(b.Context(), func(yield func(varve.Memory) bool) {
			for i := range *benchFiles {
				if !yield(varve.Memory{ID: fmt.Sprintf("m%d", i), Content: content}) {
					return
				}
			}
		}); err != nil {
			b.Fatal(err)
		}
		if err := st.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	if n, err := st.Count(b.Context()); err != nil || n != int64(*benchFiles) {
		b.Fatalf("the store has %d memories (%v), not %d", n, err, *benchFiles)
	}
	return st
}

// watchHeap records the largest heap, sampled every few milliseconds, until it is stopped.
func watchHeap(most *uint64) (stop func()) {
	var over atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for !over.Load() {
			metrics.Read(s)
			*most = max(*most, s[0].Value.Uint64())
			time.Sleep(5 * time.Millisecond)
		}
	})
	return func() { over.Store(true); wg.Wait() }
}

// plainRead lists a folder and reads every file in it, by two goroutines.
func plainRead(b *testing.B, dir string) {
	b.Helper()
	names, err := os.ReadDir(dir)
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error)
	for w := range 2 {
		go func() {
			for i := w; i < len(names); i += 2 {
				if _, err := os.ReadFile(filepath.Join(dir, names[i].Name())); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
}
