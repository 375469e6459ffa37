package dir_test

import (
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

// TestSparseEntry: the head of an entry claims a body of a gigabyte, which is a hole of the file and takes no space.
// The reader does not take that much memory for it: no sender makes such a piece of segments of this size.
func TestSparseEntry(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "copy")
	r, l := begun(t, folder, 3)
	name := entry(folder, "003")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	const size = 264 // of the head
	b = b[:size]
	binary.LittleEndian.PutUint64(b[160:], segment.MaxSize)
	sum := sha256.Sum256(b[:232])
	copy(b[232:], sum[:])
	if err := errors.Join(os.WriteFile(name, b, 0o600), os.Truncate(name, size+segment.MaxSize)); err != nil {
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
}
