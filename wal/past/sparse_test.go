package past_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// text returns n bytes that compress about as documents do.
func text(n int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = append(b, "the memory of an agent "[rng.IntN(16):]...)
	}
	return b[:n]
}

// copyOf writes the copy of a segment with the given bytes, and opens it.
func copyOf(t testing.TB, plain []byte) (dir string, c *past.Copy) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "archive"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := vfs.CreateNew(vfs.OS(), filepath.Join(dir, past.CopyName(1)), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := past.WriteCopy(out, segment.Geometry{Size: 4 << 20}, 1, inMemory{bytes.NewReader(plain)}); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, openCopy(t, dir)
}

func openCopy(t testing.TB, dir string) *past.Copy {
	t.Helper()
	c, err := past.OpenCopy(vfs.OS(), dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

type inMemory struct{ *bytes.Reader }

func (inMemory) Name() string { return "memory" }

// A few bytes are read with the decompression of few, and are the same as those of a whole block, wherever they begin
// and end; also of the copies of older programs, whose blocks have one part.
func TestSparse(t *testing.T) {
	t.Parallel()
	plain := text(2*past.BlockSize+5*past.PartSize/2, 1)
	dir, c := copyOf(t, plain)
	old := filepath.Join(dir, past.CopyName(1))
	for _, parts := range []bool{true, false} {
		if !parts {
			if err := os.WriteFile(old, packedWhole(t, plain), 0o600); err != nil {
				t.Fatal(err)
			}
			c = openCopy(t, dir)
		}
		before := c.Inflated()
		b := make([]byte, 4096)
		if n, err := (past.Sparse{Copy: c}).ReadAt(b, past.BlockSize+3*past.PartSize+100); n != len(b) || err != nil ||
			!bytes.Equal(b, plain[past.BlockSize+3*past.PartSize+100:][:n]) {
			t.Fatalf("parts %v: %d bytes, %v", parts, n, err)
		}
		if n := c.Inflated() - before; parts && n != past.PartSize || !parts && n != past.BlockSize {
			t.Errorf("parts %v: %d bytes were decompressed for 4,096", parts, n)
		}
		rng := rand.New(rand.NewPCG(2, 2))
		for range 300 {
			off, size := rng.IntN(len(plain)+10), rng.IntN(3*past.PartSize)
			if rng.IntN(2) == 0 { // near a border
				off = max(0, min(len(plain)+1, off/past.PartSize*past.PartSize+rng.IntN(9)-4))
			}
			b := make([]byte, size)
			n, err := past.Sparse{Copy: c}.ReadAt(b, int64(off))
			want := plain[min(off, len(plain)):min(off+size, len(plain))]
			if !bytes.Equal(b[:n], want) || err != nil && (!errors.Is(err, io.EOF) || off+size <= len(plain)) {
				t.Fatalf("parts %v: %d bytes at %d: %d, %v", parts, size, off, n, err)
			}
		}
	}
}

// packedWhole returns a copy as programs wrote it that had one zstd frame in a block.
func packedWhole(t testing.TB, plain []byte) []byte {
	t.Helper()
	le := binary.LittleEndian
	b := le.AppendUint64(le.AppendUint32(le.AppendUint32([]byte("VARVEZST"), past.ArchiveFormat), past.BlockSize), 1)
	for len(plain) > 0 {
		n := min(len(plain), past.BlockSize)
		b = append(b, block(t, zstdOf(t, plain[:n]), plain[:n])...)
		plain = plain[n:]
	}
	return b
}

func zstdOf(t testing.TB, plain []byte) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	return enc.EncodeAll(plain, nil)
}

// block returns a block with its header.
func block(t testing.TB, packed, plain []byte) []byte {
	t.Helper()
	le, d := binary.LittleEndian, xxhash.New()
	_, _ = d.Write(packed)
	_, _ = d.Write(plain)
	b := le.AppendUint32(le.AppendUint32(nil, uint32(len(packed))), uint32(len(plain)))
	return append(le.AppendUint64(b, d.Sum64()), packed...)
}

// In a block with a damaged part, SalvageCopy keeps the other parts.
func TestSalvageParts(t *testing.T) {
	t.Parallel()
	plain := text(past.BlockSize+past.PartSize, 3)
	dir, _ := copyOf(t, plain)
	name := filepath.Join(dir, past.CopyName(1))
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	size := int(binary.LittleEndian.Uint32(b[24:]))
	b[40+size/2] ^= 0x10
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	got, bad, err := past.SalvageCopy(vfs.OS(), name, 1)
	if err != nil || len(bad) != 1 || len(got) < len(plain) {
		t.Fatalf("%d bytes, %v, %v", len(got), bad, err)
	}
	lost := 0
	for at := 0; at < len(plain); at += past.PartSize {
		switch part := got[at : at+past.PartSize]; {
		case bytes.Equal(part, plain[at:at+past.PartSize]):
		case bytes.Equal(part, make([]byte, past.PartSize)):
			lost++
		default:
			t.Errorf("the part at %d is neither what it was nor zeros", at)
		}
	}
	if lost < 1 || lost > 9 { // at most all behind the first half
		t.Errorf("%d parts of %d are lost", lost, len(plain)/past.PartSize)
	}
}

// FuzzSparse: whatever the compressed bytes of a block are, reading parts of it gives the bytes of the block, if the
// block matches its checksum, and otherwise ends.
func FuzzSparse(f *testing.F) {
	long := text(3*past.PartSize, 4)
	three := append(append(zstdOf(f, long[:past.PartSize]), zstdOf(f, long[past.PartSize:2*past.PartSize])...),
		zstdOf(f, long[2*past.PartSize:])...)
	f.Add(three, uint32(70_000), uint16(5000))
	f.Add(zstdOf(f, long), uint32(1), uint16(100))
	skipped := []byte{0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4}
	f.Add(append(skipped, three...), uint32(66_000), uint16(10))
	f.Add(append(zstdOf(f, nil), three...), uint32(0), uint16(10))
	f.Fuzz(func(t *testing.T, packed []byte, off uint32, size uint16) {
		if len(packed) > 2*past.BlockSize {
			return
		}
		dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.IgnoreChecksum(true),
			zstd.WithDecoderMaxMemory(2*past.BlockSize))
		if err != nil {
			t.Fatal(err)
		}
		defer dec.Close()
		plain, err := dec.DecodeAll(packed, nil)
		if err != nil || len(plain) == 0 || len(plain) > past.BlockSize {
			plain = []byte("not what is packed") // the block does not match its checksum
		}
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "archive"), 0o700); err != nil {
			t.Fatal(err)
		}
		b := append(packedWhole(t, nil), block(t, packed, plain)...)
		if err := os.WriteFile(filepath.Join(dir, past.CopyName(1)), b, 0o600); err != nil {
			t.Fatal(err)
		}
		c := openCopy(t, dir)
		got := make([]byte, size)
		n, gerr := past.Sparse{Copy: c}.ReadAt(got, int64(off%past.BlockSize))
		if n > len(got) {
			t.Fatal(n)
		}
		whole := make([]byte, past.BlockSize)
		m, werr := openCopy(t, dir).ReadAt(whole, 0)
		if werr != nil && !errors.Is(werr, io.EOF) {
			return
		}
		if gerr != nil && !errors.Is(gerr, io.EOF) {
			t.Fatalf("the block is sound, and its parts are not: %v", gerr)
		}
		from := int(off % past.BlockSize)
		if want := whole[min(from, m):min(from+int(size), m)]; !bytes.Equal(got[:n], want) {
			t.Fatalf("%d bytes at %d differ from those of the block", n, off%past.BlockSize)
		}
	})
}
