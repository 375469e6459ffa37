package repair_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
)

// BenchmarkVerify compares verifying with plain reading of the same files by as
// many goroutines.
func BenchmarkVerify(b *testing.B) {
	const n = 20000
	dir := filepath.Join(b.TempDir(), "s")
	st, err := varve.Open(b.Context(), dir, &varve.Options{CacheBytes: -1, NoBackground: true})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	content := strings.Repeat("a sentence that somebody said ", 28)
	if _, err := st.PutAll(b.Context(), func(yield func(varve.Memory) bool) {
		for i := range n {
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
	var reading, verifying time.Duration
	for b.Loop() {
		began := time.Now()
		plainRead(b, filepath.Join(dir, "memories"))
		reading += time.Since(began)
		began = time.Now()
		if list := verify(b, st, varve.VerifyOptions{}); len(list) > 0 {
			b.Fatal(list)
		}
		verifying += time.Since(began)
	}
	b.ReportMetric(float64(n*b.N)/reading.Seconds(), "read-files/s")
	b.ReportMetric(float64(n*b.N)/verifying.Seconds(), "verified-files/s")
	b.ReportMetric(100*reading.Seconds()/verifying.Seconds(), "%-of-reading")
}

func plainRead(b *testing.B, dir string) {
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
			b.Fatal(err)
		}
	}
}
