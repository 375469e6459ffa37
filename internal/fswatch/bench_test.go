package fswatch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
)

// BenchmarkAdopt measures files that change all at once, as in a checkout, from the first save until all
// of them are adopted; and until the files of an older version that a checkout brings are set aside:
//
//	go test ./fswatch -run '^$' -bench Adopt -benchtime 1x -files 20000
func BenchmarkAdopt(b *testing.B) {
	n := *checkoutFiles
	for _, c := range []struct{ name, from, to string }{
		{"edited", `"main `, `"branch `},
		{"older", `"main `, `"main `},
	} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				dir := filepath.Join(b.TempDir(), "store")
				adopted, all := 0, make(chan struct{})
				st, err := varve.Open(b.Context(), dir, &varve.Options{WatchFiles: true, Listener: func(e varve.Event) {
					if e.Kind == varve.EventAdopted || e.Kind == varve.EventEdit && e.Err != nil {
						if adopted++; adopted == n { // all by one goroutine
							close(all)
						}
					}
				}})
				if err != nil {
					b.Fatal(err)
				}
				put := func(text string) {
					for i := 0; i < n; i += 1000 {
						batch := new(varve.Batch)
						for j := i; j < min(n, i+1000); j++ {
							batch.Put(varve.Memory{ID: fmt.Sprint("k", j), Content: fmt.Sprint(text, j)})
						}
						if err := st.Apply(b.Context(), batch); err != nil {
							b.Fatal(err)
						}
					}
					if err := st.Flush(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
				put("main ")
				texts := make([]string, n)
				for i := range n {
					text, err := os.ReadFile(filepath.Join(dir, "memories", fmt.Sprintf("k%d.json", i)))
					if err != nil {
						b.Fatal(err)
					}
					texts[i] = strings.Replace(string(text), c.from, c.to, 1)
				}
				if c.from == c.to {
					put("newer ")
				}
				time.Sleep(2 * time.Second) // the watcher has seen the files that we wrote
				b.StartTimer()
				began := time.Now()
				for i, text := range texts {
					if err := os.WriteFile(filepath.Join(dir, "memories", fmt.Sprintf("k%d.json", i)), []byte(text), 0o600); err != nil {
						b.Fatal(err)
					}
				}
				saved := time.Since(began)
				<-all
				b.ReportMetric(float64(n)/time.Since(began).Seconds(), "files/s")
				b.ReportMetric(saved.Seconds(), "s-to-save")
				b.StopTimer()
				if err := st.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
