package record

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// packed returns the value of an entry whose document is compressed as far as zstd can.
func packed(t *testing.T, doc []byte) []byte {
	t.Helper()
	var c Codec
	value, _ := c.Encode(nil, &Record{Line: []byte("{}")})
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	value[1] |= flagZstd
	value[20], value[21], value[22], value[23] = byte(len(doc)), byte(len(doc)>>8), byte(len(doc)>>16), byte(len(doc)>>24)
	return enc.EncodeAll(doc, value)
}

// TestShrunkMost verifies that a document that zstd would compress more than 64-fold is written uncompressed, and that
// a document that an older version has compressed more is read.
func TestShrunkMost(t *testing.T) {
	var c Codec
	random := make([]byte, 1<<10)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	for name, r := range map[string]struct {
		doc  []byte
		zstd bool
	}{
		"a repeated word":   {bytes.Repeat([]byte("one word "), 1<<20), false},
		"zeros":             {make([]byte, 1<<20), false},
		"32 times":          {bytes.Repeat(random, 32), true},
		"short":             {bytes.Repeat([]byte("a"), zstdAbove-1), false},
		"ordinary, twofold": {append(bytes.Repeat([]byte("x"), 2<<10), append(random, random...)...), true},
	} {
		value, inflated := c.Encode(nil, &Record{Doc: r.doc})
		v, err := Parse(value)
		if err != nil || v.zstd != r.zstd || v.Overpacked() {
			t.Errorf("%s: compressed %v, overpacked %v, %v", name, v.zstd, v.Overpacked(), err)
		}
		if int(inflated) > mostShrunk*len(value) {
			t.Errorf("%s: %d bytes inflate to %d", name, len(value), inflated)
		}
		old, err := Parse(packed(t, r.doc))
		if err != nil {
			t.Fatal(err)
		}
		if doc, err := c.Doc(&old, 1<<30); err != nil || !bytes.Equal(doc, r.doc) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "zeros" && !old.Overpacked() {
			t.Errorf("%s: not overpacked", name)
		}
	}
}

// TestBound verifies that at most the size that a frame of the log can have is inflated.
func TestBound(t *testing.T) {
	var c Codec
	c.Bound(1 << 20)
	for _, n := range []int{1 << 20, 1<<20 + 1} {
		v, err := Parse(packed(t, make([]byte, n)))
		if err != nil {
			t.Fatal(err)
		}
		_, derr := c.Doc(&v, 1<<30)
		_, give, lerr := c.Lend(t.Context(), &v, 1<<30)
		if fits := n == 1<<20; fits != (derr == nil) || fits != (lerr == nil) {
			t.Errorf("%d bytes: %v, %v", n, derr, lerr)
		} else if !fits && !strings.Contains(derr.Error(), "1048576") {
			t.Error(derr)
		}
		if give != nil {
			give()
		}
	}
}

// TestLend verifies that documents of at most 64 MiB in total are lent at once, that a larger one is lent alone, and
// that small ones are not counted.
func TestLend(t *testing.T) {
	var c Codec
	doc := bytes.Repeat([]byte("one word "), 16<<20/9)
	v, err := Parse(packed(t, doc))
	if err != nil {
		t.Fatal(err)
	}
	var gives []func()
	for range roomBytes / len(doc) {
		b, give, err := c.Lend(t.Context(), &v, 1<<30)
		if err != nil || !bytes.Equal(b, doc) {
			t.Fatal(err)
		}
		gives = append(gives, give)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := c.Lend(ended, &v, 1<<30); !errors.Is(err, context.Canceled) {
		t.Fatalf("a fifth document was lent: %v", err)
	}
	if give, err := c.Take(ended, roomFree); err != nil {
		t.Error(err)
	} else {
		give()
	}
	var alone atomic.Bool
	taken := make(chan error)
	go func() {
		give, err := c.Take(t.Context(), 256<<20)
		if err == nil {
			alone.Store(true)
			give()
		}
		taken <- err
	}()
	for _, give := range gives {
		if alone.Load() {
			t.Error("a document of 256 MiB was not alone")
		}
		give()
	}
	select {
	case err := <-taken:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a document of 256 MiB waits without end")
	}
}
