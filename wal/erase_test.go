package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve/wal/past"
)

// A purge compresses again only those blocks of a copy that contain something purged. The result reads as the
// copy did, with zeros after the last frame and the payloads erased.
func TestErasedBlocks(t *testing.T) {
	t.Parallel()
	l, _ := open(t, t.TempDir(), func(o *Options) { o.Inline, o.SegmentSize = true, 8<<20 })
	defer func() { _ = l.Close() }()
	rng := rand.New(rand.NewPCG(1, 2))
	for i := 0; l.shared.Tail() < l.geo.End(1)-1<<20; i++ {
		pad := make([]byte, 4000)
		for k := range pad {
			pad[k] = byte(rng.IntN(4)) + 'a'
		}
		id := fmt.Sprintf("m%06d", i)
		if i == 300 {
			id = "msecret"
		}
		mustAppend(t, l, put(id, string(pad)))
	}
	if err := l.o.FS.Mkdir(l.o.wal("archive"), 0o700); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	if err := l.archive(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	blocks := func() (list []string) {
		file, err := os.ReadFile(filepath.Join(l.o.walDir(), past.CopyName(1)))
		if err != nil {
			t.Fatal(err)
		}
		for b := file[archiveHead:]; len(b) > 0; {
			n := blockHead + binary.LittleEndian.Uint32(b)
			list, b = append(list, string(b[:n])), b[n:]
		}
		return list
	}
	before, plain := blocks(), make([]byte, l.geo.Size)
	c, err := past.OpenCopy(l.o.FS, l.o.walDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	n, err := c.Inflate(plain)
	if err != nil || n < len(plain)-1<<20 {
		t.Fatal(n, err)
	}
	want := make([]byte, l.geo.Size)
	if m, err := past.ReadFull(c, want, 0); err != nil || m != n || !bytes.Equal(plain, want) {
		t.Fatal("inflate and ReadAt differ", m, n, err)
	}
	short := make([]byte, 3<<20-5)
	if n, err := c.Inflate(short); err != nil || n != len(short) || !bytes.Equal(short, want[:len(short)]) {
		t.Fatal("with less room than the segment has", n, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	frames, changed, b, err := l.erased(1, nil, func(_ LSN, key string, _ []byte) bool { return key == "msecret" })
	if err != nil || frames != 1 || !changed {
		t.Fatal(frames, changed, err)
	}
	if err := l.replaceCopy(1, b); err != nil {
		t.Fatal(err)
	}
	after, differ := blocks(), 0
	for i := range before {
		if before[i] != after[i] {
			differ++
		}
	}
	if len(before) != len(after) || differ < 1 || differ > 2 {
		t.Errorf("%d of %d blocks were written again", differ, len(before))
	}
	got := readCopy(t, l)
	if !bytes.Equal(got, b[:len(got)]) || strings.Contains(string(b), "msecret") {
		t.Error("the copy is not what was erased")
	}
	// What follows the last block belongs to nothing, and is removed.
	path := l.o.wal(past.CopyName(1))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	none := func(LSN, string, []byte) bool { return false }
	if frames, changed, _, err = l.erased(1, b, none); err != nil || frames != 0 || changed {
		t.Errorf("nothing to erase: %d, %v, %v", frames, changed, err)
	}
	if err := os.WriteFile(path, append(bytes.Clone(whole), "a secret"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if frames, changed, b, err = l.erased(1, b, none); err != nil || frames != 0 || !changed {
		t.Errorf("a copy that goes on behind its last block: %d, %v, %v", frames, changed, err)
	}
	if err := l.replaceCopy(1, b); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, whole) {
		t.Errorf("%d bytes, want %d: %v", len(again), len(whole), err)
	}
	names, err := os.ReadDir(l.o.wal("archive"))
	if err != nil || len(names) != 1 {
		t.Error(names, err)
	}

	// A block that rots in the meantime is not taken over.
	file := whole
	old, err := past.OpenCopy(l.o.FS, l.o.walDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	e := &erasedSegment{bytes.NewReader(b), old}
	if e.Packed(1, b[past.BlockSize:2*past.BlockSize]) == nil || e.Packed(1, b[:past.BlockSize]) != nil || e.Packed(99, b[:past.BlockSize]) != nil {
		t.Error("which blocks may be taken over")
	}
	file[archiveHead+blockHead+binary.LittleEndian.Uint32(file[archiveHead:])+blockHead+100] ^= 1 // in the second
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	if e.Packed(1, b[past.BlockSize:2*past.BlockSize]) != nil {
		t.Error("a block that is damaged was taken over")
	}
	if _, err := old.Inflate(plain); !strings.Contains(fmt.Sprint(err), "checksum") && !past.IsNoFrame(err) {
		t.Error("damage that inflate does not tell:", err)
	}
}
