package segment

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/varve-db/varve/internal/proofs"
)

// Whatever a piece contains, frames that are not wanted stay byte for byte, and everything else becomes
// zeros or erased frames; repeating it changes nothing.
func TestEraseIn(t *testing.T) {
	seed := proofs.Seed(t, 0)
	r := rand.New(rand.NewPCG(seed, 1))
	g := Geometry{UUID: [16]byte{1}, Size: MinSize}
	keyed := 0
	defer func() {
		if keyed == 0 {
			t.Error("no damaged frame was told by its key")
		}
	}()
	for range 300 {
		at := g.Start(1) + 8*LSN(r.IntN(64))
		var b []byte
		var kept [][]byte
		want, mine, damaged := 0, 0, false
		for range 1 + r.IntN(8) {
			begin := len(b)
			key, value := "mine", make([]byte, 8+r.IntN(100))
			for i := range value {
				value[i] = byte(1 + r.IntN(255))
			}
			if r.IntN(3) == 0 {
				clear(value[r.IntN(len(value)):]) // a deletion's end so
			}
			other := r.IntN(2) == 0
			if other {
				key = "other"
			}
			h := Header{Kind: 16, LSN: at + LSN(begin), Nonce: r.Uint32()}
			b = g.AppendFrame(b, &h, key, value)
			switch r.IntN(4) {
			case 0: // damaged: its key is unknown
				b[begin+r.IntN(HeaderSize)] ^= 1 << r.IntN(8)
				damaged = true
			case 1:
				garbage := bytes.Repeat([]byte{byte(r.Uint32())}, 8*r.IntN(10))
				damaged = damaged || len(bytes.Trim(garbage, "\x00")) > 0
				b = append(b, garbage...)
				fallthrough
			default:
				if other {
					kept, want = append(kept, bytes.Clone(b[begin:begin+int(h.Size())])), want+1
				} else {
					mine++
				}
			}
		}
		cut := r.IntN(2)
		if b = b[:len(b)-cut*r.IntN(8)]; cut == 0 {
			b = bytes.TrimRight(b, "\x00") // as a torn tail is
		}
		found := g.EraseIn(b, at, func(_ LSN, key string, _ []byte) bool { return key == "mine" }, nil)
		if n := found.Others; n != want && n != want-cut { // the last may be
			t.Fatalf("%d others, want %d", n, want)
		}
		if n := found.Wanted; n != mine && n != mine-cut {
			t.Fatalf("%d wanted, want %d", n, mine)
		}
		if (found.Unknown > 0) != (damaged || found.Others < want || found.Wanted < mine) {
			t.Fatalf("%d bytes are unknown: %+v, damaged: %v", found.Unknown, found, damaged)
		}
		if keyed += found.Keyed; found.Keyed > cut+1 || found.Keyed > 0 && found.Unknown == 0 {
			t.Fatalf("damaged frames with a key: %+v", found)
		}
		for i, frame := range kept {
			if !bytes.Contains(b, frame) && i < len(kept)-1 {
				t.Fatalf("frame %d of others is gone", i)
			}
		}
		if bytes.Contains(b, []byte("mine")) {
			t.Fatal("it still has the key")
		}
		again := bytes.Clone(b)
		if found := g.EraseIn(again, at, func(_ LSN, key string, _ []byte) bool { return key == "mine" },
			nil); found.Wanted+found.Keyed+found.Unknown > 0 {
			t.Fatalf("done again it finds %+v", found)
		}
		if !bytes.Equal(again, b) {
			t.Fatal("done again it changes")
		}
	}
}
