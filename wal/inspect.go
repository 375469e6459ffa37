package wal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// What verify and repair read of a log. Nothing here changes a file or takes a
// lock, and no file stays open: a segment may be recycled while it is read, and a caller that finds
// something wrong checks whether that is why.

// SegmentFile is a file in wal/ with a segment's name.
type SegmentFile struct {
	Number uint64
	Size   int64
	Start  segment.Start // when Err is nil
	Zero   bool          // the file begins with zeros: prepared and not yet begun, or about to be recycled
	Err    error         // why the file is not a segment of this log
}

// SegmentFiles lists wal/: segments by number, and the other files.
func (l *FileLog) SegmentFiles() (list []SegmentFile, others []string, err error) {
	names, err := l.o.FS.ReadDir(l.o.walDir())
	if err != nil {
		return nil, nil, l.ioError("reading", l.o.walDir(), err)
	}
	slices.Sort(names)
	for _, name := range names {
		number, ok := segment.ParseName(name)
		if !ok {
			others = append(others, name)
			continue
		}
		s, err := l.SegmentFile(number)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			s.Err = err
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b SegmentFile) int {
		if a.Number < b.Number {
			return -1
		}
		return 1
	})
	return list, others, nil
}

// SegmentFile returns the present state of one segment.
func (l *FileLog) SegmentFile(number uint64) (SegmentFile, error) {
	s := SegmentFile{Number: number}
	f, err := l.openSegment(number)
	if err != nil {
		return s, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return s, err
	}
	s.Size = info.Size
	var b [segment.StartSize]byte
	n, err := readFull(f, b[:], 0)
	if err != nil {
		return s, err
	}
	s.Zero = n == len(b) && b == [segment.StartSize]byte{}
	s.Start, _, s.Err = segment.ParseStart(b[:n])
	switch {
	case s.Err != nil:
	case s.Start.UUID != l.geo.UUID:
		s.Err = fmt.Errorf("%w: the file belongs to another store", segment.ErrHeader)
	case s.Start.Size != l.geo.Size || s.Start.Number != number:
		s.Err = fmt.Errorf("%w: the file says that it is segment %d of %d bytes", segment.ErrHeader, s.Start.Number, s.Start.Size)
	}
	return s, nil
}

// NewestSegment is the highest number of the segments that are there.
func NewestSegment(list []SegmentFile) (newest uint64) {
	for _, f := range list {
		newest = max(newest, f.Number)
	}
	return newest
}

// Unbegun says that a segment is prepared and not yet begun: it begins with zeros, and holds no frame.
// One of which only the first page was lost begins with zeros as well.
func (l *FileLog) Unbegun(s SegmentFile) (bool, error) {
	if !s.Zero {
		return false, nil
	}
	holds, err := l.holdsFrame(s.Number)
	return err == nil && !holds, err
}

// Holds says that history needs a segment's file: it is one of this log, also where its beginning
// is damaged. A segment that is recycled begins with zeros too, but its copy is in the archive then,
// or no history is kept. One that cannot be read holds nothing.
func (l *FileLog) Holds(s SegmentFile) bool {
	if s.Err == nil {
		return true
	}
	if bytes, _ := l.o.Archive(); s.Zero && (bytes <= 0 || l.archived(s.Number)) {
		return false
	}
	holds, err := l.holdsFrame(s.Number)
	return err == nil && holds
}

// holdsFrame looks for a frame of this log in a segment's file, whatever its beginning says: the
// checksum of each is seeded with the store and the segment's number.
func (l *FileLog) holdsFrame(number uint64) (bool, error) {
	f, err := l.openSegment(number)
	if err != nil {
		return false, err
	}
	defer f.Close()
	end := l.geo.End(number)
	next, err := nextHeader(l.geo, f, number, l.geo.Start(number), end)
	return err == nil && next != end, err
}

func (l *FileLog) openSegment(number uint64) (vfs.File, error) {
	return l.o.FS.OpenFile(l.o.wal(segment.Name(number)), os.O_RDONLY, 0)
}

// Place is the segment of a position and the byte in its file.
func (l *FileLog) Place(at LSN) (number uint64, offset int64) {
	return l.geo.Number(at), l.geo.Offset(at)
}

// SegmentOf is the number of the segment of a position, as long as the log is open.
func (l *FileLog) SegmentOf(at LSN) uint64 { return l.geo.Number(at) }

// SegmentEnd is the position behind a segment.
func (l *FileLog) SegmentEnd(number uint64) LSN { return l.geo.End(number) }

// Unsettled reports that files above flushed may contain anything, until the first flush after an
// unclean end has written them again.
func (l *FileLog) Unsettled() bool {
	return l.private.Load() || l.Distrusted() || l.shared.Mapped() && !l.shared.Valid(l.host)
}

// Gap is a place in a segment where a frame is missing. Reading continues at To; To is the end if
// nothing was found behind the gap.
type Gap struct {
	At, To LSN
	Key    string // that the one frame of the gap has, where its header is sound; it may be damaged, too
	Err    error
}

