package segment

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// HeaderSize is the length of a frame's header in bytes.
const HeaderSize = 64

// MaxKey is the maximum length of a key in bytes.
const MaxKey = 1<<16 - 1

// KindStart is the kind of a segment's first frame.
const KindStart = 1

// The flag bits of a frame.
const (
	FlagMore   = 1 << iota // the batch continues in the next frame
	FlagDelete             // the frame deletes the key
	FlagFields             // fields are between key and value, see Fields
)

// Errors that explain why there is no frame at a position.
var (
	ErrEnd     = errors.New("end of the log")           // the header is all zeros
	ErrHeader  = errors.New("no valid frame header")    // the header is invalid for any other reason
	ErrPayload = errors.New("frame payload is damaged") // the header is valid, but the payload is damaged
)

// Header is the header of a frame. The package comment describes the fields.
type Header struct {
	Length   uint32
	Inflated uint32
	Kind     uint8
	Flags    uint8
	KeyLen   uint16
	Nonce    uint32
	LSN      LSN
	Durable  LSN
	Time     int64
	Payload  uint64
	Previous uint64
	Sum      uint64
}

// Size returns the length of the whole frame in bytes.
func (h *Header) Size() uint64 { return FrameSize(uint64(h.Length)) }

// End returns the position after the frame.
func (h *Header) End() LSN { return h.LSN + h.Size() }

// More reports whether the frame's batch continues in the next frame.
func (h *Header) More() bool { return h.Flags&FlagMore != 0 }

// FrameSize returns the length in bytes of a frame with a payload of n bytes.
func FrameSize(n uint64) uint64 { return HeaderSize + (n+7)&^7 }

// AppendFrame appends a frame with the payload key+value to dst. It sets Length, KeyLen, Payload
// and Sum of h.
func (g Geometry) AppendFrame(dst []byte, h *Header, key string, value []byte) []byte {
	return g.appendFrame(dst, h, key, nil, value)
}

// AppendFrameWith is like AppendFrame, with fields that Fields.AppendTo has encoded. It sets FlagFields if
// fields is not empty.
func (g Geometry) AppendFrameWith(dst []byte, h *Header, key string, fields, value []byte) []byte {
	if len(fields) > 0 {
		h.Flags |= FlagFields
	}
	return g.appendFrame(dst, h, key, fields, value)
}

func (g Geometry) appendFrame(dst []byte, h *Header, key string, fields, value []byte) []byte {
	h.Length = uint32(len(key) + len(fields) + len(value))
	h.KeyLen = uint16(len(key))
	at := len(dst)
	dst = append(dst, zeros[:HeaderSize]...)
	dst = append(dst, key...)
	dst = append(dst, fields...)
	dst = append(dst, value...)
	h.Payload = xxhash.Sum64(dst[at+HeaderSize:])
	dst = append(dst, zeros[:h.Size()-HeaderSize-uint64(h.Length)]...)
	g.putHeader(dst[at:], h)
	return dst
}

var zeros [HeaderSize]byte

func (g Geometry) putHeader(b []byte, h *Header) {
	le := binary.LittleEndian
	le.PutUint32(b[0:], h.Length)
	le.PutUint32(b[4:], h.Inflated)
	b[8], b[9] = h.Kind, h.Flags
	le.PutUint16(b[10:], h.KeyLen)
	le.PutUint32(b[12:], h.Nonce)
	le.PutUint64(b[16:], h.LSN)
	le.PutUint64(b[24:], h.Durable)
	le.PutUint64(b[32:], uint64(h.Time))
	le.PutUint64(b[40:], h.Payload)
	le.PutUint64(b[48:], h.Previous)
	h.Sum = g.sum(b, g.Number(h.LSN))
	le.PutUint64(b[56:], h.Sum)
}

// sum returns the checksum of the header b in the segment with the given number. It is the xxhash64 of the store's
// UUID, the segment number and the first 56 bytes of b.
func (g Geometry) sum(b []byte, number uint64) uint64 {
	var s [16 + 8 + 56]byte
	copy(s[:16], g.UUID[:])
	binary.LittleEndian.PutUint64(s[16:], number)
	copy(s[24:], b[:56])
	return xxhash.Sum64(s[:])
}

// ParseHeader parses the header of the frame at position pos; the header is at the beginning of b. The error is
// ErrEnd if b is too short or begins with a header of zeros. Every other error wraps ErrHeader.
func (g Geometry) ParseHeader(b []byte, pos LSN) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, ErrEnd
	}
	le := binary.LittleEndian
	h := Header{
		Length: le.Uint32(b[0:]), Inflated: le.Uint32(b[4:]),
		Kind: b[8], Flags: b[9],
		KeyLen: le.Uint16(b[10:]), Nonce: le.Uint32(b[12:]),
		LSN: le.Uint64(b[16:]), Durable: le.Uint64(b[24:]), Time: int64(le.Uint64(b[32:])),
		Payload: le.Uint64(b[40:]), Previous: le.Uint64(b[48:]), Sum: le.Uint64(b[56:]),
	}
	if h.Sum != g.sum(b, g.Number(pos)) {
		if [HeaderSize]byte(b) == zeros {
			return Header{}, ErrEnd
		}
		return Header{}, fmt.Errorf("%w: checksum mismatch", ErrHeader)
	}
	switch {
	case h.LSN != pos:
		return Header{}, fmt.Errorf("%w: the header has position %d, but the frame is at position %d",
			ErrHeader, h.LSN, pos)
	case uint64(h.Length) > g.Limit() || uint64(h.KeyLen) > uint64(h.Length):
		return Header{}, fmt.Errorf("%w: impossible length of the payload, %d bytes, or of the key, %d bytes",
			ErrHeader, h.Length, h.KeyLen)
	case h.Durable > pos:
		return Header{}, fmt.Errorf("%w: durable position %d in the header is after the frame", ErrHeader, h.Durable)
	case h.End() > g.End(g.Number(pos)):
		return Header{}, fmt.Errorf("%w: the frame reaches beyond the end of the segment", ErrHeader)
	}
	return h, nil
}

// Check verifies a payload against its header, and returns its key and value; Split also returns the fields. For an
// erased payload Check returns a nil key and a nil value, and sets h.Kind to KindErased. If the payload does not match
// the header, the error is ErrPayload.
func (h *Header) Check(payload []byte) (key, value []byte, err error) {
	if len(payload) != int(h.Length) || xxhash.Sum64(payload) != h.Payload {
		if h.erased(payload) {
			h.Kind, h.Flags, h.KeyLen, h.Inflated = KindErased, h.Flags&FlagMore, 0, 0
			return nil, nil, nil
		}
		return nil, nil, ErrPayload
	}
	key, value, _ = h.Split(payload)
	return key, value, nil
}

// MayBeHeader reports whether b can be the header of a frame at position pos. It does not verify the checksum, so
// it is a fast first test when searching for frames.
func MayBeHeader(b []byte, pos LSN) bool {
	return binary.LittleEndian.Uint64(b[16:]) == pos
}
