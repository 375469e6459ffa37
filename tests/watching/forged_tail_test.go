package watching

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// TestForgedTail: a word of wal/shared that claims a much longer log does not make a write flush without
// end (row 126 of docs/failures.md).
func TestForgedTail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := fixture.Open(t, dir, &varve.Options{NoBackground: true})
	if _, err := st.Put(t.Context(), varve.Memory{ID: "a", Content: "one"}); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "wal", "shared"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const tail = 8 * 4
	var was, b [8]byte
	if _, err := f.ReadAt(was[:], tail); err != nil {
		t.Fatal(err)
	}
	binary.NativeEndian.PutUint64(b[:], binary.NativeEndian.Uint64(was[:])+1<<40)
	if _, err := f.WriteAt(b[:], tail); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if _, err := st.Put(ctx, varve.Memory{ID: "b", Content: "two"}); errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := f.WriteAt(was[:], tail); err != nil {
		t.Fatal(err)
	}
}
