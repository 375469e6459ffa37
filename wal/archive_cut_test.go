package wal

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// TestArchiveOverwritesACutCopy: an interrupted copy has left a file that a purge cannot reach once it is
// removed. While files must be overwritten, this file is overwritten as well.
func TestArchiveOverwritesACutCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	fill(t, l, 2)
	name := filepath.Join(l.o.wal("archive"), filepath.Base(past.CopyName(1))+".new")
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, bytes.Repeat([]byte("secret"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l.Purges().Fail()
	if err := l.Archive().Copy(1); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(f); err != nil || bytes.Contains(b, []byte("secret")) {
		t.Errorf("its blocks hold %.20q, %v", b, err)
	}
}

// TestArchiveOfALongFile: what a segment's file has beyond the segment is neither read nor kept, so that a hole
// of terabytes after sound frames costs nothing, and the file is not recycled.
func TestArchiveOfALongFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	defer l.Close()
	fill(t, l, 2)
	name := l.o.wal(segment.Name(1))
	if err := os.Truncate(name, 1<<30); err != nil {
		t.Fatal(err)
	}
	if err := l.Archive().Copy(1); err != nil {
		t.Fatal(err)
	}
	size := uint64(0)
	damage, err := l.Past().ReadArchive(t.Context(), 1,
		func(_ int64, plain []byte) bool { size += uint64(len(plain)); return true })
	if err != nil || len(damage) > 0 || size != l.geo.Size {
		t.Errorf("the copy has %d bytes of a segment of %d: %v %v", size, l.geo.Size, damage, err)
	}
	if err := l.recycle(1); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(name), "*.wal"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || uint64(info.Size()) > l.geo.Size {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
}
