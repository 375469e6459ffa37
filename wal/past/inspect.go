package past

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// Functions with which verify and repair read a log. They change no file, take no lock and leave no file open.
// A segment may be recycled while it is read; a caller that finds damage checks whether that is the reason.

// SegmentFile describes a file in wal/ that has the name of a segment.
type SegmentFile struct {
	Number uint64
	Size   int64
	Start  segment.Start // start of the segment, valid if Err is nil
	// The file begins with zeros: the segment was created in advance and has no frame yet, or is about to be
	// recycled.
	Zero bool
	Err  error // reason why the file is not a segment of this log
}

// SegmentFiles returns the segments in wal/, ordered by number, and the names of the other files there.
func (p *Log) SegmentFiles() (list []SegmentFile, others []string, err error) {
	names, err := p.FS.ReadDir(p.Dir)
	if err != nil {
		return nil, nil, readError("reading", p.Dir, err)
	}
	slices.Sort(names)
	for _, name := range names {
		number, ok := segment.ParseName(name)
		if !ok {
			others = append(others, name)
			continue
		}
		s, err := p.SegmentFile(number)
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

// SegmentFile returns the current state of one segment's file.
func (p *Log) SegmentFile(number uint64) (SegmentFile, error) {
	s := SegmentFile{Number: number}
	f, err := p.OpenSegment(number)
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
	n, err := ReadFull(f, b[:], 0)
	if err != nil {
		return s, err
	}
	s.Zero = n == len(b) && b == [segment.StartSize]byte{}
	s.Start, _, s.Err = segment.ParseStart(b[:n])
	switch {
	case s.Err != nil:
	case s.Start.UUID != p.Geometry.UUID:
		s.Err = fmt.Errorf("%w: the file belongs to store %x, not to store %x", segment.ErrHeader,
			s.Start.UUID, p.Geometry.UUID)
	case s.Start.Size != p.Geometry.Size || s.Start.Number != number:
		s.Err = fmt.Errorf("%w: the header is of segment %d with %d bytes, but the file is segment %d with %d bytes",
			segment.ErrHeader, s.Start.Number, s.Start.Size, number, p.Geometry.Size)
	}
	return s, nil
}

// NewestSegment returns the highest number in a list of segments.
func NewestSegment(list []SegmentFile) (newest uint64) {
	for _, f := range list {
		newest = max(newest, f.Number)
	}
	return newest
}

// Unbegun reports whether a segment was created in advance and not begun: it begins with zeros and has no frame. A
// segment that has lost its first page also begins with zeros, but has frames.
func (p *Log) Unbegun(s SegmentFile) (bool, error) {
	if !s.Zero {
		return false, nil
	}
	holds, err := p.HoldsFrame(s.Number)
	return err == nil && !holds, err
}

// HoldsFrame reports whether the file of a segment has a frame of this log, even if the beginning of the file is
// damaged. It recognizes a frame by its checksum, whose seed depends on the store and the number of the segment.
func (p *Log) HoldsFrame(number uint64) (bool, error) {
	f, err := p.OpenSegment(number)
	if err != nil {
		return false, err
	}
	defer f.Close()
	end := p.Geometry.End(number)
	next, err := NextHeader(p.Geometry, f, number, p.Geometry.Start(number), end)
	return err == nil && next != end, err
}

func (p *Log) OpenSegment(number uint64) (vfs.File, error) {
	return p.FS.OpenFile(p.path(segment.Name(number)), os.O_RDONLY, 0)
}

// Place returns the number of the segment that contains position pos, and the offset of pos in the segment's file.
func (p *Log) Place(pos LSN) (number uint64, offset int64) {
	return p.Geometry.Number(pos), p.Geometry.Offset(pos)
}

// SegmentOf returns the number of the segment that contains position pos.
func (p *Log) SegmentOf(pos LSN) uint64 { return p.Geometry.Number(pos) }

// SegmentEnd returns the position where a segment ends and the next one begins.
func (p *Log) SegmentEnd(number uint64) LSN { return p.Geometry.End(number) }

// Gap is a part of a segment in which frames are missing. Reading continues at To. If nothing was found after the gap,
// To is the end of the part of the log that was read.
type Gap struct {
	At, To LSN
	Key    string // key of the frame in the gap, if its header is valid; the key itself may be damaged
	Err    error
}

// WalkSegment reads the frames of a segment up to end. A frame must end at end: the caller takes end from the start of
// the next segment or from the durable position. prev is the end of the previous segment, or zero if unknown. For each
// frame, WalkSegment calls visit with the frame's end and its entry; the entry is nil for the log's own frames and is
// valid only during the call. For each part without a valid frame, it calls gap. The result is the mark at end, or zero
// if the frames do not reach end.
func (p *Log) WalkSegment(ctx context.Context, number uint64, prev Mark, end LSN,
	visit func(Mark, *Entry) error, gap func(Gap)) (Mark, error) {
	f, err := p.OpenSegment(number)
	if err != nil {
		return Mark{}, err
	}
	defer f.Close()
	return WalkFrames(ctx, p.Geometry, f, number, prev, end, func(at Mark, h *segment.Header, payload []byte) error {
		if h.Kind < KindUser {
			return visit(at, nil)
		}
		e := EntryIn(h, payload)
		return visit(at, &e)
	}, gap)
}

// WalkFrames is like WalkSegment, but reads the segment from f, which may be a file, an archived copy or memory. It
// calls frame for every frame, even for the start of the segment.
func WalkFrames(ctx context.Context, geo segment.Geometry, f Source, number uint64, prev Mark, end LSN,
	frame func(at Mark, h *segment.Header, payload []byte) error, gap func(Gap)) (Mark, error) {
	w := NewWalker(geo, func(uint64) (Source, error) { return f, nil }, Mark{})
	s, h, err := w.Start(number)
	switch {
	case err == nil && prev.LSN != 0 && (s.PrevEnd != prev.LSN || s.PrevSum != prev.Sum):
		gap(Gap{At: geo.Start(number), To: h.End(), Err: ErrUnlinked})
		w.At, w.Linked = Mark{h.End(), h.Sum}, true
	case err == nil:
		w.At, w.Linked = Mark{h.End(), h.Sum}, true
	case IsNoFrame(err) || errors.Is(err, errs.ErrNewerFormat):
		w.At = Mark{LSN: geo.Start(number) + segment.StartSize}
		gap(Gap{At: geo.Start(number), To: w.At.LSN, Err: err})
	default:
		return Mark{}, err
	}
	if err == nil {
		if err := frame(w.At, &h, nil); err != nil {
			return Mark{}, err
		}
	}
	for n := 0; w.At.LSN < end; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return Mark{}, ctx.Err()
		}
		h, payload, err := w.Frame(end)
		if err != nil && !IsNoFrame(err) {
			return Mark{}, err
		}
		if err == nil {
			w.At, w.Linked = Mark{h.End(), h.Follow(payload)}, true
			if err := frame(w.At, &h, payload); err != nil {
				return Mark{}, err
			}
			continue
		}
		missing := Gap{At: w.At.LSN, Err: err}
		if errors.Is(err, segment.ErrPayload) && h.LSN == missing.At && h.End() <= end {
			w.At, w.Linked = Mark{h.End(), h.Sum}, h.Kind != segment.KindGap // the header is sound, so the chain continues
			missing.Key = string(payload[:min(int(h.KeyLen), len(payload))])
		} else {
			next, err := NextHeader(geo, f, number, missing.At+8, end)
			if err != nil {
				return Mark{}, err
			}
			w.At, w.Linked = Mark{LSN: next}, false
		}
		missing.To = w.At.LSN
		gap(missing)
	}
	if !w.Linked || w.At.LSN != end {
		return Mark{}, nil
	}
	return w.At, nil
}

