package remote_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/remotetest"
	"github.com/varve-db/varve/segment"
)

// A piece passes as it was cut from the log; a flipped bit, a missing frame, another mark and a batch that does not end
// are damage.
func TestPieceCheck(t *testing.T) {
	l := remotetest.NewLog(1).Grow(80, 1)
	rolled := false
	for i := range l.Pieces {
		good := l.Pieces[i]
		if err := good.Check(l.Geometry); err != nil {
			t.Fatal(i, err)
		}
		at, ok := good.At()
		if !ok || at != good.To.LSN-uint64(len(good.Bytes)) {
			t.Fatal(at, ok)
		}
		rolled = rolled || i > 0 && at != good.From.LSN
		changes := []func(p *remote.Piece){
			func(p *remote.Piece) { p.Bytes = nil },
			func(p *remote.Piece) { p.Bytes = p.Bytes[:len(p.Bytes)-8] },
			func(p *remote.Piece) { p.Bytes = append(bytes.Clone(p.Bytes), make([]byte, 8)...) },
			func(p *remote.Piece) { p.Bytes = p.Bytes[8:] },
			func(p *remote.Piece) { p.To.Sum++ },
			func(p *remote.Piece) { p.To.LSN += 8 },
			func(p *remote.Piece) { p.From.LSN += 8 },
			func(p *remote.Piece) { p.From.LSN = 3 },
			func(p *remote.Piece) { p.From.Sum ^= 1 },
		}
		for off := 0; off < len(good.Bytes); off += 1 + len(good.Bytes)/50 {
			changes = append(changes, func(p *remote.Piece) {
				p.Bytes = bytes.Clone(p.Bytes)
				p.Bytes[off] ^= 4
			})
		}
		for n, change := range changes {
			p := good
			change(&p)
			if err := p.Check(l.Geometry); !errors.Is(err, errs.ErrCorrupt) && !padding(&good, &p) {
				t.Fatalf("piece %d, change %d: %v", i, n, err)
			}
		}
		other := l.Geometry
		other.UUID[0]++
		if err := good.Check(other); !errors.Is(err, errs.ErrCorrupt) {
			t.Fatal("a piece of another store:", err)
		}
	}
	if !rolled {
		t.Error("no piece began a segment")
	}
}

// padding reports whether two pieces differ in the padding of frames only, which no checksum covers.
func padding(a, b *remote.Piece) bool {
	if len(a.Bytes) != len(b.Bytes) || a.From != b.From || a.To != b.To {
		return false
	}
	at, _ := a.At()
	geo := remotetest.NewLog(1).Geometry
	for off := 0; off < len(a.Bytes); {
		h, err := geo.ParseHeader(a.Bytes[off:], at+uint64(off))
		if err != nil {
			return false
		}
		n := segment.HeaderSize + int(h.Length)
		if !bytes.Equal(a.Bytes[off:off+n], b.Bytes[off:off+n]) {
			return false
		}
		off += int(h.Size())
	}
	return true
}
