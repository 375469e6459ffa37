package segment

import "encoding/binary"

// KindGap is the kind of a frame in the place of frames that were lost: see the package
// comment. Only copies in the archive have such frames.
const KindGap = 3

// MinGap is the length of the shortest gap: a header, and the checksum to continue with.
const MinGap = HeaderSize + 8

// gapPiece is the most that one frame covers: nobody has to read more at once than of other frames.
const gapPiece = MinSize / 4

// Gap is a piece of a copy that is written over lost frames: Bytes, and zeros up to Len.
type Gap struct {
	At    LSN
	Len   uint64
	Bytes []byte
}

// Gaps makes the frames that stand for [at, to): a chain from the frame before, whose checksum is
// previous, to the frame at to, which names sum as its predecessor's. time is the commit time of the
// frame before. to-at is a multiple of 8, and MinGap at least.
func (g Geometry) Gaps(at, to LSN, previous, sum uint64, time int64) (list []Gap) {
	for at < to {
		n := to - at
		if n > gapPiece {
			n = min(gapPiece, n-MinGap) // what is left has room for a frame
		}
		payload := make([]byte, n-HeaderSize)
		h := Header{Kind: KindGap, LSN: at, Time: time, Previous: previous}
		if at+n == to {
			binary.LittleEndian.PutUint64(payload, sum)
		}
		b := g.AppendFrame(nil, &h, "", payload)
		list = append(list, Gap{At: at, Len: n, Bytes: b[:MinGap]})
		at, previous = at+n, h.Sum
	}
	return list
}

// Follow is the checksum that the frame behind this one names as its predecessor's.
func (h *Header) Follow(payload []byte) uint64 {
	if h.Kind == KindGap && len(payload) >= 8 {
		if sum := binary.LittleEndian.Uint64(payload); sum != 0 {
			return sum
		}
	}
	return h.Sum
}