// NextHeader returns the position of the first valid frame header in [from, end) of a segment, or end if there is no
// valid header.
func NextHeader(geo segment.Geometry, f Source, number uint64, from, end LSN) (LSN, error) {
	buf := make([]byte, Chunk+segment.HeaderSize)
	for at := (from + 7) &^ 7; at < end; at += Chunk {
		n, err := ReadFull(f, buf, int64(at-geo.Start(number)))
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

// Archived returns the numbers of the archived segments, and the names of the other files in the archive.
func (p *Log) Archived() (numbers []uint64, others []string, err error) {
	names, err := p.FS.ReadDir(p.path("archive"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, readError("reading", p.path("archive"), err)
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

// ReadArchive reads an archived segment and calls block for each block; plain has the decompressed bytes and is valid
// only during the call. If block returns false, ReadArchive stops. For each damaged block, damage has an error.
// ReadArchive continues after a damaged block if the header of the block is valid.
func (p *Log) ReadArchive(ctx context.Context, number uint64,
	block func(offset int64, plain []byte) bool) (damage []*errs.CorruptionError, err error) {
	f, err := p.FS.OpenFile(p.path(CopyName(number)), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*BlockSize))
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	bad := func(at int64, err error) {
		damage = append(damage, &errs.CorruptionError{Path: "wal/" + CopyName(number), Segment: number, Offset: at, Err: err})
	}
	le := binary.LittleEndian
	head := make([]byte, archiveHead)
	n, err := ReadFull(f, head, 0)
	if err != nil {
		return nil, err
	}
	version, err := archiveStart(head[:n], number)
	if errors.Is(err, errs.ErrNewerFormat) {
		var c *Copy
		if c, err = OpenCopy(p.FS, p.Dir, number); err == nil { // another file took its place
			return nil, c.Close()
		}
		if errors.Is(err, errs.ErrNewerFormat) {
			return nil, err // not damage, and nothing to repair
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
		n, err := ReadFull(f, head[:16], at)
		if err != nil {
			return damage, err
		}
		size, full := int64(le.Uint32(head)), int64(le.Uint32(head[4:]))
		// An impossible length is not followed.
		if n < 16 || size > 2*BlockSize || full > BlockSize || full == 0 || size > info.Size-at-16 {
			bad(at, errors.New("there is no block at this offset, or the file ends within the block"))
			return damage, nil
		}
		packed = append(packed[:0], make([]byte, size)...)
		if n, err = ReadFull(f, packed, at+16); err != nil {
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

// ArchivedAt returns the entry at position pos from the archive. If the archive does not have the segment, the
// error matches fs.ErrNotExist.
func (p *Log) ArchivedAt(ctx context.Context, pos LSN) (Entry, error) {
	number, offset := p.Place(pos)
	var frame []byte
	need := int64(segment.HeaderSize)
	var h segment.Header
	var herr error
	damage, err := p.ReadArchive(ctx, number, func(base int64, plain []byte) bool {
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
			if h, herr = p.Geometry.ParseHeader(frame, pos); herr != nil {
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
	case h.LSN != pos || int64(len(frame)) < need:
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

// EndOf returns the position at which the frames of a segment end, with the chain hash there. The start of the next
// segment records both. If there is no next segment, EndOf returns the end of the segment, without a hash.
func (p *Log) EndOf(number uint64) (Mark, error) {
	s, _, err := p.Start(number + 1)
	switch {
	case err == nil && s.PrevEnd != 0 && p.Geometry.Number(s.PrevEnd-1) == number:
		return Mark{s.PrevEnd, s.PrevSum}, nil
	case err == nil, IsNoFrame(err), errors.Is(err, errs.ErrNewerFormat):
		return Mark{LSN: p.Geometry.End(number)}, nil
	}
	return Mark{}, err
}

// CheckArchived checks the frames of an archived segment. holes are the parts in which frames are missing. gaps are the
// parts whose frames were already recorded as lost by a repair, a purge or the archiver. If a block cannot be read, the
// error matches segment.ErrPayload; ReadArchive then reports the damaged blocks.
func (p *Log) CheckArchived(ctx context.Context, number uint64) (holes []Gap, gaps []*errs.GapError, err error) {
	c, err := OpenCopy(p.FS, p.Dir, number)
	if errors.Is(err, ErrNoSegment) {
		return nil, nil, fmt.Errorf("%s: %w", CopyName(number), fs.ErrNotExist)
	}
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	end, err := p.EndOf(number)
	if err != nil {
		return nil, nil, err
	}
	at, err := WalkFrames(ctx, p.Geometry, c, number, Mark{}, end.LSN, func(_ Mark, h *segment.Header, _ []byte) error {
		if h.Kind != segment.KindGap {
			return nil
		}
		if n := len(gaps); n > 0 && gaps[n-1].To == h.LSN {
			gaps[n-1].To = h.End()
		} else {
			gaps = append(gaps, &errs.GapError{From: h.LSN, To: h.End()})
		}
		return nil
	}, func(g Gap) {
		switch n := len(holes); {
		case end.Sum == 0 && errors.Is(g.Err, segment.ErrEnd) && g.To == end.LSN: // the frames end here
		case n > 0 && holes[n-1].To == g.At:
			holes[n-1].To = g.To
		default:
			holes = append(holes, g)
		}
	})
	if err == nil && len(holes) == 0 && end.Sum != 0 && at != end {
		holes = append(holes, Gap{At: end.LSN, To: end.LSN, Err: ErrUnlinked})
	}
	return holes, gaps, err
}
