package wal

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// archivedCopy returns the copy of a segment whose frames compress a little.
func archivedCopy(t *testing.T) (l *FileLog, name string, plain []byte) {
	t.Helper()
	l, _ = open(t, t.TempDir(), func(o *Options) { o.Inline = true }) // it does not grow while it is copied
	t.Cleanup(func() { _ = l.Close() })
	for _, w := range []string{"alpha", "beta", "gamma"} {
		mustAppend(t, l, put("m"+w, strings.Repeat(w+" was said, and ", 9)))
	}
	if err := l.o.FS.Mkdir(l.o.wal("archive"), 0o700); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	if err := l.archive(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	return l, filepath.Join(l.o.Dir, "wal", past.CopyName(1)), readCopy(t, l)
}

func readCopy(t *testing.T, l *FileLog) []byte {
	t.Helper()
	c, err := past.OpenCopy(l.o.FS, l.o.walDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	plain, err := io.ReadAll(io.NewSectionReader(c, 0, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// A flip of any bit of an archived segment is detected, even of bits that this decoder ignores (found by
// TestRot -all-bits).
func TestArchiveEveryBit(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	l, name, _ := archivedCopy(t)
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(good) {
		b := append([]byte(nil), good...)
		b[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		damage, err := l.Past().ReadArchive(context.Background(), 1, func(int64, []byte) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		if len(damage) == 0 {
			t.Fatalf("nobody tells bit %d of %d", bit, 8*len(good))
		}
		if bit/8 >= archiveHead+blockHead && bit%61 != 0 || bit%8 != bit/8%8 {
			continue // creating a decoder is slow: one bit of each byte of the headers
		}
		if _, whole, _ := past.InflateCopy(b); whole {
			t.Fatalf("it is said to be whole with bit %d of %d", bit, 8*len(good))
		}
	}
	if _, whole, ok := past.InflateCopy(good); !whole || !ok {
		t.Error("a good one is not whole")
	}
	t.Logf("%d bits", 8*len(good))
}

// A copy of version 1, whose hash covers the plain bytes, can be read.
func TestArchiveVersion1(t *testing.T) {
	t.Parallel()
	l, name, plain := archivedCopy(t)
	b, err := vfs.ReadFile(l.o.FS, name, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	le.PutUint32(b[8:], 1)
	le.PutUint64(b[archiveHead+8:], xxhash.Sum64(plain)) // it has one block
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := readCopy(t, l); string(got) != string(plain) {
		t.Errorf("%d bytes, not %d", len(got), len(plain))
	}
	damage, err := l.Past().ReadArchive(context.Background(), 1, func(int64, []byte) bool { return true })
	if err != nil || len(damage) > 0 {
		t.Error(damage, err)
	}
}

// A copy of a newer format is not damage for any reader; a copy whose version has a flipped bit is.
func TestNewerArchive(t *testing.T) {
	t.Parallel()
	l, name, _ := archivedCopy(t)
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, newer := range []bool{true, false} {
		b := append([]byte(nil), good...)
		b[8] = past.ArchiveFormat + 1
		if newer {
			b[archiveHead+8] ^= 1 // and other checksums, or anything else
		}
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		damage, err := l.Past().ReadArchive(context.Background(), 1, func(int64, []byte) bool { return true })
		if errors.Is(err, errs.ErrNewerFormat) != newer || len(damage) > 0 == newer {
			t.Errorf("newer %v: %v, %v", newer, damage, err)
		}
		c, err := past.OpenCopy(l.o.FS, l.o.walDir(), 1)
		if err == nil {
			_ = c.Close()
		}
		if err == nil || errors.Is(err, errs.ErrNewerFormat) != newer || errors.Is(err, segment.ErrHeader) == newer {
			t.Errorf("newer %v: %v", newer, err)
		}
		var p Purged
		if err := l.purgeArchive(context.Background(), func(LSN, string, []byte) bool { return true }, &p); err != nil || len(p.Damaged) > 0 != newer || len(p.Lost) > 0 || p.Frames > 0 == newer {
			t.Errorf("newer %v: %+v, %v", newer, p, err)
		}
		if still, err := os.ReadFile(name); err != nil || string(still) == string(b) != newer {
			t.Errorf("newer %v: was the copy changed? %v", newer, err)
		}
	}
}

// The sizes in the format that the package comment of past draws.
const (
	archiveHead = 24
	blockHead   = 16
)
