package dir_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/segment"
)

// TestSparseEntry: the head of an entry claims a large body. The reader does not take that much memory for it: no
// sender makes such a piece of segments of this size, or one that is a hole of the file and takes no space.
func TestSparseEntry(t *testing.T) {
	for _, c := range []struct {
		name    string
		claimed uint64
		segment uint64 // size that the head claims for a segment, 0: the usual one
	}{{"larger than a segment", 40 << 20, 0}, {"in a large segment", segment.MaxSize / 2, segment.MaxSize}} {
		t.Run(c.name, func(t *testing.T) {
			if c.segment != 0 && runtime.GOOS == "windows" {
				t.Log("this system does not report holes")
				return
			}
			folder := filepath.Join(t.TempDir(), "copy")
			r, l := begun(t, folder, 3)
			name := entry(folder, "003")
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			const size = 264 // of the head
			b = b[:size]
			if c.segment != 0 {
				binary.LittleEndian.PutUint64(b[64:], c.segment)
				binary.LittleEndian.PutUint64(b[80:], c.segment)
				binary.LittleEndian.PutUint64(b[96:], c.segment+c.claimed)
			}
			binary.LittleEndian.PutUint64(b[160:], c.claimed)
			sum := sha256.Sum256(b[:232])
			copy(b[232:], sum[:])
			if c.segment == 0 { // no hole, which would be damage by itself
				b = append(b, bytes.Repeat([]byte("some text"), int(c.claimed/9))...)
			}
			if err := errors.Join(os.WriteFile(name, b, 0o600), os.Truncate(name, int64(size+c.claimed))); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			damaged := 0
			for _, err := range r.Read(t.Context(), 1, l.Start.LSN) {
				if errors.Is(err, errs.ErrCorrupt) {
					damaged++
				} else if err != nil {
					t.Error(err)
				}
			}
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; damaged != 1 || took > 16<<20 {
				t.Errorf("%d damaged entries, %d MiB of memory", damaged, took>>20)
			}
		})
	}
}
