package segment

import (
	"encoding/binary"
	"fmt"

	"github.com/varve-db/varve/errs"
)

// Version is the format version of segments that this package writes, and the highest that it reads.
const Version = 1

const magic = "VARVELOG"

// startSize is the size in bytes of the payload of a start frame, the first frame of a segment.
const startSize = 64

// StartSize is the length in bytes of a segment's first frame.
const StartSize = HeaderSize + startSize

// Start is the content of the first frame of a segment.
type Start struct {
	Geometry
	Number  uint64
	PrevEnd LSN    // position after the predecessor's last frame, 0 in a log's first segment
	PrevSum uint64 // checksum of the predecessor's last frame
}

// AppendStart appends the first frame of segment s.Number to dst. It sets LSN, Kind and Previous of
// h; the caller sets Durable, Time and Nonce.
func AppendStart(dst []byte, s Start, h *Header) []byte {
	var p [startSize]byte
	le := binary.LittleEndian
	copy(p[:], magic)
	le.PutUint32(p[8:], Version)
	copy(p[16:], s.UUID[:])
	le.PutUint64(p[32:], s.Size)
	le.PutUint64(p[40:], s.Number)
	le.PutUint64(p[48:], s.PrevEnd)
	le.PutUint64(p[56:], s.PrevSum)
	h.Kind, h.Flags, h.Inflated = KindStart, 0, startSize
	h.LSN, h.Previous = s.Geometry.Start(s.Number), s.PrevSum
	return s.AppendFrame(dst, h, "", p[:])
}

// ParseStart parses the first frame of a segment from the first bytes of its file, without any
// other information. The error is ErrEnd if the file has no frame yet, and wraps ErrHeader or is an
// errs.NewerError if the frame cannot be used.
func ParseStart(b []byte) (Start, Header, error) {
	if len(b) < StartSize || [HeaderSize]byte(b) == zeros {
		return Start{}, Header{}, ErrEnd
	}
	le := binary.LittleEndian
	p := b[HeaderSize:StartSize]
	if string(p[:8]) != magic {
		return Start{}, Header{}, fmt.Errorf("%w: the file does not begin with the start of a segment", ErrHeader)
	}
	s := Start{Number: le.Uint64(p[40:]), PrevEnd: le.Uint64(p[48:]), PrevSum: le.Uint64(p[56:])}
	copy(s.UUID[:], p[16:32])
	s.Size = le.Uint64(p[32:])
	if !s.Geometry.Valid() || s.Number == 0 || s.Number > MaxNumber {
		return Start{}, Header{}, fmt.Errorf("%w: impossible segment number %d or segment size %d", ErrHeader,
			s.Number, s.Size)
	}
	h, err := s.ParseHeader(b, s.Geometry.Start(s.Number))
	if err != nil {
		return Start{}, Header{}, err
	}
	if _, _, err := h.Check(p[:min(int(h.Length), len(p))]); err != nil || h.Kind != KindStart {
		return Start{}, Header{}, fmt.Errorf("%w: the file does not begin with the start of a segment", ErrHeader)
	}
	if v := le.Uint32(p[8:]); v > Version {
		return Start{}, Header{}, &errs.NewerError{Path: "wal/" + Name(s.Number), Format: uint64(v), Reads: Version}
	}
	if h.Previous != s.PrevSum {
		return Start{}, Header{}, fmt.Errorf("%w: the payload of the start frame contradicts the header of this frame",
			ErrHeader)
	}
	if s.PrevEnd != 0 && (!s.Holds(s.PrevEnd) || s.Geometry.Number(s.PrevEnd-1) != s.Number-1) {
		return Start{}, Header{}, fmt.Errorf("%w: impossible end of the previous segment: %d", ErrHeader, s.PrevEnd)
	}
	return s, h, nil
}
