package docfile

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// go test -run - -bench Settle -benchtime 1x ./internal/docfile
// One iteration settles 20,000 files of 1 KB with 2 workers; "raw" makes the
// same calls without looking at anything.
func BenchmarkSettle(b *testing.B) {
	const files = 20000
	body := bytes.Repeat([]byte("0123456789abcde\n"), 64)
	for _, hashed := range []bool{false, true} {
		b.Run(fmt.Sprintf("hash=%v", hashed), func(b *testing.B) {
			for range b.N {
				l := Layout{FS: vfs.OS(), Root: b.TempDir()}
				folder := l.Folder("memories")
				if err := folder.Make(); err != nil {
					b.Fatal(err)
				}
				fl, err := NewFlusher(Options{Layout: l, Token: "bench", Clock: time.Now, Workers: 2})
				if err != nil {
					b.Fatal(err)
				}
				var before Before
				at := time.Date(2026, 1, 1, 0, 0, 0, 1000, time.UTC)
				for v, kind := range []string{"create", "replace", "replace2"} {
					changes := make([]Change, files)
					at = at.Add(time.Second)
					for i := range changes {
						changes[i] = Change{Folder: folder, Name: fmt.Sprintf("%08d.json", i), Mtime: at, Before: before,
							Data: func() ([]byte, error) { return body, nil }}
					}
					start := time.Now()
					r, err := fl.Round(context.Background(), changes)
					if err != nil || len(r.Edits) > 0 {
						b.Fatal(v, len(r.Edits), err)
					}
					b.ReportMetric(files/time.Since(start).Seconds(), kind+"/s")
					before = Before{Exists: true, Size: int64(len(body)), Mtime: at}
					if hashed {
						before.Hash = contentHash(body)
					}
				}
				if err := fl.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("raw", func(b *testing.B) {
		for range b.N {
			rawSettle(b, files, body)
		}
	})
}

func rawSettle(b *testing.B, files int, body []byte) {
	fsys, root := vfs.OS(), b.TempDir()
	for _, d := range []string{"memories", "0", "1"} {
		if err := fsys.Mkdir(filepath.Join(root, d), 0o700); err != nil {
			b.Fatal(err)
		}
	}
	for _, kind := range []string{"create", "replace", "replace2"} {
		start := time.Now()
		bar, err := fsys.OpenBarrier(root)
		if err != nil {
			b.Skip(err)
		}
		var wg sync.WaitGroup
		for w := range 2 {
			wg.Go(func() {
				tmp := filepath.Join(root, fmt.Sprint(w), "t")
				for i := w; i < files; i += 2 {
					place := filepath.Join(root, "memories", fmt.Sprintf("%08d.json", i))
					f, err := fsys.OpenFile(tmp, os.O_RDWR|os.O_CREATE, 0o600)
					if err == nil {
						_, err = f.WriteAt(body, 0)
					}
					if err == nil {
						err = f.SetMtime(start)
					}
					if err == nil {
						err = f.Close()
					}
					if err == nil {
						if kind == "create" {
							err = fsys.RenameNew(tmp, place)
						} else {
							err = fsys.Exchange(tmp, place)
						}
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if err := bar.Sync(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(files)/time.Since(start).Seconds(), kind+"/s")
		_ = bar.Close()
	}
}