// WalkSegment reads the frames of a segment up to end, where one ends: from the next segment's
// start, or durable. visit gets the end of each frame with its entry, nil for the log's own frames;
// the entry is valid during the call. gap is called for each place without a frame. prev is the end
// of the previous segment, zero if unknown. The result is the position reached, zero if that is not
// end.
func (l *FileLog) WalkSegment(ctx context.Context, number uint64, prev Mark, end LSN,
	visit func(Mark, *Entry) error, gap func(Gap)) (Mark, error) {
	f, err := l.openSegment(number)
	if err != nil {
		return Mark{}, err
	}
	defer f.Close()
	return walkFrames(ctx, l.geo, f, number, prev, end, func(at Mark, h *segment.Header, payload []byte) error {
		if h.Kind < kindUser {
			return visit(at, nil)
		}
		e := EntryIn(h, payload)
		return visit(at, &e)
	}, gap)
}

// walkFrames is WalkSegment for the bytes of a segment in a file, in a copy or in memory. frame gets
// every frame, the start of the segment included.
func walkFrames(ctx context.Context, geo segment.Geometry, f source, number uint64, prev Mark, end LSN,
	frame func(at Mark, h *segment.Header, payload []byte) error, gap func(Gap)) (Mark, error) {
	w := walker{geo: geo, past: func(uint64) (source, error) { return f, nil }}
	s, h, err := w.start(number)
	switch {
	case err == nil && prev.LSN != 0 && (s.PrevEnd != prev.LSN || s.PrevSum != prev.Sum):
		gap(Gap{At: geo.Start(number), To: h.End(), Err: errUnlinked})
		w.at, w.linked = Mark{h.End(), h.Sum}, true
	case err == nil:
		w.at, w.linked = Mark{h.End(), h.Sum}, true
	case isNoFrame(err) || errors.Is(err, errs.ErrNewerFormat):
		w.at = Mark{LSN: geo.Start(number) + segment.StartSize}
		gap(Gap{At: geo.Start(number), To: w.at.LSN, Err: err})
	default:
		return Mark{}, err
	}
	if err == nil {
		if err := frame(w.at, &h, nil); err != nil {
			return Mark{}, err
		}
	}
	for n := 0; w.at.LSN < end; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return Mark{}, ctx.Err()
		}
		h, payload, err := w.frame(end)
		if err != nil && !isNoFrame(err) {
			return Mark{}, err
		}
		if err == nil {
			w.at, w.linked = Mark{h.End(), h.Follow(payload)}, true
			if err := frame(w.at, &h, payload); err != nil {
				return Mark{}, err
			}
			continue
		}
		missing := Gap{At: w.at.LSN, Err: err}
		if errors.Is(err, segment.ErrPayload) && h.LSN == missing.At && h.End() <= end {
			w.at, w.linked = Mark{h.End(), h.Sum}, h.Kind != segment.KindGap // the header is sound, the chain continues
			missing.Key = string(payload[:min(int(h.KeyLen), len(payload))])
		} else {
			next, err := nextHeader(geo, f, number, missing.At+8, end)
			if err != nil {
				return Mark{}, err
			}
			w.at, w.linked = Mark{LSN: next}, false
		}
		missing.To = w.at.LSN
		gap(missing)
	}
	if !w.linked || w.at.LSN != end {
		return Mark{}, nil
	}
	return w.at, nil
}

// nextHeader searches for the next sound header of a segment.
func nextHeader(geo segment.Geometry, f source, number uint64, from, end LSN) (LSN, error) {
	buf := make([]byte, walkChunk+segment.HeaderSize)
	for at := (from + 7) &^ 7; at < end; at += walkChunk {
		n, err := readFull(f, buf, int64(at-geo.Start(number)))
		if err != nil {
			return 0, err
		}
		for i := 0; i+segment.HeaderSize <= n && at+uint64(i) < end; i += 8 {
			if !segment.MayBeHeader(buf[i:], at+uint64(i)) {
				continue
			}
			if _, err := geo.ParseHeader(buf[i:n], at+uint64(i)); err == nil {
				return at + uint64(i), nil
			}
		}
		if n < len(buf) {
			break
		}
	}
	return end, nil
}

// Slot is one of the two places of a checkpoint.
type Slot struct {
	Checkpoint
	Empty bool  // never written
	Err   error // the slot does not verify
}

// CheckpointSlots reads both slots and the length of the file.
func CheckpointSlots(fsys vfs.FS, dir string) (slots [2]Slot, size int64, err error) {
	f, err := fsys.OpenFile(filepath.Join(dir, "checkpoint"), os.O_RDONLY, 0)
	if err != nil {
		return slots, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return slots, 0, err
	}
	b := make([]byte, 2*slotSize)
	n, err := readFull(f, b, 0)
	if err != nil {
		return slots, info.Size, err
	}
	for i := range slots {
		part := b[min(n, i*slotSize):min(n, (i+1)*slotSize)]
		slots[i].Empty = len(part) == slotSize && len(bytes.TrimLeft(part, "\x00")) == 0
		slots[i].Checkpoint, slots[i].Err = decodeCheckpoint(part)
		if slots[i].Err == error(errSlot) { // which is of both
			slots[i].Err = errOneSlot
		}
	}
	return slots, info.Size, nil
}

