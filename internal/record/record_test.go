package record

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	var c Codec
	random := make([]byte, 20<<10)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	for _, r := range []Record{
		{},
		{Previous: 7, Created: true, Line: []byte(`{"a":1}`), Doc: []byte("{}\n")},
		{Line: []byte("{}"), Vector: []float32{1, -2.5}, Doc: bytes.Repeat(random[:1000], 20)},
		{Doc: random},
	} {
		b, inflated := c.Encode([]byte("prefix"), &r)
		v, err := Parse(b[6:])
		if err != nil {
			t.Fatal(err)
		}
		doc, err := c.Doc(&v, 1<<20)
		if err != nil || !bytes.Equal(doc, r.Doc) || !bytes.Equal(v.Line, r.Line) || v.Previous != r.Previous || v.Created != r.Created || !slices.Equal(v.Vector(nil), r.Vector) {
			t.Fatalf("%d bytes came back as %d, %v", len(r.Doc), len(doc), err)
		}
		if want := 24 + len(r.Line) + 4*len(r.Vector) + len(r.Doc); int(inflated) != want {
			t.Errorf("inflated %d, want %d", inflated, want)
		}
		if len(r.Doc) > zstdAbove && slices.Equal(r.Doc, random) != !v.zstd {
			t.Errorf("compressed: %v", v.zstd)
		}
	}
}

func FuzzParse(f *testing.F) {
	var c Codec
	for _, r := range []Record{
		{},              // a deletion of an unknown key
		{Previous: 128}, // and of a version
		{Created: true, Line: []byte("{}"), Doc: []byte("{}")},
		{Previous: 1 << 40, Line: []byte("{}"), Vector: []float32{1, 0, -1}, Doc: bytes.Repeat([]byte("x"), zstdAbove-1)},
		{Line: []byte("{}"), Vector: []float32{1}, Doc: append(bytes.Repeat([]byte("x"), 5000), `the quick brown fox jumps over the lazy dog, 0123456789`...)}, // compressed
	} {
		b, _ := c.Encode(nil, &r)
		f.Add(b)
		f.Add(b[:len(b)-1])
		f.Add(b[:headSize])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Parse(b)
		if err != nil {
			return
		}
		v.Vector(nil)
		if doc, err := c.Doc(&v, 1<<20); err == nil && len(doc) != v.Size() {
			t.Fatalf("document of %d bytes, it said %d", len(doc), v.Size())
		}
	})
}
