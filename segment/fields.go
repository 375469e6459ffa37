package segment

import (
	"encoding/binary"
	"time"
)

// Fields are what the payload of a frame says besides key and value. The package comment has their
// format.
type Fields struct {
	// Reading is what the clock said at the commit, microseconds since 1970. It is at most the time
	// in the header, and equal to it where the frame has no such field.
	Reading int64
}

// FieldsSize is the number of bytes that AppendTo appends.
const FieldsSize = 2 + 2 + 8

// The numbers of the fields.
const fieldReading = 1

// leastReading is the earliest reading that is believed, the start of the year 1: no program shows
// an earlier time.
var leastReading = time.Time{}.UnixMicro()

// AppendTo appends the fields as they are between key and value.
func (f *Fields) AppendTo(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, FieldsSize-2)
	dst = append(dst, fieldReading, 8)
	return binary.LittleEndian.AppendUint64(dst, uint64(f.Reading))
}

// Split splits a payload that Check has verified. A frame whose fields are longer than what it has
// behind its key has no value: it says nothing. A field that does not end within the fields is
// ignored, and so is what follows it; of several with one number, the last counts.
func (h *Header) Split(payload []byte) (key, value []byte, f Fields) {
	key, value, f.Reading = payload[:h.KeyLen], payload[h.KeyLen:], h.Time
	if h.Flags&FlagFields == 0 {
		return key, value, f
	}
	if len(value) < 2 {
		return key, nil, f
	}
	fields := value[2:]
	n := int(binary.LittleEndian.Uint16(value))
	if n > len(fields) {
		return key, nil, f
	}
	fields, value = fields[:n], fields[n:]
	for len(fields) >= 2 && 2+int(fields[1]) <= len(fields) {
		number, content := fields[0], fields[2:2+int(fields[1])]
		if number == fieldReading && len(content) == 8 {
			// Nothing but the checksum vouches for it: one that no writer gives is not believed.
			if at := int64(binary.LittleEndian.Uint64(content)); at >= leastReading && at <= h.Time {
				f.Reading = at
			}
		}
		fields = fields[2+len(content):]
	}
	return key, value, f
}
