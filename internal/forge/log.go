package forge

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// Log writes forged frames to the end of the log of a store that no process has open.
type Log struct {
	Geometry segment.Geometry

	fs   vfs.FS
	dir  string
	at   segment.LSN // position at which the next frame begins
	sum  uint64      // the checksum of the previous frame
	time int64
	from segment.LSN // position of the first byte of tail
	tail []byte
}

// Frame is a frame to be written. If Kind is 0, the frame has the kind of a put or of a deletion. If Time is 0, the
// frame's time is a microsecond after the time of the previous frame.
type Frame struct {
	Key      string
	Fields   []byte // bytes between key and value, see segment.Fields
	Value    []byte
	Kind     uint8
	Flags    uint8
	Inflated uint32
	Time     int64
	Header   func(h []byte) // may change the bytes of the header before its checksum is computed
}

// The kinds of entries for a put and for a deletion, as in package record.
const (
	kindPut    = 16
	kindDelete = 17
)

// Open returns a Log that appends to the log of a store. It finds the end of the log by reading from the position in
// the newest checkpoint.
func Open(fsys vfs.FS, dir string) (*Log, error) {
	s, err := Newest(fsys, dir)
	if err != nil {
		return nil, err
	}
	l := &Log{Geometry: segment.Geometry{UUID: s.UUID, Size: s.SegmentSize}, fs: fsys, dir: dir, time: s.Time}
	for number := l.Geometry.Number(s.Attested.LSN - 1); ; number++ {
		b, err := vfs.ReadFile(fsys, l.name(number), 1<<30)
		if errors.Is(err, fs.ErrNotExist) && l.at != 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		if _, _, err := segment.ParseStart(b); errors.Is(err, segment.ErrEnd) && l.at != 0 {
			break // prepared, and not begun
		} else if err != nil {
			return nil, err
		}
		end, err := l.walk(b, number)
		if err != nil {
			return nil, err
		}
		l.at = end
	}
	l.from = l.at
	return l, nil
}

func (l *Log) walk(b []byte, number uint64) (segment.LSN, error) {
	at := l.Geometry.Start(number)
	for {
		off := l.Geometry.Offset(at)
		h, err := l.Geometry.ParseHeader(b[min(off, int64(len(b))):], at)
		if errors.Is(err, segment.ErrEnd) {
			return at, nil
		}
		if err != nil {
			return 0, fmt.Errorf("segment %d at %d: %w", number, off, err)
		}
		l.sum, l.time = h.Sum, max(l.time, h.Time)
		if at = h.End(); at == l.Geometry.End(number) {
			return at, nil
		}
	}
}

func (l *Log) name(number uint64) string {
	return filepath.Join(l.dir, "wal", segment.Name(number))
}

// End returns the position at which the next frame begins.
func (l *Log) End() segment.LSN { return l.at }

// Append appends a frame with valid checksums. The LSN of the frame is the position that End returned before. All
// appended frames must fit into the newest segment.
func (l *Log) Append(f Frame) segment.LSN {
	if l.time++; f.Time == 0 {
		f.Time = l.time
	}
	if f.Kind == 0 {
		f.Kind = kindPut
		if f.Flags&segment.FlagDelete != 0 {
			f.Kind = kindDelete
		}
	}
	if f.Inflated == 0 {
		f.Inflated = uint32(len(f.Key) + len(f.Fields) + len(f.Value))
	}
	h := segment.Header{Kind: f.Kind, Flags: f.Flags, LSN: l.at, Time: f.Time, Previous: l.sum, Inflated: f.Inflated,
		Nonce: 1}
	begin := len(l.tail)
	l.tail = l.Geometry.AppendFrameWith(l.tail, &h, f.Key, f.Fields, f.Value)
	if f.Header != nil {
		f.Header(l.tail[begin:][:segment.HeaderSize])
		l.seal(l.tail[begin:], l.Geometry.Number(l.at))
	}
	l.sum = binary.LittleEndian.Uint64(l.tail[begin+56:])
	at := l.at
	l.at = h.End()
	return at
}

// seal sets the checksum in the header of the frame with which b begins. number is the number of the segment that
// contains the frame.
func (l *Log) seal(b []byte, number uint64) { seal(l.Geometry, b, number) }

func seal(geo segment.Geometry, b []byte, number uint64) {
	var s [16 + 8 + 56]byte
	copy(s[:16], geo.UUID[:])
	binary.LittleEndian.PutUint64(s[16:], number)
	copy(s[24:], b[:56])
	binary.LittleEndian.PutUint64(b[56:], xxhash.Sum64(s[:]))
}

// Save writes the appended frames to the segment. It also removes the file wal/shared, because processes started since
// the last boot would read the previous end of the log from it.
func (l *Log) Save() error {
	b := append(l.tail, make([]byte, segment.HeaderSize)...)
	if end := l.Geometry.End(l.Geometry.Number(l.from)); l.from+uint64(len(l.tail)) > end {
		return fmt.Errorf("%d bytes at %d do not fit into the segment", len(l.tail), l.from)
	} else if l.from+uint64(len(b)) > end {
		b = b[:end-l.from]
	}
	err := WriteAt(l.fs, l.name(l.Geometry.Number(l.from)), b, l.Geometry.Offset(l.from))
	if rerr := l.fs.Remove(filepath.Join(l.dir, "wal", "shared")); !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}

// WriteAt overwrites a part of an existing file with b, beginning at the offset off, and syncs the file.
func WriteAt(fsys vfs.FS, name string, b []byte, off int64) error {
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, off)
	return errors.Join(err, f.Sync(), f.Close())
}

// SealSegment recomputes the checksums of the frames in a segment, and links each frame to the previous one. It
// finds each next frame by the length of the previous one, and stops at the first length that does not lead to a
// frame. It returns the position of the end of the last frame, and the checksum of that frame. If visit is not
// nil, SealSegment calls visit for every frame.
func SealSegment(geo segment.Geometry, number uint64, b []byte,
	visit func(end segment.LSN, sum uint64)) (end segment.LSN, sum uint64) {
	le := binary.LittleEndian
	off := 0
	for off+segment.HeaderSize <= len(b) {
		head := b[off : off+segment.HeaderSize]
		length := int64(le.Uint32(head))
		if [segment.HeaderSize]byte(head) == [segment.HeaderSize]byte{} {
			break
		}
		if off > 0 {
			le.PutUint64(head[48:], sum)
		}
		whole := int64(off)+segment.HeaderSize+length <= int64(len(b))
		if whole {
			le.PutUint64(head[40:], xxhash.Sum64(b[off+segment.HeaderSize:][:length]))
		}
		seal(geo, head, number)
		sum = le.Uint64(head[56:])
		off += int(segment.FrameSize(uint64(length)))
		if visit != nil {
			visit(geo.Start(number)+uint64(off), sum)
		}
		if !whole {
			break
		}
	}
	return geo.Start(number) + uint64(off), sum
}

// readUpTo reads the first n bytes of a file, or the whole file if it is shorter.
func readUpTo(fsys vfs.FS, name string, n int) ([]byte, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, n)
	n, err = f.ReadAt(b, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}