// SlotSize is the length of a checkpoint's slot in its file.
const SlotSize = slotSize

// Archived lists the numbers of the archived segments, and the other files in the archive.
func (l *FileLog) Archived() (numbers []uint64, others []string, err error) {
	names, err := l.o.FS.ReadDir(l.o.wal("archive"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, l.ioError("reading", l.o.wal("archive"), err)
	}
	slices.Sort(names)
	for _, name := range names {
		base, ok := strings.CutSuffix(name, ".zst")
		number, ok2 := segment.ParseName(base + ".wal")
		if ok && ok2 {
			numbers = append(numbers, number)
		} else {
			others = append(others, name)
		}
	}
	slices.Sort(numbers)
	return numbers, others, nil
}

// ReadArchive reads an archived segment block by block; plain bytes are valid during the call,
// which may end the reading with false. Damage is a *errs.CorruptionError; damage affects only its
// block: if the head of the block is sound, reading continues behind it.
func (l *FileLog) ReadArchive(ctx context.Context, number uint64, block func(offset int64, plain []byte) bool) (damage []*errs.CorruptionError, err error) {
	f, err := l.o.FS.OpenFile(l.o.wal(archiveName(number)), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*archiveBlock))
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	bad := func(at int64, err error) {
		damage = append(damage, &errs.CorruptionError{Path: "wal/" + archiveName(number), Segment: number, Offset: at, Err: err})
	}
	le := binary.LittleEndian
	head := make([]byte, archiveHead)
	n, err := readFull(f, head, 0)
	if err != nil {
		return nil, err
	}
	version, err := archiveStart(head[:n], number)
	if errors.Is(err, errs.ErrNewerFormat) {
		var c *segmentCopy
		if c, err = openCopy(l.o.FS, l.o.walDir(), number); err == nil { // another took its place
			return nil, c.Close()
		}
		if errors.Is(err, errs.ErrNewerFormat) {
			return nil, err // no damage, and nothing to repair
		}
		version = ArchiveFormat
	}
	if err != nil {
		bad(0, err)
	}
	var packed, plain []byte
	var offset int64
	for at := int64(24); at < info.Size; {
		if err := ctx.Err(); err != nil {
			return damage, err
		}
		n, err := readFull(f, head[:16], at)
		if err != nil {
			return damage, err
		}
		size, full := int64(le.Uint32(head)), int64(le.Uint32(head[4:]))
		// A length beyond what a block can be is not followed.
		if n < 16 || size > 2*archiveBlock || full > archiveBlock || full == 0 || size > info.Size-at-16 {
			bad(at, errors.New("no block begins here, or the file breaks off in it"))
			return damage, nil
		}
		packed = append(packed[:0], make([]byte, size)...)
		if n, err = readFull(f, packed, at+16); err != nil {
			return damage, err
		}
		plain, err = dec.DecodeAll(packed[:n], plain[:0])
		switch {
		case err != nil:
			bad(at, err)
		case int64(len(plain)) != full || blockSum(version, packed[:n], plain) != le.Uint64(head[8:]):
			bad(at, errors.New("the block does not match its checksum"))
		case !block(offset, plain):
			return damage, nil
		}
		at += 16 + size
		offset += full
	}
	return damage, nil
}

// ArchivedAt reads the entry at a position from the archive; fs.ErrNotExist when its segment is not
// there.
func (l *FileLog) ArchivedAt(ctx context.Context, at LSN) (Entry, error) {
	number, offset := l.Place(at)
	var frame []byte
	need := int64(segment.HeaderSize)
	var h segment.Header
	var herr error
	damage, err := l.ReadArchive(ctx, number, func(base int64, plain []byte) bool {
		from := offset + int64(len(frame)) - base
		if from < 0 {
			herr = segment.ErrPayload // a block before this one is damaged
			return false
		}
		if from >= int64(len(plain)) {
			return true
		}
		frame = append(frame, plain[from:min(int64(len(plain)), from+need-int64(len(frame)))]...)
		if len(frame) == segment.HeaderSize && need == segment.HeaderSize {
			if h, herr = l.geo.ParseHeader(frame, at); herr != nil {
				return false
			}
			need += int64(h.Length)
			from += segment.HeaderSize
			frame = append(frame, plain[from:min(int64(len(plain)), from+int64(h.Length))]...)
		}
		return int64(len(frame)) < need
	})
	switch {
	case err != nil:
		return Entry{}, err
	case herr != nil:
		return Entry{}, herr
	case h.LSN != at || int64(len(frame)) < need:
		for _, d := range damage {
			return Entry{}, d
		}
		return Entry{}, segment.ErrEnd
	}
	if _, _, err := h.Check(frame[segment.HeaderSize:]); err != nil {
		return Entry{}, err
	}
	return EntryIn(&h, frame[segment.HeaderSize:]), nil
}
