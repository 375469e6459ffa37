//go:build linux || darwin

package docfile

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/varve-db/varve/internal/vfs"
)

// BenchmarkCreate settles 16,384 new files of 1 KB in rounds of 4,096, with 2 workers below a guarded root, in turns as
// temp files with names and as files without a name. It reports files a second, and the processor time for each file.
//
//	TMPDIR=DIR go test ./internal/docfile -run '^$' -bench Create$ -benchtime 6x
func BenchmarkCreate(b *testing.B) {
	const files, round = 16384, 4096
	body := bytes.Repeat([]byte("0123456789abcde\n"), 64)
	spent := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for n := range 2 * b.N {
		way, least := "named", -1
		if n%4 == 1 || n%4 == 2 { // which of a pair is first alternates
			way, least = "unnamed", 1
		}
		root := b.TempDir()
		l := Layout{FS: vfs.Below(vfs.OS(), root), Root: root}
		folder := l.Folder("memories")
		if err := folder.Make(); err != nil {
			b.Fatal(err)
		}
		fl, err := NewFlusher(Options{Layout: l, Token: "bench", Clock: time.Now, Workers: 2, Unnamed: least})
		if err != nil {
			b.Fatal(err)
		}
		began, cpu := time.Now(), spent()
		for at := 0; at < files; at += round {
			changes := make([]Change, round)
			for i := range changes {
				changes[i] = Change{Folder: folder, Name: fmt.Sprintf("%08d.json", at+i), Mtime: began, Bytes: body}
			}
			if r, err := fl.Round(context.Background(), changes); err != nil || len(r.Edits) > 0 {
				b.Fatal(len(r.Edits), err)
			}
		}
		took, used := time.Since(began), spent()-cpu
		b.Logf("%-8s %6.0f files/s, %.1f µs of processor a file", way, files/took.Seconds(),
			float64(used.Microseconds())/files)
		if err := fl.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
