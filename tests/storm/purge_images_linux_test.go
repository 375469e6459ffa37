package storm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-db/varve"
)

// The beginning of every document, index line and vector of TestPurgeImages: one search finds them all.
const rawMark = "vArVeRaWmArK"

// rawVector is the beginning of each vector: two numbers that are unlikely to occur elsewhere.
var rawVector = []float32{0.72539063, -0.38183594}

func rawBytes(v []float32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// After a purge in one process the device of the store has no byte of it: not in a file, not in a free
// block, plain, compressed or as a vector. The raw images are searched. Free blocks keep what was in
// files that were removed before the purge, which it cannot reach: here no such file had any of it.
// Needs what TestImages needs:
//
//	go test -run TestPurgeImages ./tests/storm -images ext4,xfs,btrfs -v
//
// On a file system that writes to new blocks the report says so, and the image is not checked.
func TestPurgeImages(t *testing.T) {
	if *images == "" {
		return
	}
	for _, fs := range strings.Split(*images, ",") {
		t.Run(fs, func(t *testing.T) { purgeImage(t, fs) })
	}
}

func purgeImage(t *testing.T, fs string) {
	ctx := context.Background()
	image, at := filepath.Join(t.TempDir(), "disk.img"), filepath.Join(t.TempDir(), "disk")
	makeImage(t, image, fs, 1<<30)
	unmount := mountImage(t, image, at)
	dir := filepath.Join(at, "store")
	o := varve.Options{NoBackground: true}
	st, err := varve.Open(ctx, dir, &o)
	if err != nil {
		t.Fatal(err)
	}
	const count = 1000
	ids := make([]string, count)
	rng := rand.New(rand.NewPCG(1, 1))
	put := func(i, version, size int, session bool) {
		t.Helper()
		m := varve.Memory{ID: ids[i], Content: fmt.Sprintf("%s-%d.%d ", rawMark, i, version), Embedding: append(rawVector[:2:2], float32(i), float32(version))}
		for len(m.Content) < size {
			m.Content += []string{"the ", "memory ", "that ", "nobody ", "is ", "to ", "find "}[rng.IntN(7)]
		}
		if session { // a line of the index has it, from the last flush before the purge on
			m.Metadata = map[string]any{"session_id": fmt.Sprintf("%s-%d.s", rawMark, i)}
		}
		if _, err := st.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	size := func(i int) int { return 300 + 1700*(i%5) } // from 4 KiB on the log packs them
	if _, err := st.Put(ctx, varve.Memory{ID: "stays", Content: "this stays"}); err != nil {
		t.Fatal(err)
	}
	for i := range ids {
		ids[i] = fmt.Sprintf("m%04d", i)
		put(i, 0, size(i), false)
	}
	flush := func() {
		t.Helper()
		if err := st.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	flush()
	for version := 1; version < 4; version++ { // replaced by files of the same size or larger
		for i := version; i < count; i += 3 * version {
			put(i, version, size(i), version == 3)
		}
		flush()
	}
	before := searchImage(t, image, at)
	t.Logf("%s: before the purge: %v", fs, before)
	if before["plain"] < count || before["packed"] < count/5 || before["vectors"] < count {
		t.Errorf("%s: the case is too weak: %v", fs, before)
	}
	r, err := st.Admin().Purge(ctx, ids...)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := st.Get(ctx, "stays"); err != nil || m.Content != "this stays" {
		t.Errorf("%q, %v", m.Content, err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	unmount()
	after := searchImage(t, image, "")
	t.Logf("%s: after it: %v", fs, after)
	if fs == "ext4" || fs == "xfs" {
		if after["plain"]+after["packed"]+after["vectors"] > 0 || r.Device != "" {
			t.Errorf("%s: the image has %v of it, the report says %q", fs, after, r.Device)
		}
		return
	}
	if !strings.HasPrefix(r.Device, fs+" writes to new blocks") {
		t.Errorf("%s: the report says %q", fs, r.Device)
	}
}

// searchImage returns how many different pieces of the purged data an image has. If the file system is
// mounted, it is synced to the image first.
func searchImage(t *testing.T, image, mounted string) map[string]int {
	t.Helper()
	if mounted != "" {
		command(t, "sync", "-f", mounted)
	}
	f, err := os.Open(image)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	pieces := map[string]map[string]bool{"plain": {}, "packed": {}, "vectors": {}}
	mark, vec, magic := []byte(rawMark+"-"), rawBytes(rawVector), []byte{0x28, 0xb5, 0x2f, 0xfd}
	each := func(b, of []byte, f func(rest []byte)) {
		for at := bytes.Index(b, of); at >= 0; {
			f(b[at+len(of):])
			next := bytes.Index(b[at+1:], of)
			if next < 0 {
				return
			}
			at += 1 + next
		}
	}
	note := func(kind string, rest []byte) { pieces[kind][string(rest[:min(len(rest), 8)])] = true }
	const window, overlap = 64 << 20, 2 << 20 // a packed block has at most 1 MiB
	b := make([]byte, window+overlap)
	for off := int64(0); ; off += window {
		n, err := f.ReadAt(b, off)
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		part := b[:n]
		each(part, mark, func(rest []byte) { note("plain", rest) })
		each(part, vec, func(rest []byte) { note("vectors", rest) })
		each(part, magic, func(rest []byte) {
			whole := part[len(part)-len(rest)-len(magic):]
			plain, _ := dec.DecodeAll(whole[:min(len(whole), overlap)], nil) // an error: what follows is not a frame
			each(plain, mark, func(rest []byte) { note("packed", rest) })
			each(plain, vec, func(rest []byte) { note("vectors", rest) })
		})
		if n < len(b) {
			break
		}
	}
	counts := map[string]int{}
	for kind, set := range pieces {
		counts[kind] = len(set)
	}
	return counts
}
