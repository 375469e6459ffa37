package segment

import "encoding/binary"

// KindGap is the kind of the frames that replace lost frames: see the package comment. Only copies
// in the archive have them.
const KindGap = 3

// MinGap is the minimum length of a gap in bytes: a header and a checksum.
const MinGap = HeaderSize + 8

// gapPiece is the maximum length of one gap frame in bytes, so that a reader never needs more memory for a gap
// than for other frames.
const gapPiece = MinSize / 4

// Gap is one frame that is to be written in the place of lost frames. It consists of Bytes, followed by zeros up to the
// length Len.
type Gap struct {
	At    LSN
	Len   uint64
	Bytes []byte
}

// Gaps returns the gap frames that fill the range [from, to) of the log. The length of the range must be a
// multiple of 8 and at least MinGap. previous and time are the checksum and the commit time of the frame that ends
// at from. sum is the value in the field Previous of the frame that begins at to. With the gap frames, the chain
// of checksums has no break.
func (g Geometry) Gaps(from, to LSN, previous, sum uint64, time int64) (list []Gap) {
	for from < to {
		n := to - from
		if n > gapPiece {
			n = min(gapPiece, n-MinGap) // the rest has room for a frame
		}
		payload := make([]byte, n-HeaderSize)
		h := Header{Kind: KindGap, LSN: from, Time: time, Previous: previous}
		if from+n == to {
			binary.LittleEndian.PutUint64(payload, sum)
		}
		b := g.AppendFrame(nil, &h, "", payload)
		list = append(list, Gap{At: from, Len: n, Bytes: b[:MinGap]})
		from, previous = from+n, h.Sum
	}
	return list
}

// Follow returns the checksum that the next frame must have in the field Previous of its header. payload is the
// payload of h's frame.
func (h *Header) Follow(payload []byte) uint64 {
	if h.Kind == KindGap && len(payload) >= 8 {
		if sum := binary.LittleEndian.Uint64(payload); sum != 0 {
			return sum
		}
	}
	return h.Sum
}
