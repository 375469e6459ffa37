package segment

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

var geo = Geometry{UUID: [16]byte{1, 2, 3}, Size: MinSize}

func TestFrameRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringN(0, 50, 200).Draw(t, "key")
		value := rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "value")
		at := geo.Start(3) + 8*rapid.Uint64Range(16, 4000).Draw(t, "at")
		h := Header{
			Kind: rapid.Uint8().Draw(t, "kind"), Flags: rapid.Uint8Range(0, 3).Draw(t, "flags"), LSN: at,
			Nonce: rapid.Uint32().Draw(t, "nonce"), Durable: rapid.Uint64Range(0, at).Draw(t, "durable"),
			Time: rapid.Int64().Draw(t, "time"), Previous: rapid.Uint64().Draw(t, "previous"), Inflated: rapid.Uint32().Draw(t, "inflated"),
		}
		b := geo.AppendFrame([]byte("before"), &h, key, value)[6:]
		if uint64(len(b)) != h.Size() || len(b)%8 != 0 {
			t.Fatalf("%d bytes, size %d", len(b), h.Size())
		}
		got, err := geo.ParseHeader(b, at)
		if err != nil || got != h {
			t.Fatalf("%+v came back as %+v, %v", h, got, err)
		}
		k, v, err := got.Check(b[HeaderSize : HeaderSize+int(h.Length)])
		if err != nil || string(k) != key || !bytes.Equal(v, value) {
			t.Fatalf("key %q, %d bytes, %v", k, len(v), err)
		}
	})
}

// Every flipped bit of a frame is detected, and a frame is valid only at its position, in its segment
// and its store (FAILURES 15, 64).
func TestFrameIsFound(t *testing.T) {
	at := geo.Start(2) + StartSize
	h := Header{Kind: 20, LSN: at, Previous: 7}
	b := geo.AppendFrame(nil, &h, "key", []byte("value"))
	valid := func(b []byte, geo Geometry, at LSN) bool {
		h, err := geo.ParseHeader(b, at)
		if err != nil {
			return false
		}
		_, _, err = h.Check(b[HeaderSize : HeaderSize+int(h.Length)])
		return err == nil
	}
	if !valid(b, geo, at) {
		t.Fatal("the frame itself is refused")
	}
	for i := range (HeaderSize + len("keyvalue")) * 8 {
		c := bytes.Clone(b)
		c[i/8] ^= 1 << (i % 8)
		if valid(c, geo, at) {
			t.Errorf("bit %d flipped, and not found", i)
		}
	}
	other := geo
	other.UUID[0]++
	if valid(b, other, at) || valid(b, geo, at+8) || valid(b, geo, at+geo.Size) {
		t.Error("a frame of another place passes")
	}
	if _, err := geo.ParseHeader(make([]byte, HeaderSize), at); !errors.Is(err, ErrEnd) {
		t.Errorf("zeros: %v", err)
	}
}

func TestStart(t *testing.T) {
	s := Start{Geometry: geo, Number: 5, PrevEnd: geo.End(4) - 304, PrevSum: 9}
	h := Header{Durable: 200, Time: 1}
	b := AppendStart(nil, s, &h)
	if len(b) != StartSize {
		t.Fatalf("%d bytes", len(b))
	}
	got, gh, err := ParseStart(b)
	if err != nil || got != s || gh != h {
		t.Fatalf("%+v, %+v, %v", got, gh, err)
	}
	for i := range b {
		c := bytes.Clone(b)
		c[i] ^= 0x10
		if _, _, err := ParseStart(c); err == nil {
			t.Errorf("byte %d changed, and not found", i)
		}
	}
	if _, _, err := ParseStart(make([]byte, StartSize)); !errors.Is(err, ErrEnd) {
		t.Errorf("zeros: %v", err)
	}
}

// TestStartWild: a start frame with values that no segment has is refused, although its checksums match.
func TestStartWild(t *testing.T) {
	for _, s := range []Start{
		{Geometry: Geometry{Size: MinSize - 4096}, Number: 1},
		{Geometry: Geometry{Size: MaxSize + 4096}, Number: 1},
		{Geometry: Geometry{Size: MinSize + 512}, Number: 1},
		{Geometry: geo, Number: 1 << 32},
		{Geometry: geo, Number: 5, PrevEnd: 300},
		{Geometry: geo, Number: 5, PrevEnd: geo.Start(4)},
		{Geometry: geo, Number: 5, PrevEnd: geo.Start(5) + 8},
		{Geometry: geo, Number: 5, PrevEnd: geo.Start(5) - 4},
	} {
		if got, _, err := ParseStart(AppendStart(nil, s, &Header{})); !errors.Is(err, ErrHeader) {
			t.Errorf("%+v: %+v, %v", s, got, err)
		}
	}
	at := geo.Start(2) + StartSize
	b := geo.AppendFrame(nil, &Header{Kind: 20, LSN: at, Durable: at + 8}, "k", nil)
	if _, err := geo.ParseHeader(b, at); !errors.Is(err, ErrHeader) {
		t.Errorf("a frame that knows what is behind it to be durable: %v", err)
	}
}

func TestNames(t *testing.T) {
	for _, n := range []uint64{1, 99999999, 100000000} {
		if got, ok := ParseName(Name(n)); !ok || got != n {
			t.Errorf("%d: %d, %v", n, got, ok)
		}
	}
	for _, s := range []string{"", "1.wal", "00000000.wal", "0000000x.wal", "00000001.wal.new", "000000001.wal", "+0000001.wal"} {
		if n, ok := ParseName(s); ok {
			t.Errorf("%q is taken for %d", s, n)
		}
	}
}

// FuzzParse: whatever a file contains, there is no panic, and no frame beyond its segment or its limit.
//
//	go test ./segment -run '^$' -fuzz FuzzParse -fuzztime 60s
func FuzzParse(f *testing.F) {
	at := geo.Start(1) + StartSize
	for _, h := range []Header{
		{Kind: 20, LSN: at},
		{Kind: 21, LSN: at, Flags: FlagMore, Durable: at, Time: 1, Nonce: 7, Previous: 9}, // of a batch
		{Kind: 20, LSN: at, Inflated: 1 << 20},
		{Kind: 20, LSN: geo.End(1) - 128}, // it would end behind the segment
		{Kind: 20, LSN: at + 8},           // elsewhere
	} {
		b := geo.AppendFrame(nil, &h, "key", []byte("value"))
		f.Add(b)
		f.Add(b[:HeaderSize])
		f.Add(append(b, make([]byte, HeaderSize)...)) // the end of the log
		h.Erase(b[HeaderSize : HeaderSize+8])
		f.Add(b)
	}
	f.Add(geo.AppendFrame(nil, &Header{Kind: 20, LSN: at}, "", nil))
	f.Add(AppendStart(nil, Start{Geometry: geo, Number: 1}, &Header{}))
	f.Add(AppendStart(nil, Start{Geometry: geo, Number: 2, PrevEnd: geo.End(1), PrevSum: 5}, &Header{}))
	f.Add(make([]byte, StartSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := geo.ParseHeader(b, geo.Start(1)+StartSize); err == nil && (uint64(h.Length) > geo.Limit() || h.End() > geo.End(1)) {
			t.Fatalf("%+v", h)
		}
		if s, _, err := ParseStart(b); err == nil && (s.Number == 0 || s.Size < MinSize) {
			t.Fatalf("%+v", s)
		}
	})
}
