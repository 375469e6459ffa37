package segment

import (
	"encoding/binary"
	"time"
)

// Fields are the metadata of an entry. In a frame they are between the key and the value. The package comment
// describes their format.
type Fields struct {
	// Reading is the time of the writer's clock at the commit, in microseconds since 1970. It is at
	// most the time in the header, and equal to that time if the frame has no field for the reading.
	Reading int64
	// Writer is the number of the writer; 0 if it is unknown.
	Writer uint32
	// Cause is the reason why the store wrote the entry; 0 if a caller requested it. Package wal defines the
	// causes.
	Cause uint8
	// Restores is the version that an undo restored with this entry, or the position of the deletion that it
	// repeated; 0 for other entries.
	Restores LSN
}

// FieldsSize is the number of bytes that AppendTo appends if Reading is the only field that is set.
const FieldsSize = 2 + 2 + 8

// The numbers that identify the fields of a frame.
const (
	fieldReading = 1
	fieldWriter  = 2
	fieldCause   = 3
	fieldRestore = 4
)

// leastReading is the earliest clock reading that Split accepts, the start of the year 1: no program displays
// an earlier time.
var leastReading = time.Time{}.UnixMicro()

// Size returns the number of bytes that AppendTo appends.
func (f *Fields) Size() int {
	n := 0
	if f.Reading != 0 {
		n += 2 + 8
	}
	if f.Writer != 0 {
		n += 2 + 4
	}
	if f.Cause != 0 {
		n += 2 + 1
	}
	if f.Restores != 0 {
		n += 2 + 8
	}
	if n > 0 {
		n += 2
	}
	return n
}

// AppendTo appends the encoding of the fields that are not 0; it appends nothing if all are 0.
func (f *Fields) AppendTo(dst []byte) []byte {
	n := f.Size()
	if n == 0 {
		return dst
	}
	dst = binary.LittleEndian.AppendUint16(dst, uint16(n-2))
	if f.Reading != 0 {
		dst = append(dst, fieldReading, 8)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(f.Reading))
	}
	if f.Writer != 0 {
		dst = append(dst, fieldWriter, 4)
		dst = binary.LittleEndian.AppendUint32(dst, f.Writer)
	}
	if f.Cause != 0 {
		dst = append(dst, fieldCause, 1, f.Cause)
	}
	if f.Restores != 0 {
		dst = append(dst, fieldRestore, 8)
		dst = binary.LittleEndian.AppendUint64(dst, f.Restores)
	}
	return dst
}

// Split splits a payload that Check has verified into key, value and fields. If the payload has no valid reading,
// f.Reading is h.Time. If the fields claim more bytes than the payload has after the key, the value is nil and no
// other field is set. A field that reaches beyond the end of the fields is ignored, and so are all fields after it. If
// the number of a field occurs more than once, the last occurrence is used.
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
		switch {
		case number == fieldReading && len(content) == 8:
			// Only the checksum, which is not keyed, protects a reading: ignore values that no
			// writer stores.
			if at := int64(binary.LittleEndian.Uint64(content)); at >= leastReading && at <= h.Time {
				f.Reading = at
			}
		case number == fieldWriter && len(content) == 4:
			f.Writer = binary.LittleEndian.Uint32(content)
		case number == fieldCause && len(content) == 1:
			f.Cause = content[0]
		case number == fieldRestore && len(content) == 8:
			if at := binary.LittleEndian.Uint64(content); at < h.LSN { // otherwise it is not an earlier version
				f.Restores = at
			}
		}
		fields = fields[2+len(content):]
	}
	return key, value, f
}
