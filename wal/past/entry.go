package past

import (
	"strings"
	"time"
	"unsafe"

	"github.com/varve-db/varve/segment"
)

// LSN is a position in the log. See wal.LSN.
type LSN = segment.LSN

// Mark is a position in the log with the chain hash at that position: the checksum of the last frame before it.
// Two logs that have the same mark are equal before it.
type Mark struct {
	LSN LSN
	Sum uint64
}

// MostTime is the highest valid time of a frame, in microseconds since 1970: the beginning of 2399. Higher times are
// ignored.
const MostTime = 13537929600_000000

// KindUser is the lowest kind of frames with a user's value. Frames of lower kinds belong to the log itself.
const KindUser = 16

// Entry is one change of one key.
type Entry struct {
	LSN  LSN       // position of the entry; set by Append and by reading
	Time time.Time // commit time in whole microseconds, different for every entry; set by Append and by reading
	// Reading is the time that the clock showed at the commit. It equals Time unless the clock was more than a
	// second behind Time (package wal, "Choices"). It is set by Append and by reading.
	Reading time.Time
	Key     string // the key that changes
	Kind    uint8  // the kind of the value, 16…255; the log does not interpret the value
	Delete  bool   // the entry deletes the key
	More    bool   // the next entry is of the same batch; set by reading
	Writer  uint32 // the number of the writer, 0 if unknown; see wal.Batch
	// Reason why the store wrote the entry: one of the causes of package wal; 0: a caller asked for it.
	Cause    uint8
	Restores LSN    // for an entry that an undo wrote, the version that it restored; 0: none. See package segment
	Own      bool   // this handle wrote the entry, and did not read it; set when the entry is applied
	Size     uint64 // number of bytes of log that the entry takes, from LSN on; set by reading
	Inflated uint32 // bytes of Value after decompression; 0 means len(Value)
	Value    []byte
}

// EntryIn returns the entry in a frame that has the header h and the payload, which must have been checked. Key and
// Value of the entry share the memory of the payload.
func EntryIn(h *segment.Header, payload []byte) Entry {
	key, value, fields := h.Split(payload)
	at := time.UnixMicro(h.Time).UTC()
	reading := at
	if fields.Reading != h.Time {
		reading = time.UnixMicro(fields.Reading).UTC()
	}
	return Entry{
		LSN: h.LSN, Time: at, Reading: reading, Key: unsafeString(key), Kind: h.Kind,
		Delete: h.Flags&segment.FlagDelete != 0, More: h.More(), Size: h.Size(), Inflated: h.Inflated,
		Writer: fields.Writer, Cause: fields.Cause, Restores: fields.Restores, Value: value[:len(value):len(value)],
	}
}

// EntryOf is like EntryIn, with copies of key and value.
func EntryOf(h *segment.Header, payload []byte) Entry {
	e := EntryIn(h, payload)
	e.Key, e.Value = strings.Clone(e.Key), append([]byte(nil), e.Value...)
	return e
}

// unsafeString returns b as a string without copying; a caller that keeps the string must copy it.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
