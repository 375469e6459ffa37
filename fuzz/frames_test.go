package fuzz

import (
	"testing"

	"github.com/varve-db/varve/internal/forge"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/wal/past"
)

// FuzzFrames appends entries with valid checksums and any content to a log. An input is a list of
// entries: each begins with the entry of the sound log from which it is made (one byte) and the number
// of changes (one byte); each change has an offset (two bytes) and the new byte there. Offsets count
// through the frame's header up to the payload's checksum, then the key, fields and value.
//
//	go test ./fuzz -run '^$' -fuzz FuzzFrames -fuzztime 30s
func FuzzFrames(f *testing.F) {
	proofs.OneGoroutine(f)
	r := fuzzed(f)
	sound := soundEntries(f, r)
	f.Add([]byte{})
	f.Add([]byte{0, 0, 1, 0, 2, 0})
	for i := range sound {
		value := forgedHead + len(sound[i].Key) + len(sound[i].Fields)
		for _, change := range [][]byte{
			{0, byte(value + 8), 0xff},          // its predecessor
			{0, byte(value + 15), 0xff},         // far away
			{0, byte(value), 2},                 // a newer version
			{0, byte(value + 4), 0xff},          // the line's length
			{0, byte(value + 19), 0xff},         // dimensions
			{0, byte(value + 23), 0xff},         // the document's length
			{0, byte(value + 1), 1},             // compressed
			{0, byte(value + 24), '['},          // the line
			{0, byte(value + 40), '/'},          // the file that it names
			{0, byte(value + 100), 0},           // within it
			{0, 8, 17}, {0, 8, 18}, {0, 8, 200}, // its kind
			{0, 9, 2}, {0, 9, 3}, {0, 9, 1}, // its flags
			{0, 10, 0}, {0, 10, 0xff}, {0, 11, 1}, // its key's length
			{0, 39, 0x7f}, {0, 39, 0xff}, // its time
			{0, forgedHead, 'v'}, {0, forgedHead, 0xff}, // its key
			{0, 9, 4},                                                                       // the flag of fields
			{0, byte(value - 12), 0}, {0, byte(value - 12), 0xff}, {0, byte(value - 10), 2}, // their length, a number
			{0, byte(value - 9), 0xff}, {0, byte(value - 1), 0x80}, {0, byte(value - 1), 0x7f}, // of another length, and readings
		} {
			f.Add(append([]byte{byte(i), 1}, change...))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r.forge(t, func(fsys vfs.FS) error {
			l, err := forge.Open(fsys, dir)
			if err != nil {
				return err
			}
			room := l.Geometry.End(l.Geometry.Number(l.End()-1)) - l.End()
			for len(data) >= 2 {
				frame := sound[int(data[0])%len(sound)]
				n := min(int(data[1]), (len(data)-2)/3)
				changes := data[2 : 2+3*n]
				data = data[2+3*n:]
				size := segment.FrameSize(uint64(len(frame.Key) + len(frame.Fields) + len(frame.Value)))
				if room < size {
					break
				}
				room -= size
				l.Append(forgedFrame(frame, changes))
			}
			return l.Save()
		})
	})
}

// forgedHead is how many bytes of a header an input may change: the rest are checksums.
const forgedHead = 40

func forgedFrame(frame forge.Frame, changes []byte) forge.Frame {
	payload := append(append([]byte(frame.Key), frame.Fields...), frame.Value...)
	var head [][]byte
	for ; len(changes) >= 3; changes = changes[3:] {
		at := (int(changes[0])<<8 | int(changes[1])) % (forgedHead + len(payload))
		if at < forgedHead {
			head = append(head, []byte{byte(at), changes[2]})
		} else {
			payload[at-forgedHead] = changes[2]
		}
	}
	key, value := len(frame.Key), len(frame.Key)+len(frame.Fields)
	frame.Key, frame.Fields, frame.Value = string(payload[:key]), payload[key:value], payload[value:]
	frame.Header = func(h []byte) {
		for _, c := range head {
			if c[0] >= 4 && c[0] < 16 || c[0] >= 24 { // lengths and place lead to where the next one begins
				h[c[0]] = c[1]
			}
		}
	}
	return frame
}

// soundEntries returns the newest entries of a store's log.
func soundEntries(f *testing.F, r *rotten) (list []forge.Frame) {
	fsys, _ := r.m.process("read")
	s, err := forge.Newest(fsys, dir)
	if err != nil {
		f.Fatal(err)
	}
	l, err := forge.Open(fsys, dir)
	if err != nil {
		f.Fatal(err)
	}
	past := &past.Log{FS: fsys, Dir: dir + "/wal", Geometry: segment.Geometry{UUID: s.UUID, Size: s.SegmentSize}}
	for e, err := range past.Entries(ctx, wal.Mark{}, l.End()) {
		if err != nil {
			f.Fatal(err)
		}
		frame := forge.Frame{Key: e.Key, Value: e.Value, Kind: e.Kind, Inflated: e.Inflated}
		if e.Delete {
			frame.Flags = segment.FlagDelete
		}
		list = append(list, frame)
	}
	if list = list[max(0, len(list)-12):]; len(list) < 12 {
		f.Fatalf("%d entries", len(list))
	}
	// And as they are where the clock was set back.
	for i := range list[:12:12] {
		frame := list[i]
		frame.Fields = (&segment.Fields{Reading: s.Time / 2}).AppendTo(nil)
		list = append(list, frame)
	}
	return list
}
