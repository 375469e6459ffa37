package wal

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// A Reader returns what ReadAt returns, whatever is between the positions.
func TestReader(t *testing.T) {
	t.Parallel()
	seed := proofs.Seed(t, 0)
	rng := rand.New(rand.NewPCG(seed, 1))
	l, _ := open(t, t.TempDir(), func(o *Options) { o.SegmentSize = 1 << 20 })
	defer l.Close()
	var at []LSN
	grow := func(n int) {
		for range n {
			size := rng.IntN(3000)
			if rng.IntN(50) == 0 {
				size = rng.IntN(400 << 10) // more than one read
			}
			at = append(at, mustAppend(t, l, put(fmt.Sprint("m", len(at)), string(bytes.Repeat([]byte{byte(len(at))}, size)))))
		}
	}
	check := func(r *Reader, at LSN) {
		t.Helper()
		want, err := l.ReadAt(context.Background(), at)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.At(context.Background(), at)
		if err != nil || got.LSN != at || got.Key != want.Key || !got.Time.Equal(want.Time) || !bytes.Equal(got.Value, want.Value) {
			t.Fatalf("at %d: %d %q %d bytes, %v; want %q %d bytes", at, got.LSN, got.Key, len(got.Value), err, want.Key, len(want.Value))
		}
	}
	grow(400)
	for _, share := range []int{1, 3, 40} {
		r := l.Reader()
		for _, a := range at {
			if rng.IntN(share) == 0 {
				check(r, a)
			}
		}
		check(r, at[0]) // back again
		grow(5)         // after what it has read
		for _, a := range at[len(at)-6:] {
			check(r, a)
		}
	}
	if _, err := l.Reader().At(context.Background(), at[3]+8); err == nil {
		t.Error("read an entry where none begins")
	}
}

// Entries that are close together are read together, and nothing at or after durable is read: a frame there may
// be replaced by another one of the same position.
func TestReaderReadsAhead(t *testing.T) {
	t.Parallel()
	reads, furthest := 0, int64(0)
	hook := func(op *wrap.Op, call func() error) error {
		if op.Kind == wrap.Read && op.Size > 128 {
			reads++
			furthest = max(furthest, op.Off+int64(op.Size))
		}
		return call()
	}
	l, _ := open(t, t.TempDir(), func(o *Options) {
		o.SegmentSize = 4 << 20
		o.FS = wrap.New(vfs.OS(), hook)
	})
	defer l.Close()
	var at []LSN
	for i := range 1000 {
		at = append(at, mustAppend(t, l, put(fmt.Sprint("m", i), string(make([]byte, 1000)))))
	}
	r := l.Reader()
	reads, furthest = 0, 0
	for _, a := range at {
		if _, err := r.At(context.Background(), a); err != nil {
			t.Fatal(err)
		}
	}
	if reads > 20 {
		t.Errorf("%d reads for 1,000 entries", reads)
	}
	if end := l.geo.Offset(l.Durable()); furthest > end {
		t.Errorf("read up to %d, durable ends at %d", furthest, end)
	}
}
